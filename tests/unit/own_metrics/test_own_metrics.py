"""`rackwright metrics`: the last run of each command, the last burn-in, verify and drift check; nothing of what never was."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from rackwright.burnin.store import RESULTS
from rackwright.claims.check import CheckResult
from rackwright.cli import app
from rackwright.clusterfile.load import load_cluster
from rackwright.drift.report import LATEST, remember
from rackwright.engine.journal import Journal, last_runs, read_run
from rackwright.own_metrics.burnins import figures
from rackwright.own_metrics.text import metrics_text
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult
from rackwright.status import Status
from rackwright.verify.report import LATEST as VERIFY
from rackwright.verify.report import VerifyReport

CLUSTER = "demo"
FILE = Path("inventory/example-small.yaml")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rackwright"


def samples(text=None):
    found = {}
    for family in text_string_to_metric_families(metrics_text(CLUSTER) if text is None else text):
        for one in family.samples:
            labels = {name: value for name, value in one.labels.items() if name != "cluster"}
            assert one.labels["cluster"] == CLUSTER
            found[one.name, *sorted(labels.items())] = one.value
    return found


def journal(monkeypatch, command, *, exit_status=0, ok=True, broken=None):
    monkeypatch.setattr("sys.argv", ["rackwright", *command.split()])
    try:
        with Journal(CLUSTER, Path("c.yaml"), limit=None, roles=None) as one:
            if broken is not None:
                raise broken
            one({"event": "applied", "outcome": {"node": "a", "ok": ok, "operations": [], "error": None}})
            if exit_status is not None:
                one.write("result", exit_status=exit_status)
    except RuntimeError:
        pass
    return one.run


def test_nothing_was_done_yet():
    assert samples() == {}


def test_the_last_run_of_each_command(monkeypatch):
    names = iter(f"2026112{day}T000000Z-abcdef" for day in range(1, 9))
    real = Journal.__init__

    def named(self, *args, **rest):
        real(self, *args, **rest)
        run = next(names)
        self._path = self._path.with_name(f"{run}.jsonl")
        self.run = run

    monkeypatch.setattr(Journal, "__init__", named)
    journal(monkeypatch, "apply lab.yaml --yes", exit_status=1)
    journal(monkeypatch, "apply inventory/lab.yaml", exit_status=4)
    journal(monkeypatch, "drift install lab.yaml --every 1h")
    journal(monkeypatch, "reboot ./lab.yaml --limit a", exit_status=1, ok=False)
    journal(monkeypatch, "resume 20261121T000000Z-abcdef", broken=RuntimeError())
    found = samples()
    status = {key[1][1]: value for key, value in found.items() if key[0] == "rackwright_run_last_exit_status"}
    assert status == {"apply": 4, "drift install": 0, "reboot": 1, "resume": 1}
    when = [value for key, value in found.items() if key[0] == "rackwright_run_last_timestamp_seconds"]
    assert len(when) == 4
    assert all(abs(at - datetime.now(UTC).timestamp()) < 60 for at in when)


def test_a_run_that_goes_on_is_not_the_last_one(monkeypatch):
    monkeypatch.setattr("rackwright.engine.journal._is_alive", lambda begin: True)
    monkeypatch.setattr("sys.argv", ["rackwright", "apply", "lab.yaml"])
    with Journal(CLUSTER, Path("c.yaml"), limit=None, roles=None) as one:
        assert read_run(one.run).exit_status is None
        assert last_runs(CLUSTER) == {}
    assert last_runs(CLUSTER)["apply"].exit_status == 0


def test_a_journal_of_an_earlier_version_tells_by_its_nodes(monkeypatch):
    journal(monkeypatch, "apply lab.yaml", exit_status=None, ok=False)
    assert last_runs(CLUSTER)["apply"].exit_status == 1


def test_a_damaged_journal_is_passed_over(monkeypatch, state):
    journal(monkeypatch, "apply lab.yaml")
    (state / CLUSTER / "runs" / "20991231T000000Z-ffffff.jsonl").write_bytes(b"\x00\xff{")
    assert list(last_runs(CLUSTER)) == ["apply"]


BURNIN = {
    "started": "2026-11-20T10:00:00+00:00",
    "seconds": 30.5,
    "exit_code": 3,
    "groups": [
        {
            "nodes": ["gpu1", "gpu2", "gpu3"],
            "left_out": ["gpu3"],
            "busbw_gbs": 380.5,
            "per_node": [
                {"node": "gpu1", "size": 1, "busbw_gbs": 450.0},
                {"node": "gpu2", "size": 1, "busbw_gbs": None},
            ],
            "scopes": [
                {"scope": "unit", "collective": "all_reduce", "nodes": ["gpu1", "gpu2"], "busbw_gbs": 400.0},
                {"scope": "unit", "collective": "alltoall", "nodes": ["gpu1", "gpu2"], "busbw_gbs": 90.0},
                {"scope": "leaf", "collective": "all_reduce", "nodes": ["gpu1", "gpu2"], "busbw_gbs": 48.0},
            ],
        }
    ],
}


def test_the_last_burnin():
    RESULTS.add(CLUSTER, datetime(2026, 11, 19, tzinfo=UTC), {"groups": [], "exit_code": 0})
    RESULTS.add(CLUSTER, datetime(2026, 11, 20, tzinfo=UTC), BURNIN)
    assert samples() == {
        ("rackwright_burnin_last_timestamp_seconds",): 1795168830.5,
        ("rackwright_burnin_last_exit_status",): 3,
        ("rackwright_burnin_busbw_gbs", ("nodes", "gpu1"), ("stage", "alone")): 450,
        ("rackwright_burnin_busbw_gbs", ("nodes", "gpu[1-2]"), ("stage", "leaf")): 48,
        ("rackwright_burnin_busbw_gbs", ("nodes", "gpu[1-2]"), ("stage", "unit")): 400,
        ("rackwright_burnin_busbw_gbs", ("nodes", "gpu[1-2]"), ("stage", "together")): 380.5,
    }


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"groups": None, "started": 5, "seconds": "x", "exit_code": None},
        {"groups": [{"nodes": "gpu1", "busbw_gbs": 1.0}, 7]},
        {"groups": [{"nodes": ["gpu1"], "busbw_gbs": "fast", "per_node": {}, "scopes": [[]]}]},
        {"groups": [{"nodes": [1], "busbw_gbs": 1.0}]},
        {"groups": [{"nodes": ["gpu1"], "busbw_gbs": float("nan")}]},
    ],
)
def test_a_result_of_another_form_has_no_samples(document):
    assert figures(document) == {}
    RESULTS.add(CLUSTER, datetime(2026, 11, 20, tzinfo=UTC), document)
    assert samples() == {}


def test_a_damaged_result_is_passed_over():
    RESULTS.add(CLUSTER, datetime(2026, 11, 20, tzinfo=UTC), BURNIN)
    (RESULTS.folder(CLUSTER) / "20261121T000000Z.json").write_text("{")
    assert ("rackwright_burnin_last_exit_status",) in samples()


def test_the_last_verify(state):
    results = tuple(
        CheckResult("base", f"check {number}", "a", status, "", 0.0)
        for number, status in enumerate((Status.PASS, Status.PASS, Status.FAIL, Status.OUT_OF_SCOPE))
    )
    started = datetime(2026, 11, 20, 10, tzinfo=UTC)
    report = VerifyReport(CLUSTER, "c.yaml", "0" * 64, ("a",), results, (), started, 2.5)
    assert report.remember() is None
    assert samples() == {
        ("rackwright_verify_last_timestamp_seconds",): 1795168802.5,
        ("rackwright_verify_results", ("status", "PASS")): 2,
        ("rackwright_verify_results", ("status", "WARN")): 0,
        ("rackwright_verify_results", ("status", "FAIL")): 1,
        ("rackwright_verify_results", ("status", "UNKNOWN")): 0,
        ("rackwright_verify_results", ("status", "OUT OF SCOPE")): 1,
    }


@pytest.mark.parametrize(
    ("flags", "kept"), [([], True), (["--limit", "node1"], False), (["--role", "base"], False)]
)
def test_a_verify_of_a_part_is_not_kept(monkeypatch, flags, kept):
    cluster = load_cluster(FILE).name
    report = VerifyReport(cluster, str(FILE), "0" * 64, (), (), (), datetime(2026, 11, 20, tzinfo=UTC), 1.0)
    monkeypatch.setattr("rackwright.cli.verify.verify", lambda *_, **__: report)
    CliRunner().invoke(app, ["verify", str(FILE), *flags])
    assert VERIFY.path(cluster).exists() == kept


@pytest.mark.parametrize(("flags", "kept"), [([], True), (["--limit", "node1"], False)])
def test_a_drift_check_of_a_part_is_not_kept(monkeypatch, flags, kept):
    cluster = load_cluster(FILE).name
    found = PlanResult(cluster, str(FILE), "0" * 64, {})
    monkeypatch.setattr("rackwright.cli.drift.plan", lambda *_, **__: found)
    CliRunner().invoke(app, ["drift", str(FILE), *flags])
    assert LATEST.path(cluster).exists() == kept


def test_the_last_drift_check():
    change = PlannedOperation("base", "Write it", (Change("file", "/x", None, "file 644 root:root"),), ())
    nodes = {
        "a": NodePlan("a"),
        "b": NodePlan("b", (change,)),
        "c": NodePlan("c", error="no answer", unreachable=True),
        "d": NodePlan("d", error="broken"),
    }
    assert remember(PlanResult(CLUSTER, "c.yaml", "0" * 64, nodes), 1795168800.0) is None
    assert samples() == {
        ("rackwright_drift_by_hand_timestamp_seconds",): 1795168800,
        **{
            ("rackwright_drift_by_hand_nodes", ("state", name)): 1
            for name in ("in sync", "drifted", "unreachable", "unknown")
        },
    }


def test_a_full_disk_is_reported_and_ends_nothing(monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rackwright.result_store.write_atomically", full)
    problem = remember(PlanResult(CLUSTER, "c.yaml", "0" * 64, {}), 1.0)
    assert problem == (
        f"cannot write {LATEST.path(CLUSTER)}, so the result is not stored: No space left on device"
    )


@pytest.mark.parametrize(
    "document", ["", "{}", '{"ended": "x", "counts": {}}', '{"ended": 1, "counts": [1]}']
)
def test_what_was_remembered_may_be_damaged(document):
    LATEST.path(CLUSTER).write_text(document)
    assert samples() == {}


def run(*arguments):
    return CliRunner().invoke(app, ["metrics", *map(str, arguments)])


def test_the_command_prints_them_or_writes_a_file(tmp_path, monkeypatch):
    cluster = load_cluster(FILE).name
    monkeypatch.setattr("sys.argv", ["rackwright", "apply", str(FILE)])
    with Journal(cluster, FILE, limit=None, roles=None):
        pass
    printed = run(FILE)
    assert printed.exit_code == 0
    assert f'rackwright_run_last_exit_status{{cluster="{cluster}",command="apply"}} 0.0' in printed.stdout
    target = tmp_path / "rackwright.prom"
    assert run(FILE, "--textfile", target).stdout == ""
    assert target.read_text() == printed.stdout
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_a_file_that_node_exporter_would_not_read_is_refused(tmp_path):
    result = run(FILE, "--textfile", tmp_path / "rackwright.txt")
    assert str(result.exception) == "node_exporter reads no file named rackwright.txt."
    assert list(tmp_path.glob("rackwright.txt")) == []
    result = run(FILE, "--textfile", tmp_path / "nowhere" / "rackwright.prom")
    assert ": No such file or directory." in str(result.exception)
