"""The ipmi_exporter role: whose BMC is read from where, with which rights, and its checks."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
import yaml

from rackwright.errors import RackwrightError
from rackwright.exporters import drop_in
from rackwright.model.monitoring import Probe, Scrape
from rackwright.model.types import Platform
from rackwright.osfamily.known import RELEASES
from rackwright.render import render
from rackwright.roles.ipmi_exporter import texts
from rackwright.roles.ipmi_exporter.options import IpmiExporterOptions
from rackwright.roles.ipmi_exporter.verify import CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.secrets.secret import Secret
from tests.unit.roles.fake_facts import file, files
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, site, worker

PATH = "/etc/rackwright-exporters/ipmi_exporter/ipmi.yml"
READS, OWN = "ipmi_exporter has its declared settings", "this node's BMC answers in-band"
LOCAL = IpmiExporterOptions(exclude_sensors=(2, 29))
REMOTE = IpmiExporterOptions.model_validate(
    {"bmcs": {"gpu[1-2]": "10.20.0.11", "head1": "10.20.0.1"}, "workarounds": ["opensesspriv"]}
)
SECRETS = {"bmc_monitor_password": "pass#1"}


def cluster(options, **changes):
    return site({"ipmi_exporter": options, "site_ca": SiteCaOptions()}, **changes)


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    class Store:
        def missing(self, names):
            return tuple(name for name in names if name not in SECRETS)

        def get(self, name):
            return Secret(name, SECRETS[name])

    monkeypatch.setattr("rackwright.roles.ipmi_exporter.verify.store_of", lambda cluster: Store())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"bmcs": {"gpu[1-": "10.0.0.1"}}, "gpu[1-: Unbalanced brackets in the range."),
        (
            {"bmcs": {"gpu[1-2]": "10.0.0.1", "gpu2": "10.0.0.9"}},
            "gpu2 is in `gpu[1-2]` and in `gpu2`.",
        ),
        (
            {"bmcs": {"gpu[1-2]": "10.0.0.1", "head1": "10.0.0.2"}},
            "head1 would get 10.0.0.2, the BMC of gpu2.",
        ),
        ({"user": "a name that is long"}, "String should match pattern '^[A-Za-z0-9][A-Za-z0-9._-]{0,15}$'"),
        ({"workarounds": ["a b"]}, "String should match pattern '^[a-z0-9]{1,30}$'"),
        ({"collectors": []}, "Tuple should have at least 1 item after validation, not 0"),
        ({"interval_seconds": 300}, "Input should be less than or equal to 240"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(IpmiExporterOptions, given) == [sentence]


def test_a_bmc_of_no_node():
    there = cluster(REMOTE)
    other = IpmiExporterOptions.model_validate({"bmcs": {"gpu[1-3]": "10.20.0.11"}})
    assert list(other.problems(there)) == [
        ("bmcs", "There is no node gpu3.", "did you mean `gpu1` or `gpu2`?")
    ]
    assert list(REMOTE.problems(there)) == []


def test_what_is_warned_of():
    there = cluster(REMOTE)
    assert list(REMOTE.warnings(there)) == []
    weak = REMOTE.model_copy(update={"driver": "LAN", "privilege": "admin"})
    assert list(weak.warnings(there)) == [
        ("driver", "IPMI 1.5 barely protects the BMCs' password.", "use LAN_2_0 where BMCs support it"),
        ("privilege", "Reading sensors does not need administrator privilege.", "use `privilege: user`"),
    ]


def test_addresses_follow_one_by_one():
    assert REMOTE.addresses == {
        "gpu1": IPv4Address("10.20.0.11"),
        "gpu2": IPv4Address("10.20.0.12"),
        "head1": IPv4Address("10.20.0.1"),
    }


def test_who_reads_which_bmc():
    assert [node.name for node in cluster(LOCAL).running("ipmi_exporter")] == ["head1", "gpu1", "gpu2"]
    assert [node.name for node in cluster(REMOTE).running("ipmi_exporter")] == ["head1"]
    some = IpmiExporterOptions.model_validate({"bmcs": {"gpu1": "10.20.0.11"}})
    assert [node.name for node in cluster(some).running("ipmi_exporter")] == ["head1", "gpu2"]
    none = some.model_copy(update={"local": False})
    assert [node.name for node in cluster(none).running("ipmi_exporter")] == ["head1"]
    assert (REMOTE.supplied_secrets, LOCAL.supplied_secrets) == (("bmc_monitor_password",), ())


def test_what_prometheus_reads():
    there = cluster(REMOTE)
    assert REMOTE.scrapes(there, head(there)) == (
        Scrape(
            "ipmi",
            9290,
            "/ipmi",
            60,
            30,
            {"module": ("bmc",)},
            (
                Probe("10.20.0.11", {"node": "gpu1"}),
                Probe("10.20.0.12", {"node": "gpu2"}),
                Probe("10.20.0.1", {"node": "head1"}),
            ),
        ),
    )
    bare = cluster(LOCAL)
    assert LOCAL.scrapes(bare, worker(bare)) == (
        Scrape("ipmi", 9290, interval_seconds=60, timeout_seconds=30),
    )


def test_both_on_one_head():
    options = IpmiExporterOptions.model_validate({"bmcs": {"gpu[1-2]": "10.20.0.11"}})
    there = cluster(options)
    assert [one.path for one in options.scrapes(there, head(there))] == ["/metrics", "/ipmi"]
    modules = yaml.safe_load(texts.conf(head(there), options, SECRETS.__getitem__))["modules"]
    assert modules["default"]["collectors"] == modules["bmc"]["collectors"] != []


def test_a_container_has_no_bmc_of_its_own():
    there = cluster(LOCAL, platform=Platform.CONTAINER)
    assert LOCAL.scrapes(there, worker(there)) == ()
    assert [one for one in planned(there, worker(there)).operations if one.role == "ipmi_exporter"] == []
    assert claimed("ipmi_exporter", CHECKS, worker(there)) == (OWN,)
    found = judged("ipmi_exporter", CHECKS, OWN, there, worker(there), FakeHost({}))
    assert (found.status, found.evidence) == (
        "OUT OF SCOPE",
        "a container's slots, sensors and links belong to its host",
    )
    reads_others = cluster(REMOTE, platform=Platform.CONTAINER)
    assert "ipmi_exporter runs" in claimed("ipmi_exporter", CHECKS, head(reads_others))


@pytest.mark.parametrize(
    ("options", "where", "name"), [(LOCAL, worker, "own"), (REMOTE, head, "others")], ids=["own", "others"]
)
def test_whole_files(options, where, name):
    there = cluster(options)
    node = where(there)
    assert texts.conf(node, options, SECRETS.__getitem__) == expected(f"ipmi_exporter/{name}.yml")
    text = drop_in(there, node, options, texts.arguments(there, node, options))
    assert text == expected(f"ipmi_exporter/{name}.conf")


def test_only_in_band_it_is_root_and_then_without_capabilities():
    own, others = (expected(f"ipmi_exporter/{name}.conf") for name in ("own", "others"))
    assert "User=root\n" in own
    assert "User=" not in others
    assert "CapabilityBoundingSet=\n" in own


@pytest.mark.parametrize("password", ["two words", 'a"b', "it's", "a\\b"])
def test_a_password_that_freeipmi_cannot_read(password):
    with pytest.raises(RackwrightError, match="bmc_monitor_password has a space or a quote") as refused:
        texts.refuse_unreadable(REMOTE, password)
    assert password not in str(refused.value)
    texts.refuse_unreadable(REMOTE, "pass#1")


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    there = cluster(LOCAL, os=os)
    plan = planned(there, worker(there))
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "ipmi_exporter"]
    assert names[:2] == ["Load the BMC driver at boot", "Load the BMC driver"]
    assert names[-2:] == ["Write the ipmi_exporter settings", "Run ipmi_exporter"]
    assert commands(plan, "Load the BMC driver") == (texts.LOAD_DRIVER,)
    assert content(plan, PATH) == texts.conf(worker(there), LOCAL, SECRETS.__getitem__)


def test_the_password_is_in_its_file_alone():
    there = cluster(REMOTE)
    plan = planned(there, head(there))
    assert plan.error is None
    placeholder = "(secret bmc_monitor_password)"
    holds = {
        change.target
        for entry in plan.operations
        for change in entry.changes
        if placeholder in f"{change.content} {change.before} {change.after} {change.diff}"
    }
    assert holds == {PATH}
    assert not any(placeholder in command for entry in plan.operations for command in entry.commands)


BARE = cluster(LOCAL)
NODE = worker(BARE)
MODULES = render("ipmi_exporter/modules-load.conf.j2")
LOADED = f"sh -c '{texts.DRIVER_LOADED} || echo missing'"
ASKS = "timeout 20 bmc-info --get-device-id"
INFO = "Device ID             : 32\nFirmware Revision     : 9.08\n"
DRIVEN = {**files({texts.MODULES_LOAD: MODULES}), LOADED: "loaded\n", ASKS: INFO}


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        (DRIVEN, "PASS", "the BMC answers, firmware 9.08"),
        (
            {**DRIVEN, LOADED: "missing\n"},
            "FAIL",
            "the module ipmi_devintf is not loaded, so there is no /dev/ipmi0",
        ),
        ({**DRIVEN, **files({texts.MODULES_LOAD: None})}, "FAIL", f"{texts.MODULES_LOAD} is missing"),
        ({**DRIVEN, ASKS: "nothing\n"}, "UNKNOWN", "bmc-info prints no firmware revision"),
        ({**DRIVEN, ASKS: (1, "", "ipmi_ctx_find_inband: no\n")}, "UNKNOWN", None),
        ({}, "UNKNOWN", None),
    ],
)
def test_its_own_bmc(answers, status, evidence):
    found = judged("ipmi_exporter", CHECKS, OWN, BARE, NODE, FakeHost(answers))
    assert found.status == status, found
    assert evidence in (None, found.evidence)


@pytest.mark.parametrize(("options", "where"), [(LOCAL, worker), (REMOTE, head)], ids=["own", "others"])
def test_what_it_reads_is_compared(options, where):
    there = cluster(options)
    node = where(there)
    text = texts.conf(node, options, SECRETS.__getitem__)

    def found(text, mode="640"):
        answers = file(PATH, text, mode, group="prometheus", digest_only=True)
        result = judged("ipmi_exporter", CHECKS, READS, there, node, FakeHost(answers))
        return result.status, result.evidence

    assert found(text) == ("PASS", f"{PATH} is 640 root:prometheus")
    assert found(text + "#") == ("FAIL", f"{PATH} is not as declared")
    assert found(text, "644") == ("FAIL", f"{PATH} is 644 root:prometheus, not 640 root:prometheus")
    assert judged("ipmi_exporter", CHECKS, READS, there, node, FakeHost({})).status == "UNKNOWN"


def test_without_the_password_what_it_reads_is_not_known(monkeypatch):
    monkeypatch.setitem(SECRETS, "other", SECRETS["bmc_monitor_password"])
    there = cluster(REMOTE.model_copy(update={"password": "missing_password"}))
    found = judged("ipmi_exporter", CHECKS, READS, there, head(there), FakeHost({}))
    assert (found.status, found.evidence) == ("UNKNOWN", "the secrets store lacks missing_password")
