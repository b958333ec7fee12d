"""The slurm_exporter role: options, what a head gets, its checks."""

from __future__ import annotations

import json

import pytest

from rackwright.facts.files import AtPath, declared_tree
from rackwright.model.monitoring import Scrape
from rackwright.model.services import Listener
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import RELEASES
from rackwright.roles.prometheus.targets import jobs_of
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm_exporter import texts
from rackwright.roles.slurm_exporter.options import COLLECTOR, SlurmExporterOptions
from rackwright.roles.slurm_exporter.verify import CHECKS
from rackwright.workload.slurm.metrics import collector, server, snapshot
from rackwright.workload.slurm.metrics.snapshot import Snapshot
from tests.factories import make_cluster, make_node
from tests.unit.roles.fake_facts import asked, file, tree, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected

PROGRAM = "/usr/libexec/rackwright/slurm-exporter"
SERVER = "rackwright-slurm-exporter.service"
DROP_IN = f"/etc/systemd/system/{SERVER}.d/90-rackwright.conf"


def site(options=None, *, slurm=True, ca=True):
    roles = {
        **({"site_ca": SiteCaOptions()} if ca else {}),
        **({"slurm": SlurmOptions()} if slurm else {}),
        "slurm_exporter": options or SlurmExporterOptions(),
    }
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=roles),
        make_node("head2", 11, NodeRole.HEAD, options=roles, primary=False),
        make_node("gpu1", 12, NodeRole.WORKER, options=roles),
    )


SITE = site()
HEAD = SITE.primary
OPTIONS = HEAD.options["slurm_exporter"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"port": 0}, "Input should be greater than or equal to 1"),
        ({"interval_seconds": 5}, "Input should be greater than or equal to 10"),
        ({"interval_seconds": 601}, "Input should be less than or equal to 600"),
        ({"timeout_seconds": 0}, "Input should be greater than or equal to 1"),
        ({"timeout_seconds": 11}, "3 queries of 11 s take longer than the interval of 30 s."),
        ({"interval_seconds": 10}, "3 queries of 8 s take longer than the interval of 10 s."),
        ({"accounting_seconds": -1}, "Input should be greater than or equal to 0"),
        ({"max_jobs": 100_001}, "Input should be less than or equal to 100000"),
        ({"max_accounts": 0}, "Input should be greater than or equal to 1"),
        ({"user": "root"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(SlurmExporterOptions, given) == [sentence]


def test_the_hint_is_an_interval_that_fits():
    assert SlurmExporterOptions(interval_seconds=10, timeout_seconds=3).timeout_seconds == 3


def problems(cluster, options=OPTIONS):
    return [(where, what) for where, what, _ in options.problems(cluster)]


def test_problems():
    assert problems(SITE) == []
    assert problems(site(slurm=False)) == [
        ("", "head1 does not run the role slurm, which slurm_exporter reads.")
    ]
    for name in ("gpu1", "head9"):
        elsewhere = SlurmExporterOptions(node=name)
        assert problems(site(elsewhere), elsewhere) == [("node", f"{name} is not a head of this cluster.")]
    assert [what for _, what in problems(site(ca=False))] == [
        "head1 has no certificate for slurm_exporter: metrics and their password would cross the network unencrypted."
    ]


def test_one_head_serves_them():
    def runs(options):
        return [node.name for node in SITE.nodes if options.runs_on(node)]

    assert runs(SlurmExporterOptions()) == ["head1"]
    assert runs(SlurmExporterOptions(node="head2")) == ["head2"]


def test_what_it_offers():
    assert OPTIONS.scrapes(SITE, HEAD) == (
        Scrape("slurm", 9341, names_nodes=True, password_secret="monitoring_password"),
    )
    assert jobs_of(make_cluster(HEAD))["slurm"] == (
        (HEAD, Scrape("slurm", 9341, names_nodes=True, password_secret="monitoring_password")),
    )
    assert OPTIONS.listeners(HEAD) == (Listener("slurm-exporter", (9341, 9341)),)
    (certificate,) = OPTIONS.certificates(SITE, HEAD)
    assert (certificate.group, certificate.serves) == ("slurm-exporter", ("10.9.0.10:9341",))
    assert OPTIONS.unit_files(HEAD) == (
        f"/etc/systemd/system/{SERVER}",
        f"/etc/systemd/system/{COLLECTOR}",
        DROP_IN,
    )


PLAN = planned(SITE, HEAD)


def test_the_units():
    assert content(PLAN, f"/etc/systemd/system/{SERVER}") == expected("slurm_exporter/server.service")
    assert content(PLAN, f"/etc/systemd/system/{COLLECTOR}") == expected("slurm_exporter/collector.service")
    assert content(PLAN, DROP_IN) == expected("slurm_exporter/90-rackwright.conf")


def test_the_programs():
    assert content(PLAN, PROGRAM) == expected("slurm_exporter/slurm-exporter")
    other = expected("slurm_exporter/slurm-exporter").replace("metrics.server", "metrics.collector")
    assert content(PLAN, texts.COLLECTOR_PROGRAM) == other


def test_modules_are_written_whole_before_the_units_start():
    names = [operation.name for operation in PLAN.operations if operation.role == "slurm_exporter"]
    assert names[0:2] == ["Create group slurm_exporter", "Create user slurm_exporter"]
    assert names[-2:] == ["Start the slurm_exporter collector", "Run slurm_exporter"]
    assert "Write the modules of slurm_exporter" in names
    wanted = {f"{texts.MODULES}/{name}": text for name, text in texts.modules().items()}
    assert {path: content(PLAN, path) for path in wanted} == wanted
    assert {
        f"rackwright/workload/slurm/metrics/{name}.py" for name in ("collector", "server", "ask", "access")
    } <= set(texts.modules())


def test_no_command_line_has_the_password():
    reported = " ".join(command for operation in PLAN.operations for command in operation.commands)
    assert "monitoring_password" not in reported.replace("(secret metrics_password)", "")
    assert "python3-prometheus-client" in " ".join(commands(PLAN, "Install slurm_exporter"))


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    roles = {"slurm_exporter": SlurmExporterOptions()}
    plan = planned(SITE, make_node("head1", 10, NodeRole.HEAD, os=os, options=roles))
    assert plan.error is None
    assert content(plan, f"/etc/systemd/system/{COLLECTOR}") == expected("slurm_exporter/collector.service")


def test_nothing_on_other_nodes():
    for node in SITE.nodes[1:]:
        assert not [one for one in planned(SITE, node).operations if one.role == "slurm_exporter"]
        assert claimed("slurm_exporter", CHECKS, node) == ()


def test_the_programs_understand_their_command_lines(monkeypatch):
    """What the units start them with, for other than default options too."""
    options = SlurmExporterOptions(
        interval_seconds=60, timeout_seconds=20, accounting_seconds=0, max_jobs=7, max_accounts=9
    )
    reported = []
    monkeypatch.setattr(collector, "run", reported.append)
    collector.main(texts.collector_arguments(options))
    assert reported == [collector.Settings(texts.SNAPSHOT, 60, 20, 0, 7, 9)]
    ours = ["--web.listen-address=10.9.0.10:9341", f"--web.config.file={options.web_config}"]
    assert server.settings_of([*ours, *texts.arguments(SITE, HEAD, options)]) == server.Settings(
        "10.9.0.10", 9341, "/etc/rackwright-exporters/slurm_exporter/web.yml", texts.SNAPSHOT, 200
    )


FILES = "slurm_exporter's programs and units are those of this rackwright version"
RUNS = "the slurm_exporter collector is running"
ANSWERS = "Slurm answers the slurm_exporter collector"
KEPT = "users cannot read Slurm's data about other users' jobs"


def judge(name, answers):
    return judged("slurm_exporter", CHECKS, name, SITE, HEAD, FakeHost(answers))


def test_every_check_of_exporters_and_our_own():
    names = claimed("slurm_exporter", CHECKS, HEAD)
    assert names[-4:] == (FILES, RUNS, ANSWERS, KEPT)
    assert "slurm_exporter runs" in names
    assert len(names) == 8


def test_without_tools_no_check_passes():
    for name in claimed("slurm_exporter", CHECKS, HEAD):
        without = judged("slurm_exporter", CHECKS, name, SITE, HEAD, FakeHost({}))
        assert without.status == "UNKNOWN", without
        silent = judged("slurm_exporter", CHECKS, name, SITE, HEAD, FakeHost({}, always=""))
        assert silent.status in ("UNKNOWN", "FAIL"), silent


def on_disk(**changed):
    answers = {}
    for path, text in {**texts.programs(HEAD, OPTIONS), **texts.units(HEAD, OPTIONS)}.items():
        mode = "755" if "libexec" in path else "644"
        answers |= file(path, changed.get(path, text), mode)
    return answers | tree(texts.MODULES, declared_tree(texts.modules()))


def test_the_files_check():
    assert judge(FILES, on_disk()).status == "PASS"
    changed = judge(FILES, on_disk(**{texts.COLLECTOR_PROGRAM: "#!/bin/sh\n"}))
    assert changed.status == "FAIL"
    assert changed.evidence.startswith(f"{texts.COLLECTOR_PROGRAM} ")
    other = {
        name: text + "# x\n" if name.endswith("ask.py") else text for name, text in texts.modules().items()
    }
    reported = judge(FILES, on_disk() | tree(texts.MODULES, declared_tree(other)))
    assert (reported.status, reported.evidence) == (
        "FAIL",
        f"in {texts.MODULES}: rackwright/workload/slurm/metrics/ask.py differs",
    )


def test_the_collector_check():
    assert judge(RUNS, unit(COLLECTOR)).status == "PASS"
    dead = judge(RUNS, unit(COLLECTOR, "failed"))
    assert (dead.status, dead.evidence) == ("FAIL", f"{COLLECTOR} is failed")


ASK = f"sh -c 'cat /proc/uptime && head -c 4096 {texts.SNAPSHOT} 2>/dev/null | head -n 1'"


@pytest.mark.parametrize(
    ("reported", "status", "evidence"),
    [
        (Snapshot(990.0, 990.0, None, b"x\n"), "PASS", "Slurm answered 10 s ago"),
        (Snapshot(1001.0, 1001.0, None, b"x\n"), "PASS", "Slurm answered 0 s ago"),
        (
            Snapshot(990.0, 900.0, "`squeue` exited 1 saying: Unable to contact"),
            "FAIL",
            "Slurm does not answer the collector: `squeue` exited 1 saying: Unable to contact",
        ),
        (Snapshot(800.0, 800.0), "FAIL", "the collector last ran 200 s ago, but should run every 30 s"),
        (Snapshot(990.0), "UNKNOWN", f"{texts.SNAPSHOT} has neither metrics nor an error"),
        (None, "FAIL", f"the collector has not written {texts.SNAPSHOT}"),
        ("slurm_nodes 3.0\n", "UNKNOWN", f"{texts.SNAPSHOT} begins with slurm_nodes 3.0"),
        (
            "# rackwright-slurm-metrics x\n",
            "UNKNOWN",
            f"{texts.SNAPSHOT} cannot be read: it is not valid JSON: Expecting value: line 1 column 1 (char 0)",
        ),
    ],
)
def test_the_answers_check(reported, status, evidence, tmp_path):
    if isinstance(reported, Snapshot):
        path = tmp_path / "metrics"
        snapshot.write(str(path), reported)
        reported = path.read_text().splitlines(keepends=True)[0]
    found = judge(ANSWERS, {ASK: "1000.00 900.00\n" + (reported or "")})
    assert (found.status, found.evidence) == (status, evidence)


def test_a_clock_that_cannot_be_read():
    assert judge(ANSWERS, {ASK: "x\n"}).evidence == "/proc/uptime contains x"


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ("directory|750|slurm|slurm-exporter|60", "PASS"),
        ("directory|755|slurm|slurm-exporter|60", "FAIL"),
        ("directory|750|slurm|users|60", "FAIL"),
        ("absent", "FAIL"),
    ],
)
def test_the_access_check(found, status):
    folder = texts.SNAPSHOT.rpartition("/")[0]
    assert judge(KEPT, {asked(AtPath().command(folder, digest_only=True)): f"{found}\n"}).status == status


def test_the_head_of_a_snapshot_is_what_the_check_reads(tmp_path):
    """The check has its own reader, since it runs where prometheus_client may not be."""
    path = tmp_path / "metrics"
    snapshot.write(str(path), Snapshot(5.0, 4.0, None))
    first = path.read_text().splitlines()[0]
    assert json.loads(first.partition("{")[1] + first.partition("{")[2]) == {
        "format": 1, "attempted": 5.0, "collected": 4.0, "error": None,
    }  # fmt: skip
