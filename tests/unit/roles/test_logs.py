"""The logs role: options, files of every store, and what a plan of each does."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from rackwright.logs import gate, keeper, objects
from rackwright.logs.loki_labels import LABELS, METADATA
from rackwright.logs.read_search import FIELDS
from rackwright.osfamily.known import RELEASES
from rackwright.roles.logs import loki_texts, paths, search_texts, texts
from rackwright.roles.logs.complaints import COMPLAINTS, KINDS
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.search_objects import declared_objects, oniguruma, saved_objects
from rackwright.roles.logs.stores import size_bytes
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.roles.tuning.options import TuningOptions
from tests.unit.roles.container_site import changed
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.logs_sites import ARCHIVE, SEARCH, STORES, logs_site, options, secret
from tests.unit.roles.sites import expected, head, site, worker

SITE = logs_site()
KERNEL_LINES = {
    "xid": "NVRM: Xid (PCI:0000:8b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.",
    "sxid": "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
    "aer_uncorrected": "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0",
    "aer_corrected": "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"store": {"type": "journal", "max_use": "50"}}, "50 is not a size."),
        ({"store": {"type": "journal", "max_use": "0G"}}, "0G is not a size."),
        ({"store": {"type": "journal", "max_file": "7M"}}, "Journal files of less than 8M are not made."),
        (
            {"store": {**STORES["loki"], "version": "2.4.7.4-12"}},
            (
                "Loki 2.4.7.4-12 keeps no structured metadata, in which a line's job is; and the distribution's package "
                "loki, a program for genetics, has version 2."
            ),
        ),
        (
            {"store": {**STORES["loki"], "since": "soon"}},
            "String should match pattern '^20[0-9]{2}-[01][0-9]-[0-3][0-9]$'",
        ),
        (
            {"store": {**STORES["opensearch"], "urls": ["http://search"]}},
            "Passwords would cross the network in the clear to http://search.",
        ),
        (
            {"store": {**STORES["elastic"], "dashboards_url": "http://kibana"}},
            "Passwords would cross the network in the clear to http://kibana.",
        ),
        (
            {"store": {**STORES["opensearch"], "manages": SEARCH["sends"]}},
            "Every node would have the rights to remove all lines.",
        ),
        (
            {"store": {**STORES["opensearch"], "prefix": "a-b"}},
            "String should match pattern '^[a-z][a-z0-9]{0,30}$'",
        ),
        (
            {"store": {**STORES["opensearch"], "urls": ["https://search/path"]}},
            "String should match pattern '^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$'",
        ),
        ({"store": {"type": "opensearch"}}, "Field required"),
        ({"store": {"type": "syslog"}}, None),
        ({"retention_days": 0}, "Input should be greater than or equal to 1"),
        ({"rate_limit_burst": 5}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    found = errors_in(LogsOptions, given)
    assert found[0] == sentence if sentence else "journal" in found[0]


def problems(cluster):
    return list(head(cluster).options["logs"].problems(cluster))


@pytest.mark.parametrize("kind", STORES)
def test_nothing_is_wrong_with_a_good_site(kind):
    cluster = logs_site(kind)
    assert problems(cluster) == []
    assert list(head(cluster).options["logs"].warnings(cluster)) == []


def test_a_site_without_a_ca():
    for kind in ("journal", "loki"):
        assert problems(logs_site(kind, ca=False)) == [
            (
                "",
                (
                    "head1 has no certificate: its lines could not be attributed to it, and would cross the network "
                    "in the clear."
                ),
                "add the role `site_ca: {}`",
            )
        ]
    assert problems(logs_site("opensearch", ca=False)) == []


@pytest.mark.parametrize(
    ("store", "problem"),
    [
        (
            {"type": "loki", "version": "3.5.7", "alloy_version": "1.11.3"},
            (
                "store.archive",
                (
                    "No distribution has Loki and Alloy: Debian's and Ubuntu's package loki is a program for genetics. "
                    "`archive` is missing."
                ),
                "Grafana's archive, or the site's copy of it, with exact versions of loki and alloy",
            ),
        ),
        (
            {"type": "loki", "archive": ARCHIVE, "alloy_version": "1.11.3"},
            (
                "store.version",
                (
                    "No distribution has Loki and Alloy: Debian's and Ubuntu's package loki is a program for genetics. "
                    "`version` is missing."
                ),
                "Grafana's archive, or the site's copy of it, with exact versions of loki and alloy",
            ),
        ),
        (
            {"type": "elastic", **SEARCH, "archive": ARCHIVE},
            (
                "store.filebeat_version",
                "No distribution has Filebeat. `filebeat_version` is missing.",
                "Elastic's archive, or the site's copy of it, with an exact version",
            ),
        ),
        (
            {"type": "journal", "max_use": "150M", "max_file": "32M"},
            (
                "store.max_use",
                "3 nodes have a file of 32M each that is never removed: 150M leave nothing for earlier lines.",
                "e.g. `max_use: 1G`, or a smaller `max_file`",
            ),
        ),
    ],
)
def test_stores_that_cannot_be(store, problem):
    assert problems(logs_site(store=store)) == [problem]


def test_a_server_that_there_is_not():
    assert problems(logs_site(server="logs1")) == [
        ("server", "logs1 is not a node that the role logs runs on.", "one of: head1, gpu1, gpu2")
    ]


def test_options_are_declared_once():
    cluster = site({"logs": options(), "site_ca": SiteCaOptions()})
    other = worker(cluster).with_options({**worker(cluster).options, "logs": options(retention_days=3)})
    cluster = cluster.model_copy(update={"nodes": (head(cluster), other)})
    assert problems(cluster) == [
        (
            "",
            "gpu1 has different options for logs: it would send its lines elsewhere, or keep them for a different time.",
            "declare the options of logs once, for all nodes",
        )
    ]


def test_a_trail_that_is_shorter_than_the_rest_is_rarely_meant():
    cluster = logs_site(audit_retention_days=7)
    assert list(head(cluster).options["logs"].warnings(cluster)) == [
        (
            "audit_retention_days",
            "The audit trail is kept for 7 days, and other lines for 14.",
            "raise `audit_retention_days`, or lower `retention_days`",
        )
    ]


@pytest.mark.parametrize(("text", "size"), [("8M", 8 << 20), ("50G", 50 << 30), ("2T", 2 << 40)])
def test_sizes(text, size):
    assert size_bytes(text) == size


def test_certificates():
    """The first name is the subject, by which the gate knows a node: it is never that of another service."""
    made = head(SITE).options["logs"]
    sender, server = made.certificates(SITE, head(SITE))
    assert (sender.names[0], sender.group, sender.serves) == ("head1", "root", ())
    assert (server.names[0], server.group) == (head(SITE).fqdn, "systemd-journal-remote")
    assert server.serves == ("10.9.0.10:19532",)
    assert [one.names[0] for one in made.certificates(SITE, worker(SITE))] == ["gpu1"]
    loki = logs_site("loki")
    assert [one.group for one in head(loki).options["logs"].certificates(loki, head(loki))] == [
        "alloy",
        "loki",
    ]
    assert options("opensearch").certificates(SITE, head(SITE)) == ()


def test_what_listens():
    assert [(one.program, one.ports) for one in options().listeners(head(SITE))] == [
        ("systemd", (19532, 19532))
    ]
    assert options().listeners(worker(SITE)) == ()
    http, grpc = options("loki").listeners(head(SITE))
    assert (http.ports, grpc.ports, grpc.purposes) == ((3100, 3100), (9095, 9095), frozenset())
    assert options("elastic").listeners(head(SITE)) == ()


@pytest.mark.parametrize(
    ("kind", "reader"), [("journal", "journal"), ("loki", "loki"), ("elastic", "search")]
)
def test_where_rackwright_logs_reads(kind, reader):
    store = options(kind, retention_days=3).log_store(SITE)
    assert (store.kind, store.server, store.retention_days, store.audit_retention_days) == (
        reader,
        "head1",
        3,
        90,
    )
    assert "search_manager" not in json.dumps(dict(store.settings))


def test_another_server():
    cluster = logs_site(server="gpu1")
    made = head(cluster).options["logs"]
    assert made.url(cluster) == "https://10.9.0.11:19532"
    assert (made.is_server(head(cluster)), made.is_server(worker(cluster))) == (False, True)


def test_files_of_a_sender():
    for path, text in texts.sender_files(SITE, options()).items():
        assert text == expected(f"logs/{path.replace('/', '_').strip('_')}"), path
    for path, text in texts.mark_files().items():
        assert text == expected(f"logs/{path.rpartition('/')[2]}"), path


def test_files_of_the_receiver():
    made = options()
    files = {**texts.server_files(SITE, head(SITE), made.store), **texts.keeper_files(SITE, made, made.store)}
    assert len(files) == 8
    for path, text in files.items():
        name = path.rpartition("/")[2] if path.startswith(paths.UNITS) else path.replace("/", "_").strip("_")
        assert text == expected(f"logs/{name}"), path


def test_the_receiver_s_own_bound_is_wider_than_the_keeper_s():
    """It knows neither days nor nodes: a node that floods would have it remove the lines of others."""
    made = LogsOptions.model_validate({"store": {"type": "journal", "max_use": "10G", "keep_free": "4G"}})
    conf = texts.server_files(SITE, head(SITE), made.store)[paths.REMOTE_CONF]
    assert "MaxUse=12800M\nKeepFree=2048M\n" in conf
    settings = json.loads(texts.keeper_settings(made, made.store))
    assert (settings["max_bytes"], settings["keep_free_bytes"]) == (10 << 30, 4 << 30)


def test_only_nodes_of_the_role_get_in():
    cluster = site({"logs": options(), "site_ca": SiteCaOptions()})
    without = worker(cluster).with_options({"site_ca": SiteCaOptions()})
    cluster = cluster.model_copy(update={"nodes": (head(cluster), without)})
    assert json.loads(texts.gate_settings(cluster))["nodes"] == ["head1"]


def test_a_plan_of_the_central_journal():
    plan = planned(SITE, head(SITE))
    assert plan.error is None
    assert changed(plan, "logs", "package") == ["systemd-journal-remote"]
    assert set(changed(plan, "logs", "unit")) == {
        paths.MARK_TIMER,
        paths.PACKAGED_REMOTE,
        paths.PACKAGED_SOCKET,
        paths.RECEIVER_UNIT,
        paths.SOCKET,
        paths.KEEPER_TIMER,
        paths.UPLOAD,
    }
    assert content(plan, paths.KEEPER).startswith("#!/usr/bin/python3 -IS\n")
    assert content(plan, gate.SETTINGS) == texts.gate_settings(SITE)
    assert content(plan, keeper.SETTINGS) is not None
    on_worker = planned(SITE, worker(SITE))
    assert content(on_worker, paths.GATE) is None
    assert paths.UPLOAD in changed(on_worker, "logs", "unit")
    assert "! systemctl is-failed" in commands(on_worker, "Start sending the journal")[-1]


def test_rate_limits_are_the_business_of_tuning():
    roles = {"logs": options(), "site_ca": SiteCaOptions(), "tuning": TuningOptions()}
    cluster = site(roles)
    plan = planned(cluster, worker(cluster))
    written = [change.target for entry in plan.operations if entry.role == "logs" for change in entry.changes]
    assert not [path for path in written if "journald" in path]


def test_files_of_loki():
    cluster = logs_site("loki")
    made = options("loki")
    conf = loki_texts.loki_config(cluster, head(cluster), made, made.store)
    assert conf == expected("logs/loki.yml")
    found = yaml.safe_load(conf)
    assert found["server"]["http_tls_config"]["client_auth_type"] == "RequireAndVerifyClientCert"
    assert found["limits_config"]["retention_stream"] == [
        {"selector": '{audit="yes"}', "priority": 1, "period": "2160h"}
    ]
    assert loki_texts.alloy_config(cluster, worker(cluster), made) == expected("logs/config.alloy")


def test_every_field_that_is_read_from_loki_is_sent():
    targets = {rule.target for rule in loki_texts.RULES} | {"job"}
    assert targets >= {"node", *METADATA} - {"node", "kind", "device", "source", "code", "severity"}
    text = loki_texts.alloy_config(SITE, worker(SITE), options("loki"))
    dropped = re.search(r"stage.label_drop \{\n    values = \[(.*)\]", text)[1]
    assert not {f'"{label}"' for label in LABELS} & set(dropped.split(", "))
    assert {f'"{label}"' for label in targets - {*LABELS}} == set(dropped.split(", "))


def test_the_loki_that_is_installed_is_grafana_s():
    """By exact versions, which the distribution's program for genetics does not have, from the declared archive."""
    cluster = logs_site("loki")
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    (command,) = commands(plan, "Install Alloy and, on the server, Loki")
    assert "alloy=1.11.3-1" in command
    assert "loki=3.5.7" in command
    assert options("loki").held_packages(head(cluster)) == ("alloy", "loki")
    on_worker = planned(cluster, worker(cluster))
    assert "loki=" not in commands(on_worker, "Install Alloy and, on the server, Loki")[0]
    assert any("mirror.example.com/vendor" in (content(plan, path) or "") for path in _targets(plan))


def _targets(plan):
    return [change.target for entry in plan.operations for change in entry.changes]


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_s_complaints_are_found_with_their_fields(kind):
    line = KERNEL_LINES[kind]
    found = next((one.kind, re.match(one.pattern, line)) for one in COMPLAINTS if re.match(one.pattern, line))
    assert found[0] == kind
    groups = found[1].groupdict()
    assert groups["pci"] or groups.get("source")
    assert "(?P<" not in oniguruma(COMPLAINTS[0].pattern)
    assert not re.search(r"\(\?[=!<][=!]?[^A-Za-z]|\\[1-9]", "".join(one.pattern for one in COMPLAINTS)), (
        "RE2 has none"
    )


def test_files_of_filebeat_and_rsyslog():
    elastic, opensearch = options("elastic"), options("opensearch")
    node = worker(SITE)
    text = search_texts.filebeat_yml(node, elastic.store, secret)
    assert text == expected("logs/filebeat.yml")
    assert yaml.safe_load(text)["output.elasticsearch"]["password"] == secret("search_writer")
    assert search_texts.rsyslog_conf(node, opensearch.store, secret) == expected("logs/rsyslog.conf")
    assert search_texts.rsyslog_unit(node) == expected("logs/rackwright-logs-rsyslog.service")
    assert json.loads(search_texts.login(opensearch.store, secret)) == {
        "user": "manager",
        "password": secret("search_manager"),
    }


@pytest.mark.parametrize("kind", ["elastic", "opensearch"])
def test_what_the_search_cluster_holds(kind):
    made = options(kind)
    found = declared_objects(made, made.store)
    assert json.dumps(found, indent=1) + "\n" == expected(f"logs/{kind}-objects.json")
    template = next(one["body"] for one in found if one["path"] == "/_index_template/rackwright-lines")
    mapped = template["template"]["mappings"]["properties"]
    assert set(mapped) >= {*FIELDS, "@timestamp", "job", "kind", "device", "code"}
    pipeline = next(one["body"]["processors"] for one in found if "_ingest" in one["path"])
    assert {one["set"]["value"] for one in pipeline if "set" in one} == {True, *KINDS}


def test_saved_objects():
    store = options("opensearch").store
    lines = search_texts.saved_ndjson(store).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [one["id"] for one in saved_objects(store)]
    for one in map(json.loads, lines):
        for reference in one["references"]:
            assert reference["id"] in [other["id"] for other in saved_objects(store)]


@pytest.mark.parametrize("kind", ["elastic", "opensearch"])
def test_a_plan_of_a_search_cluster(kind):
    cluster = logs_site(kind)
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    text = content(plan, objects.SETTINGS)
    assert json.loads(text)["nodes"] == ["gpu1", "gpu2", "head1"]
    assert "search_writer" not in text
    assert commands(plan, "Set up the search cluster")[0].endswith("logs-objects --apply")
    on_worker = planned(cluster, worker(cluster))
    assert content(on_worker, objects.SETTINGS) is None
    assert content(on_worker, paths.SEARCH_LOGIN) is None
    assert options(kind).supplied_secrets == ("search_writer", "search_manager")


def test_passwords_in_a_file_of_rsyslog():
    assert search_texts.rainerscript('a"b\\c$d') == '"a\\"b\\\\c\\$d"'


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
@pytest.mark.parametrize("kind", STORES)
def test_it_is_planned_on_every_release(os, kind):
    cluster = site({"logs": options(kind), "site_ca": SiteCaOptions()}, os=os)
    assert problems(cluster) == []
    for node in (head(cluster), worker(cluster)):
        assert planned(cluster, node).error is None
