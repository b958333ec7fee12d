"""A plan on a terminal: a small one in full, one of a thousand nodes on two screens."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable

import pytest

from rackwright.cli.plan_view import show_outcome, show_plan
from rackwright.cli.terminal import Console
from rackwright.plan.changes import Change, text_diff
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.unit.plan.thousand import thousand_nodes

CONF = "/etc/slurm/slurm.conf"


def shown(plan: PlanResult, **given: bool | str) -> str:
    """What a terminal of 120 columns gets."""
    stream = io.StringIO()
    show_plan(plan, Console(file=stream, width=120), **given)  # type: ignore[arg-type]
    return stream.getvalue()


def plan_of(*nodes: NodePlan) -> PlanResult:
    return PlanResult("lab", "lab.yaml", "0" * 64, {node.node: node for node in nodes})


def file_of(before: str | None, after: str) -> Change:
    there = None if before is None else "file 644 root:root"
    return Change("file", CONF, there, "file 644 root:root", text_diff(CONF, before, after))


def write(*changes: Change) -> PlannedOperation:
    return PlannedOperation("slurm", f"Write {CONF}", changes, ())


RELOAD = PlannedOperation(
    "slurm",
    "Run slurmd with its settings",
    (Change("unit", "slurmd.service", "running", "reloaded", because=f"{CONF} changes"),),
    (),
)


def names(count: int, first: int = 1) -> Iterable[str]:
    return (f"worker{number:04d}" for number in range(first, first + count))


def test_a_small_plan_is_shown_in_full():
    change = file_of("a\nSlurmdTimeout=30\nb\n", "a\nSlurmdTimeout=300\nb\n")
    plan = plan_of(NodePlan("head1"), NodePlan("worker1", (write(change), RELOAD)))
    assert shown(plan) == (
        "\nslurm\n"
        "  worker1: Write /etc/slurm/slurm.conf\n"
        "    ~ file /etc/slurm/slurm.conf +1 -1\n"
        "      @@ -1,3 +1,3 @@\n"
        "       a\n"
        "      -SlurmdTimeout=30\n"
        "      +SlurmdTimeout=300\n"
        "       b\n"
        "  worker1: Run slurmd with its settings\n"
        "    ~ unit slurmd.service (running -> reloaded) because /etc/slurm/slurm.conf changes\n"
        "\nplan: 2 changes on 1 of 2 nodes, 0 disruptive\n"
    )


def test_one_change_of_a_thousand_nodes_is_shown_once_and_in_full():
    change = file_of("SlurmdTimeout=30\n", "SlurmdTimeout=300\n")
    plan = plan_of(*(NodePlan(name, (write(change), RELOAD)) for name in names(1000)))
    text = shown(plan)
    assert text.count("+SlurmdTimeout=300") == 1
    assert "  worker[0001-1000]: Write /etc/slurm/slurm.conf\n" in text
    assert "-v shows" not in text


def test_contents_that_differ_by_node_are_one_line():
    plan = plan_of(
        *(NodePlan(name, (write(file_of("a\n", f"Name={name}\nb\n")),)) for name in names(15)),
    )
    assert shown(plan) == (
        "\nslurm\n"
        "  worker[0001-0015]: Write /etc/slurm/slurm.conf  15 variants, one of them ~ file +2 -1 on worker0001\n"
        "\nnot shown in full: -v shows everything\n"
        "\nplan: 15 changes on 15 of 15 nodes, 0 disruptive\n"
    )
    everything = shown(plan, verbose=True)
    assert all(f"+Name={name}" in everything for name in names(15))
    assert "-v shows" not in everything


def test_a_long_diff_is_cut_off_and_the_rest_counted():
    text = "".join(f"line {number}\n" for number in range(77))
    plan = plan_of(NodePlan("worker1", (write(file_of("old\n", text)),)))
    lines = shown(plan).splitlines()
    assert "      +line 37" in lines
    assert "      +line 38" not in lines
    assert "      … 39 more lines, -v shows all" in lines
    assert "line 76" in shown(plan, verbose=True)


def test_how_to_see_more_is_what_the_command_offers():
    plan = plan_of(NodePlan("worker1", (write(file_of(None, "new\n")),)))
    assert "not shown in full: rackwright plan c.yaml -v shows everything" in shown(
        plan, more="rackwright plan c.yaml -v"
    )


@pytest.fixture(scope="module")
def thousand() -> PlanResult:
    """The first installation of 1,000 workers, a head and a login node."""
    return thousand_nodes()


def test_a_first_installation_of_a_thousand_nodes_fits_two_screens(thousand: PlanResult):
    assert thousand.changes > 100_000
    text = shown(thousand)
    assert len(text.splitlines()) <= 100
    for role in {operation.role for node in thousand.nodes.values() for operation in node.operations}:
        assert f"\n{role}\n" in text or f"\n{role}: " in text or text.startswith(f"{role}: ")
    assert "gpu[0001-1000]: Disable swap (disruptive)  + setting active swap areas (0)" in text
    assert "gpu[0001-1000]: reboot due: running kernel" in text
    assert "not shown in full: -v shows everything" in text


def test_each_change_of_it_is_hashed_once(thousand: PlanResult, monkeypatch: pytest.MonkeyPatch):
    hashed = 0
    original: Callable[[Change], int] = Change.__hash__

    def counting(change: Change) -> int:
        nonlocal hashed
        hashed += 1
        return original(change)

    monkeypatch.setattr(Change, "__hash__", counting)
    began = time.process_time()
    shown(thousand)
    there = sum(len(operation.changes) for node in thousand.nodes.values() for operation in node.operations)
    assert hashed <= 1.1 * there
    assert time.process_time() - began < 20


def test_what_a_terminal_gets_is_what_a_file_gets(thousand: PlanResult):
    stream = io.StringIO()
    show_plan(thousand, Console(file=stream, soft_wrap=True))
    assert "".join(stream.getvalue().split()) == "".join(shown(thousand).split())


def test_failures_disruptions_and_erasures_are_named_beside_a_thousand_nodes(thousand: PlanResult):
    nodes = dict(thousand.nodes)
    for number, name in enumerate(names(40)):
        error = f"Cannot connect to {name} (10.9.0.{number}, port 22): no answer within 10 s."
        nodes[name] = NodePlan(name, error=error, unreachable=True)
    nodes["odd1"] = NodePlan("odd1", error="its answer is invalid: 17 MiB")
    disks = tuple(
        Change("disk", f"/dev/nvme{number}n1 (serial S{number}, 3840 GB)", "ext4", "xfs", erases=f"S{number}")
        for number in range(20)
    )
    nodes["gpu0007"] = NodePlan("gpu0007", (PlannedOperation("scratch", "Make /scratch", disks, ()),))
    stop = PlannedOperation(
        "tuning", "Stop it", (Change("unit", "a.service", "running", "stopped", disruptive=True),), ()
    )
    nodes["gpu0009"] = NodePlan("gpu0009", (stop,))
    text = shown(PlanResult("lab", "lab.yaml", "", nodes))
    assert (
        "worker[0001-0040]: unreachable: worker0001: Cannot connect to worker0001 (10.9.0.0, port 22): no answer"
        in text
    )
    assert "odd1: cannot be planned: its answer is invalid: 17 MiB" in text
    assert "erases 20 disks on gpu0007, one of them gpu0007: /dev/nvme0n1 (serial S0, 3840 GB): ext4" in text
    assert "gpu0009: Stop it (disruptive)  ~ unit a.service (running -> stopped)" in text
    assert len(text.splitlines()) <= 100


def test_hundreds_of_kernels_are_one_reboot():
    plan = plan_of(
        *(
            NodePlan(name, reboot=(Change("reboot", "running kernel", f"6.{index}", "7.0"),))
            for index, name in enumerate(names(300))
        )
    )
    assert "worker[0001-0300]: reboot due: 300 variants, one of them: running kernel 6.0 -> 7.0" in shown(
        plan
    )
    assert shown(plan, verbose=True).count("reboot due: running kernel") == 300


def test_nodes_that_fail_for_many_reasons_are_named():
    plan = plan_of(*(NodePlan(name, error="x" * (index + 1)) for index, name in enumerate(names(100))))
    text = shown(plan)
    assert "worker[0013-0100]: cannot be planned, for 88 other reasons" in text
    assert shown(plan, verbose=True).count("cannot be planned: ") == 100


def test_the_outcome_of_a_thousand_nodes_is_folded():
    nodes = {
        name: NodeOutcome(name, True, (RELOAD,), seconds=index / 100)
        for index, name in enumerate(names(1000))
    }
    for number, name in enumerate(names(50)):
        nodes[name] = NodeOutcome(name, False, error=f"{name} (10.9.0.{number}): Run slurmd: exit status 1")
    stream = io.StringIO()
    show_outcome(ApplyResult("lab", nodes), Console(file=stream, width=200))
    assert stream.getvalue() == (
        "worker[0051-1000]: 1 changed in 0.5 to 10.0 s\n"
        "worker[0001-0050]: failed: worker0001: worker0001 (10.9.0.0): Run slurmd: exit status 1\n"
        "apply: 950 of 1000 nodes are as declared; not: worker[0001-0050]\n"
    )


def test_a_plan_read_again_is_shown_the_same(thousand: PlanResult):
    small = PlanResult(
        "dgx", "c.yaml", "0" * 64, {name: thousand.nodes[name] for name in ("head1", "gpu0001")}
    )
    document = json.loads(json.dumps(small.to_json()))
    assert shown(PlanResult.from_json(document)) == shown(small)
