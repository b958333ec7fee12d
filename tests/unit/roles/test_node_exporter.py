"""The node_exporter role: its command line, the folder of textfiles, and its checks."""

from __future__ import annotations

import pytest

from rackwright.exporters import drop_in
from rackwright.facts.files import AtPath
from rackwright.model.monitoring import Scrape
from rackwright.osfamily.known import RELEASES
from rackwright.roles.node_exporter import verify
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.node_exporter.texts import arguments
from rackwright.roles.node_exporter.verify import CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.textfiles import TEXTFILES
from tests.unit.roles.fake_facts import asked
from tests.unit.roles.fake_host import FakeHost, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, site, worker


def cluster(os=None, **changes):
    roles = {"node_exporter": NodeExporterOptions(**changes), "site_ca": SiteCaOptions()}
    return site(roles) if os is None else site(roles, os=os)


SITE = cluster()
NODE = worker(SITE)
OPTIONS = NodeExporterOptions()
READABLE = "node_exporter can read every textfile"
TEXTS = "only root writes textfiles for node_exporter"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"port": 0}, "Input should be greater than or equal to 1"),
        ({"units": ["--flag"]}, "String should match pattern '^[A-Za-z0-9][A-Za-z0-9@._:-]{0,199}$'"),
        ({"collectors": {"Wifi": True}}, "String should match pattern '^[a-z][a-z0-9_-]{1,40}$'"),
        ({"collectors": {"wifi": "maybe"}}, "Input should be a valid boolean, unable to interpret input"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(NodeExporterOptions, given) == [sentence]


def test_the_whole_unit():
    assert drop_in(SITE, NODE, OPTIONS, arguments(SITE, NODE, OPTIONS)) == expected("node_exporter/unit.conf")


def test_chosen_collectors_and_units():
    found = arguments(
        SITE, NODE, NodeExporterOptions(collectors={"wifi": True, "processes": False}, units=("a.b",))
    )
    assert [one for one in found if "=" not in one] == [
        "--collector.ethtool",
        "--collector.mountstats",
        "--no-collector.processes",
        "--collector.systemd",
        "--collector.wifi",
    ]
    assert "--collector.systemd.unit-include=^(a\\.b)$" in found


def test_what_it_serves():
    assert OPTIONS.scrapes(SITE, NODE) == (Scrape("node", 9100),)


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    there = cluster(os)
    plan = planned(there, worker(there))
    assert plan.error is None
    assert [entry.name for entry in plan.operations if entry.role == "node_exporter"] == [
        "Make the folder of node_exporter's unit settings",
        "Write the command line of node_exporter",
        "Install node_exporter",
        "Let root own the folder around data of node_exporter",
        "Make the folder of exporters",
        "Make the folder of node_exporter",
        "Issue the certificate node_exporter",
        "Write who may read node_exporter",
        "Restrict the textfile folder to root",
        "Run node_exporter",
    ]
    node = worker(there)
    path = OPTIONS.drop_in(node)
    assert content(plan, path) == drop_in(there, node, OPTIONS, arguments(there, node, OPTIONS))
    assert OPTIONS.names(node).packages[0] in commands(plan, "Install node_exporter")[0]


def folder(path, owner="root", mode="755"):
    return {asked(AtPath().command(path, digest_only=True)): f"directory|{mode}|{owner}|{owner}|0\n"}


AROUND = TEXTFILES.rpartition("/")[0]


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        ({**folder(AROUND), **folder(TEXTFILES)}, "PASS", f"{TEXTFILES} is 755 root:root"),
        (
            {**folder(AROUND, "prometheus"), **folder(TEXTFILES)},
            "FAIL",
            f"{AROUND} is 755 prometheus:prometheus, not 755 root:root",
        ),
        (
            {**folder(AROUND), **folder(TEXTFILES, mode="777")},
            "FAIL",
            f"{TEXTFILES} is 777 root:root, not 755 root:root",
        ),
        ({}, "UNKNOWN", None),
    ],
)
def test_who_writes_textfiles(answers, status, evidence):
    found = judged("node_exporter", CHECKS, TEXTS, SITE, NODE, FakeHost(answers))
    assert found.status == status
    assert evidence in (None, found.evidence)


def test_it_claims_what_every_exporter_claims():
    assert [check.name for check in CHECKS] == [
        "node_exporter runs",
        "node_exporter is started as declared",
        "node_exporter accepts only the declared password",
        "node_exporter answers on its address, and requires its password",
        READABLE,
        TEXTS,
    ]


def reading():
    return verify._READ % ("prometheus", TEXTFILES)


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        ({reading(): "read\n"}, "PASS", f"prometheus can read every file in {TEXTFILES}"),
        (
            {reading(): f"{TEXTFILES}/health.prom\nread\n"},
            "FAIL",
            f"prometheus cannot read {TEXTFILES}/health.prom",
        ),
        ({reading(): f"{TEXTFILES}/health.prom\n"}, "UNKNOWN", f"{TEXTFILES} was not read to its end"),
        ({reading(): ""}, "UNKNOWN", f"{TEXTFILES} was not read to its end"),
        ({}, "UNKNOWN", None),
    ],
)
def test_the_exporter_reads_the_textfiles(answers, status, evidence):
    found = judged("node_exporter", CHECKS, READABLE, SITE, NODE, FakeHost(answers))
    assert found.status == status
    assert evidence in (None, found.evidence)
