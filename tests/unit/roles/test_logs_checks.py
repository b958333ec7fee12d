"""The checks of the logs role: each passes, fails, and does not know."""

from __future__ import annotations

import json

import pytest

from rackwright.certificates.read import pem
from rackwright.facts.files import AtPath
from rackwright.facts.packages import Packages
from rackwright.logs import objects
from rackwright.model.services import IssuesCertificates
from rackwright.roles.logs import loki_texts, paths, search_texts, texts
from rackwright.roles.logs.arrival import arrive
from rackwright.roles.logs.verify import CHECKS
from rackwright.secrets.secret import generate
from rackwright.secrets.store import Secret
from tests.unit.certificates.authorities import SECRET
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_facts import asked, file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.logs_sites import STORES, logs_site
from tests.unit.roles.sites import head, worker

NOW = 1_795_741_200.0
SITES = {kind: logs_site(kind) for kind in STORES}
SITE = SITES["journal"]
REPORT = "/usr/bin/python3 -IS /usr/libexec/rackwright/logs-keeper --report"
USER = "systemd-journal-remote"


class Store:
    def __init__(self, *missing) -> None:
        self.absent = missing

    def get(self, name):
        return Secret(name, SECRET if name == "site_ca_key" else f"{name} of the store")

    def missing(self, names):
        return [name for name in names if name in self.absent]


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    for module in ("verify", "store_checks"):
        monkeypatch.setattr(f"rackwright.roles.logs.{module}.store_of", lambda cluster: Store())


def secret(name):
    return f"{name} of the store"


def check(name, replies, *, kind="journal", node=head, others=None):
    cluster = SITES[kind]
    hosts = FakeHost(replies)
    if others is not None:
        hosts = {
            "head1": FakeHost(replies),
            **{name: FakeHost(reported) for name, reported in others.items()},
        }
    return judged("logs", CHECKS, name, cluster, node(cluster), hosts)


def ca_text(cluster=SITE):
    return pem(head(cluster).offers(IssuesCertificates).issuer(cluster, SECRET).certificate)


def report(**changes):
    found = {
        "version": 1,
        "now": NOW,
        "newest": {"head1": NOW - 5.0, "gpu1": NOW - 200.0, "gpu2": NOW - 5.0},
        "oldest_closed": NOW - 86400.0,
        "bytes": 300 << 20,
        "audit_days": ["2026-11-26", "2026-11-27"],
        "last": {"at": NOW - 60.0, "errors": [], "copied": 3},
        **changes,
    }
    return {REPORT: json.dumps(found)}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("node", [head, worker])
def test_no_check_passes_on_a_node_that_says_nothing(kind, node):
    never_passes("logs", CHECKS, SITES[kind], node(SITES[kind]))


def test_what_is_claimed_where():
    everywhere = {"the journal has time marks", "log senders and receiver trust only the site CA"}
    on_worker = set(claimed("logs", CHECKS, worker(SITE)))
    assert on_worker == everywhere | {
        "the journal is sent as declared",
        "the journal uploader is running",
        "the distribution's log receiver is off",
        "logs of every node arrive",
    }
    assert set(claimed("logs", CHECKS, head(SITE))) > on_worker
    assert "rsyslog sends the journal as declared" in claimed("logs", CHECKS, worker(SITES["opensearch"]))
    assert "Loki is running as declared" not in claimed("logs", CHECKS, worker(SITES["loki"]))


def test_the_mark():
    name = "the journal has time marks"
    good = {**files(texts.mark_files()), **unit(paths.MARK_TIMER)}
    assert check(name, good).status == "PASS"
    assert (
        check(name, {**good, **unit(paths.MARK_TIMER, active="inactive")}).evidence
        == f"{paths.MARK_TIMER} is inactive"
    )


@pytest.mark.parametrize("kind", ["journal", "loki"])
def test_trust_in_the_site_s_ca_alone(kind, monkeypatch):
    """`extra_trust` of site_ca is for servers outside: its CAs must not allow sending lines."""
    name = "log senders and receiver trust only the site CA"
    assert check(name, file(paths.CA, ca_text()), kind=kind, node=worker).status == "PASS"
    more = check(name, file(paths.CA, ca_text() + ca_text()), kind=kind)
    assert (more.status, more.evidence) == ("FAIL", f"{paths.CA} is not as declared")
    monkeypatch.setattr("rackwright.roles.logs.verify.store_of", lambda cluster: Other())
    assert check(name, file(paths.CA, ca_text()), kind=kind).status == "FAIL"


class Other(Store):
    def get(self, name):
        return Secret(name, generate("site_ca_key"))


def test_the_sender_s_files():
    name = "the journal is sent as declared"
    good = files(texts.sender_files(SITE, head(SITE).options["logs"]))
    assert check(name, good).status == "PASS"
    elsewhere = file(paths.UPLOAD_CONF, "[Upload]\nURL=https://evil.example.com\n")
    assert "not as declared: URL=https://evil.example.com" in check(name, {**good, **elsewhere}).evidence


def test_the_uploader():
    name = "the journal uploader is running"
    printed = "journalctl --quiet --no-pager --lines=3 --output=cat _COMM=systemd-journal"
    assert check(name, unit(paths.UPLOAD)).status == "PASS"
    tries = {**unit(paths.UPLOAD, active="activating"), printed: "Upload failed: No space left on device\n"}
    found = check(name, tries)
    assert found.status == "FAIL"
    assert (
        found.evidence
        == f"{paths.UPLOAD} is activating; its last message: Upload failed: No space left on device"
    )
    silent = check(name, unit(paths.UPLOAD, active="failed"))
    assert silent.evidence == f"{paths.UPLOAD} is failed; its last message: its journal cannot be read"
    assert check(name, unit(paths.UPLOAD, state="disabled")).evidence.endswith("does not start at boot")


def test_the_packaged_receiver():
    name = "the distribution's log receiver is off"
    assert check(name, unit(paths.PACKAGED_SOCKET, "inactive", "masked", "masked")).status == "PASS"
    found = check(name, unit(paths.PACKAGED_SOCKET))
    assert (found.status, "without GnuTLS" in found.evidence) == ("FAIL", True)


def test_the_receiver():
    name = "the log receiver is running"
    good = {**unit(paths.SOCKET), **unit(paths.RECEIVER_UNIT)}
    assert check(name, good).status == "PASS"
    assert check(name, {**good, **unit(paths.RECEIVER_UNIT, active="failed")}).status == "FAIL"


def test_the_server_s_files():
    name = "the log receiver, gate and keeper have their settings"
    made = head(SITE).options["logs"]
    good = {
        **files(texts.server_files(SITE, head(SITE), made.store)),
        **files(texts.keeper_files(SITE, made, made.store)),
        **{
            line: printed
            for path, text in texts.programs().items()
            for line, printed in file(path, text, "755").items()
        },
    }
    assert check(name, good).status == "PASS"
    assert check(name, {**good, **file(paths.GATE, "#!/bin/sh\n", "755")}).status == "FAIL"


URLS = {"journal": "https://10.9.0.10:19532/upload", "loki": "https://10.9.0.10:3100/loki/api/v1/push"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("journal", "sending logs requires a certificate"),
        ("loki", "Loki requires a certificate"),
    ],
)
@pytest.mark.parametrize(
    ("reply", "status", "printed"),
    [
        ((56, "000", "curl: (56) unexpected eof"), "PASS", "closes a connection without a certificate"),
        ((35, "000", "curl: (35) handshake"), "PASS", "closes a connection without a certificate"),
        ((0, "202", ""), "FAIL", "accepts clients without a certificate: it answers 202"),
        ((22, "400", ""), "FAIL", "accepts clients without a certificate: it answers 400"),
        ((7, "000", "curl: (7) refused"), "FAIL", "nothing answers at"),
        ((60, "000", "curl: (60) self-signed"), "FAIL", "has a certificate that the site CA did not issue"),
        ((28, "000", "curl: (28) timed out"), "UNKNOWN", "exited 28: curl: (28) timed out"),
        ((127, "", "sh: curl: not found"), "UNKNOWN", "exited 127"),
    ],
)
def test_strangers_are_refused(kind, name, reply, status, printed):
    command = (
        f"curl --silent --show-error --output /dev/null --max-time 10 --cacert {paths.CA} --data-binary @/dev/null "
        f"--write-out '%{{http_code}}' {URLS[kind]}"
    )
    found = check(name, {command: (reply[0], reply[1], reply[2])}, kind=kind)
    assert (found.status, printed in found.evidence) == (status, True), found


def test_who_may_read_the_files():
    name = "only root can read the logs of all nodes"

    def folder(path, mode, owner):
        return {asked(AtPath().command(path, digest_only=True)): f"directory|{mode}|{owner}|{owner}|4096\n"}

    find = f"find {paths.JOURNALS} {paths.AUDIT} -perm /007 ! -type l"
    good = {**folder(paths.JOURNALS, "750", USER), **folder(paths.AUDIT, "700", "root"), find: ""}
    assert check(name, good).status == "PASS"
    open_ = check(name, {**good, find: "/var/log/journal/remote/a\n/var/log/journal/remote/b\n"})
    assert open_.evidence == "every user may read /var/log/journal/remote/a and 1 more"
    assert check(name, {**good, **folder(paths.AUDIT, "755", "root")}).status == "FAIL"
    assert check(name, {**good, find: (1, "", "find: cannot")}).status == "UNKNOWN"


@pytest.mark.parametrize(
    ("changes", "status", "printed"),
    [
        ({}, "PASS", "300 MiB of 50G; audit trail of 2 days"),
        ({"last": {}}, "FAIL", "it has never run"),
        ({"last": {"at": NOW - 7200.0, "errors": []}}, "FAIL", "the keeper last ran 120 min ago"),
        ({"last": {"at": NOW, "errors": ["w1: full"]}}, "FAIL", "the audit trail is not complete: w1: full"),
        ({"oldest_closed": NOW - 17 * 86400.0}, "FAIL", "lines are 17 days old, not 14"),
        ({"oldest_closed": None}, "PASS", "300 MiB of 50G"),
        ({"bytes": 60 << 30}, "FAIL", "the central journal has 60 GiB, more than 50G"),
        ({"bytes": "many"}, "UNKNOWN", "unusable report of the keeper: bytes"),
    ],
)
def test_how_long_lines_are_kept(changes, status, printed):
    found = check("logs are kept as long as declared", {**unit(paths.KEEPER_TIMER), **report(**changes)})
    assert (found.status, printed in found.evidence) == (status, True), found


def test_a_keeper_that_does_not_run():
    name = "logs are kept as long as declared"
    assert check(name, {**unit(paths.KEEPER_TIMER, active="inactive"), **report()}).status == "FAIL"
    broken = {**unit(paths.KEEPER_TIMER), REPORT: (1, "", "no folder")}
    assert check(name, broken).status == "UNKNOWN"


@pytest.mark.parametrize(
    ("newest", "status", "printed"),
    [
        ({}, "PASS", "lines of 3 nodes, the newest of each less than 15 min old"),
        ({"gpu1": NOW - 1200.0}, "FAIL", "logs of gpu1 do not arrive: the newest line of gpu1 is 20 min old"),
        (
            {"gpu1": NOW - 1200.0, "gpu2": NOW - 6000.0},
            "FAIL",
            "logs of gpu[1-2] do not arrive: the newest line of gpu2",
        ),
        ({"gpu2": 0.0}, "FAIL", "head1 has no line of gpu2"),
    ],
)
def test_lines_arrive(newest, status, printed):
    there = {"head1": NOW, "gpu1": NOW, "gpu2": NOW, "gone": NOW - 1e6, **newest}
    found = check("logs of every node arrive", report(newest=there), others={"gpu1": {}, "gpu2": {}})
    assert (found.status, printed in found.evidence) == (status, True), found


def test_a_server_that_cannot_be_read_is_not_known():
    assert check("logs of every node arrive", {REPORT: (255, "", "ssh: no route")}).status == "UNKNOWN"
    assert check("logs of every node arrive", {REPORT: "copied 3 entries\n"}).status == "UNKNOWN"


def test_a_node_that_has_never_sent_is_silent():
    with pytest.raises(AssertionError, match="Loki has no line of gpu2"):
        arrive(SITE, {"head1": NOW, "gpu1": NOW, "gpu2": None}, NOW, "Loki")


def test_packages_of_grafana():
    name = "packages from Grafana's archive have their declared versions"
    site = SITES["loki"]
    family = head(site).family
    question = asked(Packages().command(family.name, ("alloy", "loki")))
    of_itself = {family.query_self: "dpkg\t1.22.21\n"}
    good = {**of_itself, question: "have alloy 1.11.3-1 hi\nhave loki 3.5.7 hi\nhold alloy\nhold loki\n"}
    found = check(name, good, kind="loki")
    assert found.status == "PASS", found
    genetics = check(
        name,
        {**of_itself, question: "have alloy 1.11.3-1 hi\nhave loki 2.4.7.4-12 ii\nhold alloy\n"},
        kind="loki",
    )
    assert (genetics.status, genetics.evidence) == ("FAIL", "loki is 2.4.7.4-12, not 3.5.7")


def test_alloy_and_loki():
    site = SITES["loki"]
    made = head(site).options["logs"]
    alloy = {
        **unit(paths.ALLOY_UNIT),
        **files({"/etc/alloy/config.alloy": loki_texts.alloy_config(site, worker(site), made)}),
        **files({paths.drop_in(paths.ALLOY_UNIT): loki_texts.alloy_unit()}),
    }
    name = "Alloy sends the journal as declared"
    assert check(name, alloy, kind="loki", node=worker).status == "PASS"
    assert (
        check(name, {**alloy, **unit(paths.ALLOY_UNIT, active="failed")}, kind="loki", node=worker).status
        == "FAIL"
    )
    loki = {
        **unit(paths.LOKI_UNIT),
        **files({"/etc/loki/config.yml": loki_texts.loki_config(site, head(site), made, made.store)}),
        **files({paths.drop_in(paths.LOKI_UNIT): loki_texts.loki_unit()}),
    }
    assert check("Loki is running as declared", loki, kind="loki").status == "PASS"
    loose = file("/etc/loki/config.yml", "auth_enabled: false\n")
    assert check("Loki is running as declared", {**loki, **loose}, kind="loki").status == "FAIL"


def test_lines_arrive_in_loki():
    name = "logs of every node arrive in Loki"
    query = "'query=sum by (node) (count_over_time({node=~\".+\"}[10m]))'"
    command = (
        f"curl --silent --show-error --max-time 20 --cacert {paths.CA} --cert {paths.SENDER_CHAIN} --key {paths.SENDER_KEY} "
        f"--data-urlencode {query} https://10.9.0.10:3100/loki/api/v1/query"
    )

    def printed(*nodes):
        result = [{"metric": {"node": node}, "value": [NOW, "7"]} for node in nodes]
        return {
            command: json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})
        }

    assert check(name, printed("head1", "gpu1", "gpu2"), kind="loki").status == "PASS"
    late = check(name, printed("head1", "gpu1"), kind="loki")
    assert (late.status, late.evidence) == ("FAIL", "Loki (the last 10 min) has no line of gpu2")
    assert check(name, {command: '{"status": "error"}'}, kind="loki").status == "UNKNOWN"
    assert check(name, {command: (7, "", "curl: (7)")}, kind="loki").status == "UNKNOWN"


def test_filebeat():
    site = SITES["elastic"]
    store, conf = head(site).options["logs"].store, "/etc/filebeat/filebeat.yml"
    text = search_texts.filebeat_yml(worker(site), store, secret)
    name = "Filebeat sends the journal as declared"
    good = {**unit(paths.FILEBEAT_UNIT), **file(conf, text, "600")}
    assert check(name, good, kind="elastic", node=worker).status == "PASS"
    open_ = check(name, {**good, **file(conf, text, "644")}, kind="elastic", node=worker)
    assert open_.evidence == f"{conf} is 644 root:root, not 600 root:root"
    family = worker(site).family
    question = asked(Packages().command(family.name, ("filebeat",)))
    older = {family.query_self: "dpkg\t1.22.21\n", question: "have filebeat 8.1.0 hi\nhold filebeat\n"}
    assert check("Filebeat has its declared version", older, kind="elastic").status == "FAIL"


def test_rsyslog(monkeypatch):
    site = SITES["opensearch"]
    store = head(site).options["logs"].store
    name = "rsyslog sends the journal as declared"
    good = {
        **unit(paths.RSYSLOG_UNIT),
        **file(paths.RSYSLOG_CONF, search_texts.rsyslog_conf(worker(site), store, secret), "600"),
        **files({f"{paths.UNITS}/{paths.RSYSLOG_UNIT}": search_texts.rsyslog_unit(worker(site))}),
    }
    assert check(name, good, kind="opensearch", node=worker).status == "PASS"
    changed = check(name, {**good, **file(paths.RSYSLOG_CONF, "x", "600")}, kind="opensearch", node=worker)
    assert (changed.status, changed.evidence) == ("FAIL", f"{paths.RSYSLOG_CONF} is not as declared")
    monkeypatch.setattr("rackwright.roles.logs.store_checks.store_of", lambda cluster: Store("search_writer"))
    unknown = check(name, good, kind="opensearch", node=worker)
    assert (unknown.status, unknown.evidence) == ("UNKNOWN", "the secrets store lacks search_writer")


@pytest.mark.parametrize("kind", ["elastic", "opensearch"])
def test_the_search_cluster_is_set_up(kind):
    site = SITES[kind]
    made = head(site).options["logs"]
    good = {
        **file(paths.SEARCH_LOGIN, search_texts.login(made.store, secret), "600"),
        **file(paths.SEARCH_PROGRAM, search_texts.objects_program(), "755"),
        **files({objects.SETTINGS: search_texts.objects_settings(site, made, made.store)}),
        **files({paths.SAVED_OBJECTS: search_texts.saved_ndjson(made.store)}),
        f"{paths.SEARCH_PROGRAM} --check": "as declared\n",
    }
    name = "the search cluster is set up as declared"
    assert check(name, good, kind=kind).status == "PASS"
    differs = check(name, {**good, f"{paths.SEARCH_PROGRAM} --check": "differ: /_ilm/policy/x\n"}, kind=kind)
    assert (differs.status, "differ: /_ilm/policy/x" in differs.evidence) == ("FAIL", True)
    away = check(name, {**good, f"{paths.SEARCH_PROGRAM} --check": (1, "", "Connection refused")}, kind=kind)
    assert (away.status, "Connection refused" in away.evidence) == ("UNKNOWN", True)


def test_lines_arrive_in_the_search_cluster():
    name, command = "logs of every node arrive in the search cluster", f"{paths.SEARCH_PROGRAM} --newest"
    there = {"version": 1, "now": NOW, "newest": {"head1": NOW, "gpu1": NOW, "gpu2": NOW}}
    assert check(name, {command: json.dumps(there)}, kind="opensearch").status == "PASS"
    there["newest"]["gpu1"] = None
    found = check(name, {command: json.dumps(there)}, kind="opensearch")
    assert found.evidence == "the search cluster has no line of gpu1"
    assert check(name, {command: "[]"}, kind="opensearch").status == "UNKNOWN"
    assert check(name, {command: (1, "", "refused")}, kind="opensearch").status == "UNKNOWN"
