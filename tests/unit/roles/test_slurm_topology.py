"""The layers above the leaves in topology.conf, from the declared fabrics."""

from __future__ import annotations

from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from rackwright.model.types import LinkKind
from rackwright.roles.slurm import texts
from rackwright.roles.slurm.cluster_checks import CHECKS
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.status import Status
from tests.unit.roles.fake_host import FakeHost, Reply, judged
from tests.unit.roles.slurm_clusters import HEAD_SKU, cluster, node

TOPOLOGY = "timeout 30 scontrol show topology"


def site(spines: dict[str, str]):
    """A worker below each leaf; each leaf has a cable to each of its spines."""
    workers = [node(f"w{i}", f"10.1.0.{i}", "worker", switch=leaf) for i, leaf in enumerate(spines, 1)]
    made = cluster("c", node("head1", "10.1.1.1", "head", sku=HEAD_SKU, primary=True), *workers)
    cables = [Cable(NodePort(f"w{i}", 0), SwitchPort(leaf, 1)) for i, leaf in enumerate(spines, 1)]
    cables += [
        Cable(SwitchPort(leaf, 30 + n), SwitchPort(spine, i))
        for i, (leaf, above) in enumerate(spines.items(), 1)
        for n, spine in enumerate(above.split())
    ]
    every = tuple(dict.fromkeys(spine for above in spines.values() for spine in above.split()))
    fabric = Fabric("fabric", LinkKind.INFINIBAND, 1, tuple(spines), every, tuple(cables))
    return made.model_copy(update={"fabrics": {"fabric": fabric}})


def lines(made):
    return texts.topology_conf(made, SlurmOptions()).splitlines()[1:]


LEAVES = ["SwitchName=leaf1 Nodes=w1", "SwitchName=leaf2 Nodes=w2", "SwitchName=leaf3 Nodes=w3"]


def test_leaves_that_share_their_spines_are_below_one_switch_that_names_them():
    made = site(dict.fromkeys(("leaf1", "leaf2", "leaf3"), "spine1 spine2"))
    assert lines(made) == [
        *LEAVES,
        "# spine: spine[1-2]",
        "SwitchName=spine Switches=leaf1,leaf2,leaf3",
    ]


def test_leaves_are_joined_by_others_that_share_spines_with_both():
    made = site({"leaf1": "spine1 spine2", "leaf2": "spine3", "leaf3": "spine2 spine3"})
    assert lines(made) == [*LEAVES, "# spine: spine[1-3]", "SwitchName=spine Switches=leaf1,leaf2,leaf3"]


PODS = site({"leaf1": "spine1 spine2", "leaf2": "spine1 spine2", "leaf3": "spine3", "leaf4": ""})


def test_pods_with_separate_spines_have_a_switch_each_below_the_root():
    assert lines(PODS) == [
        *LEAVES,
        "SwitchName=leaf4 Nodes=w4",
        "# spines-1: spine[1-2]",
        "SwitchName=spines-1 Switches=leaf1,leaf2",
        "# spines-2: spine3",
        "SwitchName=spines-2 Switches=leaf3",
        "# spine: no declared cable connects what is below it",
        "SwitchName=spine Switches=spines-1,spines-2,leaf4",
    ]


def test_without_spines_the_root_alone_is_above_the_leaves():
    root = "SwitchName=spine Switches=leaf1,leaf2,leaf3"
    made = site(dict.fromkeys(("leaf1", "leaf2", "leaf3"), ""))
    assert lines(made) == [*LEAVES, root]
    assert lines(made.model_copy(update={"fabrics": {}})) == [*LEAVES, root]


PRINTED = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=w1
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=w2
SwitchName=leaf3 Level=0 LinkSpeed=1 Nodes=w3
SwitchName=leaf4 Level=0 LinkSpeed=1 Nodes=w4
SwitchName=spines-1 Level=1 LinkSpeed=1 Nodes=w[1-2] Switches=leaf[1-2]
SwitchName=spines-2 Level=1 LinkSpeed=1 Nodes=w3 Switches=leaf3
SwitchName=spine Level=2 LinkSpeed=1 Nodes=w[1-4] Switches=spines-[1-2],leaf4
"""


def checked(printed):
    host = FakeHost({TOPOLOGY: Reply(0, printed, "")})
    return judged("slurm", CHECKS, "the topology is as declared", PODS, PODS.primary, {"head1": host})


def test_the_check_reads_the_layers_above_too():
    assert checked(PRINTED).status is Status.PASS
    other = checked(PRINTED.replace("Nodes=w[1-2]", "Nodes=w[1-3]"))
    assert (other.status, other.evidence) == (Status.FAIL, "spines-1 has w[1-3], not w[1-2]")
    gone = checked("".join(PRINTED.splitlines(keepends=True)[:4]))
    assert gone.status is Status.FAIL
    assert "spines-1 is missing" in gone.evidence
