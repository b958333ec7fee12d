"""What Slurm's tools print, and who gives way. Lines of Slurm 24.11, recorded on a lab rack."""

from __future__ import annotations

import pytest

from rackwright.workload.slurm.on_node import SlurmOnNode, gives_way, run, shares_of
from rackwright.workload.slurm.output import parse_nodes, parse_rows
from rackwright.workload.states import HEALTH_PREFIX, DrainShare, NoAnswer

NODE = (
    "NodeName=worker1 Arch=x86_64 CoresPerSocket=2  CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=5.21 "
    "Gres=gpu:h100:8 NodeAddr=10.91.0.11 State={state} ThreadsPerCore=1 Partitions=main  BootTime=x "
    "{reason}\n"
)
REASON = "Reason=rackwright-health: gpu-count FAIL reboot: nvidia-smi lists 7 of 8 [root@2026-11-21T20:00:00]"


def test_a_node_drained_by_us():
    node = parse_nodes(NODE.format(state="IDLE+DRAIN", reason=REASON))["worker1"].state
    assert node.words == {"IDLE", "DRAIN"}
    assert node.reason == "rackwright-health: gpu-count FAIL reboot: nvidia-smi lists 7 of 8"
    assert node.by == "root@2026-11-21T20:00:00"
    assert (node.drained, node.drained_by_health, node.busy, node.down) == (True, True, False, False)


@pytest.mark.parametrize(
    ("state", "drained", "down", "empty"),
    [
        ("IDLE", False, False, True),
        ("MIXED+DRAIN", True, False, False),
        ("ALLOCATED", False, False, False),
        ("IDLE+COMPLETING+DRAIN", True, False, False),
        ("DOWN*", False, True, True),
        ("DOWN+DRAIN+NOT_RESPONDING", True, True, True),
        ("IDLE+MAINT+RESERVED", True, False, True),
    ],
)
def test_states(state, drained, down, empty):
    node = parse_nodes(NODE.format(state=state, reason=""))["worker1"].state
    assert (node.drained, node.down, not node.busy, node.drained_by_health) == (drained, down, empty, False)


def test_what_is_no_node_is_no_answer():
    for text in ("", "Node worker9 not found"):
        with pytest.raises(NoAnswer):
            SlurmOnNode("worker9", lambda _, text=text: text).state()
    with pytest.raises(NoAnswer):
        parse_rows("slurm_load_node: Unable to contact slurm controller\n")


def table(*rows):
    return parse_rows("".join("|".join(row) + "\n" for row in rows))


def ours(node, since="2026-11-21T20:00:00", partition="main"):
    return (partition, node, "drained", "root", since, HEALTH_PREFIX + "gpu-count FAIL reboot: a|b")


def idle(node, partition="main"):
    return (partition, node, "idle", "Unknown", "Unknown", "none")


def test_shares_are_counted_by_partition_without_the_node_itself():
    rows = table(
        ours("w1"), ours("w2"), idle("w3"), ("main", "w4", "drained", "ada", "x", "a human's"),
        idle("w3", "long"), ours("w2", partition="long"), ours("w9", partition="other"),
        ("main", "w5", "idle", "root", "x", HEALTH_PREFIX + "left behind"),
    )  # fmt: skip
    assert shares_of(rows, "w3") == [DrainShare("main", 5, 2), DrainShare("long", 2, 1)]
    assert shares_of(rows, "w1") == [DrainShare("main", 5, 1)]
    assert shares_of(rows, "nobody") == []


def test_of_nodes_that_drain_at_once_the_later_give_way_and_all_reckon_alike():
    rows = table(
        ours("w2"), ours("w1", "2026-11-21T20:00:01"), ours("w3"), *[idle(f"w{n}") for n in range(4, 21)]
    )
    assert [name for name in ("w1", "w2", "w3") if gives_way(rows, name, 10)] == ["w1"]
    assert [name for name in ("w1", "w2", "w3") if gives_way(rows, name, 5)] == ["w1", "w3"]
    assert not any(gives_way(rows, name, 15) for name in ("w1", "w2", "w3", "w4"))


def test_a_drain_of_the_same_second_is_waited_for(monkeypatch):
    """w2 is drained and looks; w1, before it by its name, is drained in the same second, but after that look."""
    rows = [f"main|w{number}|idle|Unknown|Unknown|none" for number in range(1, 11)]
    rows[1] = f"main|w2|drained|root|2026-11-22T10:00:00|{HEALTH_PREFIX}x"
    slurm = SlurmOnNode("w2", lambda words: "\n".join(rows))
    assert not gives_way(slurm.rows(), "w2", 10)
    waited = []

    def meanwhile(seconds):
        waited.append(seconds)
        rows[0] = f"main|w1|drained|root|2026-11-22T10:00:00|{HEALTH_PREFIX}x"

    monkeypatch.setattr("rackwright.workload.slurm.on_node.time.sleep", meanwhile)
    assert slurm.one_too_many(10)
    assert waited[0] > 1
    assert not SlurmOnNode("w1", lambda words: "\n".join(rows)).one_too_many(10)


def test_slurm_is_told_of_this_node_alone():
    said = []
    slurm = SlurmOnNode("w1", lambda words: said.append(words) or "")
    slurm.drain("a b")
    slurm.explain("c")
    slurm.resume()
    slurm.reboot("d")
    assert said == [
        ["scontrol", "update", "NodeName=w1", "State=DRAIN", "Reason=a b"],
        ["scontrol", "update", "NodeName=w1", "Reason=c"],
        ["scontrol", "update", "NodeName=w1", "State=RESUME"],
        ["scontrol", "reboot", "reason=d", "w1"],
    ]


def test_a_command_that_fails_or_is_missing_is_no_answer():
    with pytest.raises(NoAnswer, match="exited 1: nothing"):
        run(["false"])
    with pytest.raises(NoAnswer, match="No such file"):
        run(["/no/such/scontrol", "show"])
    assert run(["echo", "a"]) == "a\n"
