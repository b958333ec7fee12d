"""Verdicts, what stops what, and a report that nothing can break out of."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from markupsafe import escape

from rackwright.accept import Stages, Verdict, accept
from rackwright.accept.chart import chart_of
from rackwright.accept.grouped import out_of_scope, passes
from rackwright.accept.stages import StageName, judge_applied
from rackwright.accept.storage_chart import bars_of
from rackwright.accept.write import default_folder, write_report
from rackwright.accept.write import html as page_of
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import Floor
from rackwright.burnin.pairs import PairFigure, triage
from rackwright.burnin.report import BurninReport, Measurement, Previous, SkuGroup
from rackwright.burnin.table import parse_nccl_tests
from rackwright.claims.check import CheckResult
from rackwright.engine.run import Applied
from rackwright.errors import BurninError, ExitCode, RackwrightError, RunLocked
from rackwright.model.ranges import expand
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, NodePlan, PlannedOperation, PlanResult
from rackwright.status import Status
from rackwright.storage.report import BenchReport, CheckpointResult, Figure, FilesystemResult
from rackwright.verify import VerifyReport
from tests.factories import make_cluster
from tests.unit.accept.sample import lab_report
from tests.unit.burnin import recorded
from tests.unit.drawing.pages import Page as DrawnPage
from tests.unit.storage.sites import cluster_of, filesystem

NODES = ("head1", "worker1", "worker2")
OPERATION = PlannedOperation("base", "Write /etc/hosts", (Change("file", "/etc/hosts", "a", "b"),), ("cp",))


def planned(operations=(), **troubled):
    nodes = {name: troubled.get(name) or NodePlan(name, tuple(operations), evaluated=5) for name in NODES}
    return PlanResult("test", "test.yaml", "0" * 64, nodes)


def applied(plan=None, **troubled):
    plan = plan or planned([OPERATION])
    outcomes = {
        name: troubled.get(name) or NodeOutcome(name, True, plan.nodes[name].operations) for name in NODES
    }
    return Applied(plan, ApplyResult("test", outcomes))


def verified(*extra):
    passes = tuple(
        CheckResult("slurm", "slurmd is running", name, Status.PASS, f"since {name}") for name in NODES
    )
    beyond = CheckResult(
        "time", "the clock is set", "worker1", Status.OUT_OF_SCOPE, "a container shares its clock"
    )
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    return VerifyReport("test", "test.yaml", "0" * 64, NODES, (*passes, beyond, *extra), (), now, 1.0)


def burnt_in(*findings, **changes):
    table = parse_nccl_tests(recorded.GH200_TWO_NODES)
    group = SkuGroup(
        sku="test-node", engine="mpi", nodes=("worker1", "worker2"), ranks=8, floor=Floor(100.0, "a document, read 2026"),
        findings=findings, measurements=(Measurement("all_reduce", table, ()),), versions={"slurm": "24.11.5"},
        previous=Previous("2026-11-01T00:00:00+00:00", 125.0, -1.9),
    )  # fmt: skip
    return BurninReport(
        "test",
        "test.yaml",
        "0" * 64,
        (replace(group, **changes),),
        datetime(2026, 11, 20, 12, tzinfo=UTC),
        9.0,
    )


def benched(*findings, **changes):
    figures = (
        Figure("read_gbs", "read, one node alone", "GB/s", 4.0, 5.0, "w2"),
        Figure("together_read_gbs", "read, 3 nodes together", "GB/s", 9.0, None),
        Figure("metadata_ops", "create, stat and remove together", "ops/s", 1200.0, 100.0),
    )
    result = FilesystemResult(
        "data", "nfs", "data", "/data", nodes=("w1", "w2", "w3"), figures=figures, findings=findings,
        mounted="10.9.0.2:/srv/data (nfs4)", versions={"fio": "3.33"},
        checkpoint=CheckpointResult(("w1", "w2"), 4, 8 * 2**20, "gloo", 60.0, 3, save_seconds=(0.3,)),
    )  # fmt: skip
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    return BenchReport("test", "test.yaml", "0" * 64, (replace(result, **changes),), now, 9.0)


@pytest.fixture
def run():
    """Accept with good stages, some replaced: a value to return or an exception to raise."""

    def accepted(**replaced):
        ran = []

        def stage(name, value):
            def work(cluster):
                ran.append(name)
                if isinstance(value, BaseException):
                    raise value
                return value

            return work

        cluster = replaced.pop("cluster", None) or make_cluster()
        good = {
            "apply": applied(), "plan": planned(), "verify": verified(), "storage": benched(), "burnin": burnt_in(),
        } | replaced  # fmt: skip
        report = accept(cluster, Stages(**{name: stage(name, value) for name, value in good.items()}))
        return report, ran

    return accepted


def html(report, metrics=None):
    return page_of(report, make_cluster(), metrics)


def statuses(report):
    return {stage.name.value: stage.status for stage in report.stages}


def test_all_good_is_accepted_and_says_what_is_out_of_scope(run):
    report, ran = run()
    assert ran == ["apply", "plan", "verify", "burnin"]
    assert (report.verdict, report.exit_code) == (Verdict.ACCEPTED, ExitCode.CLEAN)
    assert report.line == "ACCEPTED: test, 3 nodes, 1 thing out of scope"
    assert set(statuses(report).values()) == {Status.PASS}
    assert {"rackwright", "python", "slurm"} <= report.versions.keys()


def test_simulated_gpus_are_said_in_the_verdict_and_on_the_page(run):
    report = replace(run()[0], simulated=("worker1", "worker2"))
    assert report.line.endswith("1 thing out of scope, GPUs simulated on worker[1-2]")
    assert report.to_json()["simulated_gpus"] == ["worker1", "worker2"]
    assert "The GPUs of worker[1-2] are simulated" in html(report)
    assert "simulated" not in html(run()[0])


def test_the_page_leads_to_the_metrics_where_they_were_drawn(run):
    report = run()[0]
    assert '<a href="metrics/overview.html">' in html(report, "metrics/overview.html")
    assert "overview.html" not in html(report)


def test_a_warning_does_not_keep_from_accepting(run):
    report, _ = run(verify=verified(CheckResult("base", "claim", "head1", Status.WARN, "nearly")))
    assert report.verdict is Verdict.ACCEPTED


def test_an_apply_with_nothing_to_do_is_its_own_second_plan(run):
    report, ran = run(apply=Applied(planned(), None))
    assert ran == ["apply", "verify", "burnin"]
    assert report.verdict is Verdict.ACCEPTED
    assert statuses(report)["plan again"] is Status.PASS


FAILED_NODE = NodeOutcome("worker1", False, (), "apt-get install exited 100")
LOST_NODE = NodeOutcome("worker1", False, (), "no answer within 10 s", unreachable=True)
LOST_PLAN = NodePlan("worker1", error="Cannot connect to worker1", unreachable=True)


@pytest.mark.parametrize(
    ("replaced", "verdict", "ran", "stage", "says"),
    [
        ({"apply": applied(worker1=FAILED_NODE)}, Verdict.REJECTED, 1, "apply", "worker1: apt-get install exited 100"),
        ({"apply": applied(worker1=LOST_NODE)}, Verdict.UNDECIDED, 4, "apply", "worker1: no answer within 10 s"),
        ({"apply": Applied(planned([OPERATION]), None)}, Verdict.UNDECIDED, 1, "apply", "was declined"),
        ({"apply": Applied(planned(worker1=LOST_PLAN), None)}, Verdict.UNDECIDED, 4, "apply", "Cannot connect to worker1"),
        ({"plan": planned([OPERATION])}, Verdict.REJECTED, 2, "plan again", "worker2: base: Write /etc/hosts would change again"),
        ({"plan": planned(worker1=NodePlan("worker1", error="fact failed"))}, Verdict.REJECTED, 2, "plan again", "worker1: fact failed"),
        ({"plan": planned(worker1=LOST_PLAN)}, Verdict.UNDECIDED, 4, "plan again", "Cannot connect to worker1"),
        ({"verify": verified(CheckResult("base", "claim", "head1", Status.FAIL, "no"))}, Verdict.REJECTED, 3, "verify", "head1: base: claim: FAIL: no"),
        ({"verify": verified(CheckResult("base", "claim", "head1", Status.UNKNOWN, "?"))}, Verdict.UNDECIDED, 4, "verify", "UNKNOWN: ?"),
        ({"verify": RackwrightError("it broke")}, Verdict.UNDECIDED, 4, "verify", "it broke"),
        ({"burnin": burnt_in(Finding(Status.FAIL, "under the floor"))}, Verdict.REJECTED, 4, "burn-in", "FAIL: under the floor"),
        ({"burnin": burnt_in(Finding(Status.UNKNOWN, "no floor is declared"))}, Verdict.UNDECIDED, 4, "burn-in", "no floor"),
        ({"burnin": burnt_in(measurements=(), findings=())}, Verdict.UNDECIDED, 4, "burn-in", ""),
        ({"burnin": BurninError("Slurm does not answer")}, Verdict.UNDECIDED, 4, "burn-in", "Slurm does not answer"),
    ],
)  # fmt: skip
def test_what_decides(run, replaced, verdict, ran, stage, says):
    report, done = run(**replaced)
    assert report.verdict is verdict
    assert report.exit_code == {Verdict.REJECTED: 3, Verdict.UNDECIDED: 4}[verdict]
    assert len(done) == ran
    found = next(result for result in report.stages if result.name.value == stage)
    assert not says or any(says in detail for detail in found.details), found
    assert len(report.stages) == 5


def test_stages_after_a_failed_one_are_unknown_and_listed_as_not_run(run):
    report, _ = run(apply=applied(worker1=FAILED_NODE))
    later = report.stages[2:]
    assert [stage.status for stage in later] == [Status.UNKNOWN] * 3
    assert {stage.summary for stage in later} == {"not run, because apply failed"}
    assert report.line.startswith("REJECTED: test, 3 nodes, 0 things out of scope, because of apply")


def test_errors_before_anything_changed_are_raised(run):
    with pytest.raises(RunLocked, match="held"):
        run(apply=RunLocked("held by somebody"))


def test_interrupted_apply_is_unknown():
    result = judge_applied(Applied(planned([OPERATION]), ApplyResult("test", {}, interrupted=True)))
    assert (result.name, result.status, result.ends) == (StageName.APPLY, Status.UNKNOWN, True)


def test_document(run, tmp_path):
    report, _ = run()
    document_path, page = write_report(report, make_cluster(), tmp_path / "a" / "b")
    document = json.loads(document_path.read_text())
    assert (document["kind"], document["version"], document["verdict"]) == (
        "rackwright.accept",
        1,
        "ACCEPTED",
    )
    assert [stage["name"] for stage in document["stages"]] == [
        "validate",
        "apply",
        "plan again",
        "verify",
        "burn-in",
    ]
    assert document["sha256"] == report.sha256
    assert document["applied"]["plan"]["nodes"][0]["operations"][0]["targets"] == ["file /etc/hosts"]
    assert len(document["verify"]["results"]) == 4
    assert document["out_of_scope"][0]["reason"] == "a container shares its clock"
    assert len(document["burnin"]["groups"][0]["measurements"][0]["rows"]) == 25
    assert page.read_text().startswith("<!doctype html>")
    assert re.fullmatch(r"reports/test-\d{8}T\d{6}Z", str(default_folder(report)))


def test_report_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RackwrightError, match="Cannot write the report"):
        write_report(run()[0], make_cluster(), tmp_path / "file")


class Page(HTMLParser):
    """Checks nesting and collects what a page would load or run."""

    VOID = ("meta", "line", "polyline", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.reaches_out, self.text = [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.reaches_out += [
            value for name, value in attributes if name in ("src", "href", "xlink:href", "data")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


NASTY = "<script>alert(1)</script> & \"'</td></table>"


def test_page_escapes_everything_and_loads_nothing(run):
    bad = CheckResult(NASTY, NASTY, "head1", Status.FAIL, NASTY)
    odd = CheckResult("r", NASTY, "head1", Status.OUT_OF_SCOPE, NASTY)
    fine = CheckResult("r", NASTY, "head1", Status.PASS, NASTY)
    figures = (PairFigure(("worker1", "worker2"), None, NASTY),)
    report, _ = run(
        verify=verified(odd, fine),
        burnin=burnt_in(Finding(Status.FAIL, NASTY), sku=NASTY, floor=Floor(1, NASTY), versions={NASTY: NASTY}, pairs=figures, triage=triage(figures)),
    )  # fmt: skip
    wrong, _ = run(verify=verified(bad))
    unset, _ = run(apply=applied(worker1=NodeOutcome("worker1", False, (), NASTY)))
    for page in (html(replace(report, cluster=NASTY, file=NASTY)), html(wrong), html(unset)):
        parsed = Page(page)
        assert "script" not in parsed.tags
        assert all(place.startswith("#") for place in parsed.reaches_out)
        assert "<script>alert(1)" in parsed.text
        assert "http" not in page.replace("http-equiv", "")
        assert "@import" not in page
        assert "url(" not in page.replace("url(#hatch)", "")


def test_page_puts_the_verdict_on_top_and_what_is_wrong_before_what_holds(run):
    report, _ = run(
        verify=verified(CheckResult("base", "hosts are known", "head1", Status.FAIL, "w2 is missing"))
    )
    text = Page(html(report)).text
    order = [
        "REJECTED",
        "What is wrong or unknown",
        "w2 is missing",
        "Racks",
        "Stages",
        "Out of scope (1)",
        "What holds",
    ]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert "not run, because verify failed" in text


def test_page_of_an_accepted_cluster(run):
    report, _ = run()
    text = Page(html(report)).text
    assert "What is wrong or unknown" not in text
    assert "a container shares its clock" in text
    assert "-1.9 % against 125 GB/s" in text
    assert "128 MiB" in text
    assert "differs between nodes" in text


def test_chart_is_drawn_inside_its_frame():
    chart = chart_of(burnt_in().groups[0])
    points = [tuple(map(float, point.split(","))) for point in chart.out_of_place.split()]
    assert len(points) == 25
    assert all(chart.left <= x <= chart.right and chart.top <= y <= chart.bottom for x, y in points)
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert chart.top <= chart.floor <= chart.bottom
    assert chart.y_ticks[-1].label == "200"
    assert chart.x_ticks[-1].label == "128 MiB"
    assert chart_of(burnt_in(measurements=()).groups[0]) is None


def with_storage(run, **replaced):
    return run(cluster=cluster_of(), **replaced)


def test_storage_is_a_stage_where_nodes_that_run_jobs_use_a_filesystem(run):
    report, ran = with_storage(run)
    assert ran == ["apply", "plan", "verify", "storage", "burnin"]
    assert [stage.name.value for stage in report.stages][3:] == ["verify", "storage", "burn-in"]
    assert report.verdict is Verdict.ACCEPTED
    assert report.versions["fio"] == "3.33"
    assert report.to_json()["storage"]["filesystems"][0]["name"] == "data"
    only_read = cluster_of(filesystem(read_only=True))
    without, ran = run(cluster=only_read)
    assert "storage" not in ran
    assert without.to_json()["storage"] is None


@pytest.mark.parametrize(
    ("given", "verdict", "burnt_in", "says"),
    [
        (benched(Finding(Status.FAIL, "under the floor")), Verdict.REJECTED, False, "FAIL: under the floor"),
        (benched(Finding(Status.UNKNOWN, "no answer")), Verdict.UNDECIDED, True, "UNKNOWN: no answer"),
        (benched(Finding(Status.WARN, "no floor")), Verdict.ACCEPTED, True, "WARN: no floor"),
        (BurninError("Slurm does not answer"), Verdict.UNDECIDED, True, "Slurm does not answer"),
    ],
)
def test_what_storage_decides(run, given, verdict, burnt_in, says):
    report, ran = with_storage(run, storage=given)
    assert report.verdict is verdict
    assert ("burnin" in ran) is burnt_in
    [stage] = [one for one in report.stages if one.name is StageName.STORAGE]
    assert stage.details == (says,)


def test_storage_on_the_page(run):
    text = html(with_storage(run, storage=benched(Finding(Status.FAIL, "<b>&")))[0])
    page = Page(text)
    assert not page.open
    assert "Storage: data (/data)" in text
    assert "&lt;b&gt;&amp;" in text
    assert "4 ranks save 8 MiB each in 0.3 s, 0.5 % of the 60 s between two saves" in text
    assert len(re.findall('<rect [^>]*class="bar', text)) == 3


def test_bars():
    bars = bars_of(benched().results[0])
    slow, fast, metadata = bars.bars
    assert (slow.under, slow.value) == (True, "4 GB/s")
    assert slow.width < fast.width == metadata.width == 330.0, "each unit has its scale"
    assert slow.floor == round(bars.left + 330 * 5 / 9, 1)
    assert fast.floor is None
    assert bars_of(replace(benched().results[0], figures=())) is None
    zero = replace(benched().results[0], figures=(Figure("read_gbs", "read", "GB/s", 0.0),))
    assert bars_of(zero).bars[0].width == 0.0


@pytest.fixture(scope="module")
def lab():
    report, cluster = lab_report()
    return report, cluster, page_of(report, cluster)


def test_everything_out_of_scope_is_listed_by_name_once_for_each_reason(lab):
    report, _, text = lab
    beyond = out_of_scope(report.verified.results)
    named = {
        (group.role, check, node, one.reason)
        for one in beyond
        for group in one.groups
        for check in group.checks
        for node in expand(group.nodes)
    }
    assert named == {(one.role, one.check, one.node, one.evidence) for one in report.out_of_scope}
    assert sum(one.results for one in beyond) == len(report.out_of_scope) > 40
    part = text[text.index("Out of scope (") : text.index("What holds")]
    assert len(beyond) < 10
    for one in beyond:
        assert part.count(escape(one.reason)) == 1
        assert all(f"<li>{escape(check)}</li>" in part for group in one.groups for check in group.checks)


def test_what_holds_is_by_role_and_folded_with_every_check_named(lab):
    report, _, text = lab
    held = passes(report.verified.results)
    passed = [one for one in report.verified.results if one.status is Status.PASS]
    assert {(one.role, line.check) for one in held for line in one.lines} == {
        (one.role, one.check) for one in passed
    }
    assert sum(one.results for one in held) == len(passed)
    part = text[text.index("What holds") :]
    assert part.count("<details>") == part.count("</details>") == len(held)
    assert all(escape(line.check) in part for one in held for line in one.lines)


def test_each_node_is_drawn_once_by_its_worst_result(lab):
    _, cluster, text = lab
    boxes = {box.name: box for box in DrawnPage(text).boxes}
    assert sorted(boxes) == sorted(cluster.by_name)
    assert {name: box.look for name, box in boxes.items()} == {
        "head1": "failing",
        "worker1": "unknown",
        "worker2": "failing",
    }
    ids = DrawnPage(text).ids
    assert all(box.href.removeprefix("#") in ids for box in boxes.values())
    assert "couldn't communicate with the NVIDIA driver" in boxes["worker1"].hover


def looks(report):
    return {box.name: box.look for box in DrawnPage(html(report)).boxes}


def test_a_node_that_was_not_verified_is_not_good(run):
    report, _ = run(apply=applied(worker1=FAILED_NODE, worker2=replace(LOST_NODE, node="worker2")))
    assert report.verified is None
    assert looks(report) == {"head1": "neutral", "worker1": "failing", "worker2": "unknown"}
    fine, _ = run()
    assert set(looks(fine).values()) == {"good"}
    warned, _ = run(verify=verified(CheckResult("base", "claim", "head1", Status.WARN, "nearly")))
    assert looks(warned)["head1"] == "warning"
