"""The snmp_exporter role: devices and credentials, modules, labels, and its checks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rackwright.exporters import drop_in
from rackwright.model.monitoring import Probe, Scrape
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import RELEASES
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.roles.snmp_exporter import texts
from rackwright.roles.snmp_exporter.modules import KINDS, MODULES, modules_data
from rackwright.roles.snmp_exporter.options import SnmpExporterOptions
from rackwright.roles.snmp_exporter.verify import CHECKS
from rackwright.secrets.secret import Secret
from tests.factories import make_cluster, make_node
from tests.unit.roles.fake_facts import file, files
from tests.unit.roles.fake_host import FakeHost, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, site

FOLDER = "/etc/rackwright-exporters/snmp_exporter"
READS = "snmp_exporter has its declared settings"
CREDENTIALS = "only snmp_exporter can read its credentials"
SECRETS = {"snmp_password": "one", "snmp_priv_password": "two", "snmp_community": "three"}
AUTHS = {
    "site": {"user": "monitor", "password": "snmp_password", "priv_password": "snmp_priv_password"},
    "old": {"version": 2, "community": "snmp_community"},
}
DEVICES = {
    "su1-leaf1": {"address": "10.9.0.201", "auth": "site", "rack": "r1"},
    "su1-leaf2": {"address": "10.9.0.202", "auth": "site"},
    "spine1": {"address": "10.9.0.203", "auth": "site", "port": 1161},
    "ups1": {"address": "10.9.0.210", "auth": "site", "kind": "ups", "rack": "r1"},
    "pdu1": {"address": "10.9.0.211", "auth": "old", "kind": "pdu", "modules": ["apc_pdu"]},
}


def options(**changes):
    return SnmpExporterOptions.model_validate({"auths": AUTHS, "devices": DEVICES, **changes})


OPTIONS = options()
SITE = site({"snmp_exporter": OPTIONS, "site_ca": SiteCaOptions()})
HEAD = head(SITE)


def device(**changes):
    return {"auths": AUTHS, "devices": {"d": {"address": "10.0.0.1", "auth": "site", **changes}}}


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    class Store:
        def missing(self, names):
            return tuple(name for name in names if name not in SECRETS)

        def get(self, name):
            return Secret(name, SECRETS[name])

    monkeypatch.setattr("rackwright.roles.snmp_exporter.verify.store_of", lambda cluster: Store())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (device(auth="sit"), "d has the credentials sit, which `auths` does not declare."),
        (device(modules=["if_mob"]), "d names the module if_mob, which rackwright does not have."),
        (device(modules=["system", "system"]), "A module is named twice."),
        (device(kind="pdu"), "PDUs have no common MIB: set the one to read in `modules`."),
        (device(kind="toaster"), "Input should be 'pdu', 'switch' or 'ups'"),
        (
            {"auths": {"a": {"user": "u", "password": "p"}}},
            "SNMPv3 needs `user`, `password` and `priv_password`, and has no `community`.",
        ),
        (
            {"auths": {"a": {"version": 2, "community": "c", "user": "u"}}},
            "SNMPv2c needs `community`, and has neither a user nor passwords.",
        ),
        ({"auths": {"a": {"version": 1}}}, "Input should be 2 or 3"),
        (
            {"devices": {"Leaf 1": {"address": "10.0.0.1", "auth": "site"}}, "auths": AUTHS},
            "String should match pattern '^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$'",
        ),
        (
            {"module_files": ["snmp.yml"]},
            "Not a valid absolute path: letters, digits, `.`, `_` and `-` between slashes.",
        ),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(SnmpExporterOptions, given) == [sentence]


def test_a_site_s_own_modules():
    own = SnmpExporterOptions.model_validate(
        {**device(modules=["arista_sw"]), "module_files": ["/etc/snmp.yml"]}
    )
    assert own.scrapes(SITE, HEAD)[1].parameters["module"] == ("arista_sw",)
    assert texts.arguments(SITE, HEAD, own)[-1] == "--config.file=/etc/snmp.yml"


def test_what_is_warned_of():
    found = options(devices={**DEVICES, "sw9": {"address": "10.9.0.11", "auth": "site"}})
    nodes = (
        make_node("head1", 10, NodeRole.HEAD, options={"snmp_exporter": found}),
        make_node("gpu1", 11, switches=("su1-leaf1", "su1-leaf2", "su1-leaf3", "su1-leaf4")),
    )
    assert list(found.warnings(make_cluster(*nodes))) == [
        ("auths.old", "SNMPv2c sends the community old in the clear.", "use version 3"),
        (
            "devices.sw9.address",
            "10.9.0.11 is gpu1, a node, not a separate device.",
            "the address at which the device answers SNMP",
        ),
        ("devices", "The leaf switch su1-leaf3 and 1 more is not monitored.", "add it to `devices`"),
    ]
    silent = SnmpExporterOptions.model_validate({**device(kind="ups"), "auths": {"site": AUTHS["site"]}})
    assert list(silent.warnings(make_cluster(*nodes))) == []


def test_secrets_are_the_site_s():
    assert OPTIONS.supplied_secrets == ("snmp_password", "snmp_priv_password", "snmp_community")


def test_what_prometheus_reads():
    """Devices with the same credentials and modules are one scrape; a leaf carries the label of its nodes."""
    leaves = ("su1-leaf1", "su1-leaf2")
    nodes = (
        make_node("head1", 10, NodeRole.HEAD),
        make_node("gpu1", 11, switches=leaves),
        make_node("gpu2", 12, switches=leaves),
    )
    cluster = make_cluster(*nodes)
    own, *found = OPTIONS.scrapes(cluster, cluster.primary)
    assert own == Scrape("snmp", 9116, password_secret="monitoring_password")
    leaf = {"kind": "switch", "leaf": "su1-leaf1-2"}
    assert [(dict(one.parameters), one.probes) for one in found] == [
        (
            {"auth": ("site",), "module": ("system,if_mib,entity_sensor",)},
            (
                Probe("10.9.0.201", {"switch": "su1-leaf1", **leaf, "rack": "r1"}),
                Probe("10.9.0.202", {"switch": "su1-leaf2", **leaf}),
                Probe("10.9.0.203:1161", {"switch": "spine1", "kind": "switch"}),
            ),
        ),
        (
            {"auth": ("site",), "module": ("system,ups_mib",)},
            (Probe("10.9.0.210", {"device": "ups1", "kind": "ups", "rack": "r1"}),),
        ),
        (
            {"auth": ("old",), "module": ("apc_pdu",)},
            (Probe("10.9.0.211", {"device": "pdu1", "kind": "pdu"}),),
        ),
    ]
    assert {(one.path, one.interval_seconds, one.timeout_seconds) for one in found} == {("/snmp", 60, 30)}


def test_whole_files():
    assert texts.modules() == expected("snmp_exporter/modules.yml")
    assert texts.auths(OPTIONS, SECRETS.__getitem__) == expected("snmp_exporter/auths.yml")
    assert drop_in(SITE, HEAD, OPTIONS, texts.arguments(SITE, HEAD, OPTIONS)) == expected(
        "snmp_exporter/unit.conf"
    )


def test_modules_fit_together():
    """What is read is walked or got, each object once; every kind's modules are there; no number stands for two."""
    assert {module for modules in KINDS.values() for module in modules} <= MODULES.keys()
    for name, data in modules_data().items():
        got = [oid.removesuffix(".0") for oid in data.get("get", [])]
        walked = data.get("walk", [])
        assert len({*got, *walked}) == len(got) + len(walked), name
        for metric in data["metrics"]:
            assert metric["oid"] in (walked if "indexes" in metric else got), (name, metric["name"])
            for lookup in metric.get("lookups", []):
                assert lookup["oid"] in walked
    numbers = [metric.oid for metrics in MODULES.values() for metric in metrics]
    assert len(set(numbers)) == len(numbers)


def test_what_a_switch_and_a_ups_answered_has_every_metric():
    """Recorded on a lab node: each object of the modules came back with its name and labels."""
    recorded = (Path(__file__).parents[1] / "alerts/recorded/snmp.prom").read_text()
    for metrics in MODULES.values():
        for metric in metrics:
            row = next(
                line
                for line in recorded.splitlines()
                if line.startswith((f"{metric.name} ", f"{metric.name}{{"))
            )
            for index in metric.indexes:
                assert f'{index.name}="' in row


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = site({"snmp_exporter": OPTIONS, "site_ca": SiteCaOptions()}, os=os)
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "snmp_exporter"]
    assert names[-3:] == [
        "Write the snmp_exporter settings",
        "Write snmp_exporter's credentials",
        "Run snmp_exporter",
    ]
    assert content(plan, f"{FOLDER}/modules.yml") == texts.modules()
    auths = yaml.safe_load(content(plan, f"{FOLDER}/auths.yml") or "")["auths"]
    assert auths["site"]["priv_password"] == "(secret snmp_priv_password)"


def found(name, answers):
    result = judged("snmp_exporter", CHECKS, name, SITE, HEAD, FakeHost(answers))
    return result.status, result.evidence


def test_its_modules_are_compared():
    path = f"{FOLDER}/modules.yml"
    assert found(READS, files({path: texts.modules()})) == ("PASS", path)
    assert found(READS, files({path: texts.modules() + "x: 1\n"})) == (
        "FAIL",
        f"{path} is not as declared: x: 1",
    )
    assert found(READS, {})[0] == "UNKNOWN"


def test_its_credentials_are_compared():
    path, text = f"{FOLDER}/auths.yml", texts.auths(OPTIONS, SECRETS.__getitem__)
    ours = {"group": "prometheus", "digest_only": True}
    assert found(CREDENTIALS, file(path, text, "640", **ours)) == ("PASS", f"{path} is 640 root:prometheus")
    assert found(CREDENTIALS, file(path, text + " ", "640", **ours)) == ("FAIL", f"{path} is not as declared")
    assert found(CREDENTIALS, file(path, text, "644", **ours))[0] == "FAIL"
    assert found(CREDENTIALS, {})[0] == "UNKNOWN"


def test_without_a_secret_its_credentials_are_not_known(monkeypatch):
    monkeypatch.delitem(SECRETS, "snmp_community")
    assert found(CREDENTIALS, {}) == ("UNKNOWN", "the secrets store lacks snmp_community")
