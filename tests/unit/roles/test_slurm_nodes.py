"""Slurm's node lines, gres.conf with cores, memory beside services, topology, features, weights."""

from __future__ import annotations

import pytest

from rackwright.catalog.read import catalogue
from rackwright.model.interfaces import ManagesImexChannels, ReservesMemory
from rackwright.model.sku import Gpus, NvSwitch
from rackwright.osfamily.known import os_release
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.slurm import layout, texts, topology
from rackwright.roles.slurm.options import SlurmOptions
from tests.factories import make_gpu_sku
from tests.unit.roles.slurm_clusters import HEAD_SKU, LAB_SKU, cluster, dgx, lab, node, small

OLD = os_release("ubuntu-24.04")
"""Slurm 23.11, before AutoDetect=nvidia."""
H100 = catalogue()["dgx-h100"]
NVL72 = make_gpu_sku(
    "nvl72",
    sockets=2,
    gpus=Gpus(
        model="GB200",
        gres_type="gb200",
        count=4,
        memory_mib=189471,
        nvlink_domain=72,
        nvswitch=NvSwitch.RACK,
    ),
)


def of(**given):
    return SlurmOptions.model_validate(given)


def found(made):
    return list(made.primary.options["slurm"].problems(made))


def one(sku, os=OLD, slurm=None, **more):
    """A head and one worker of this model."""
    head = node("head1", "10.1.1.1", "head", sku=HEAD_SKU, primary=True, os=os)
    return cluster("c", head, node("gpu1", "10.1.0.1", "worker", sku=sku, os=os, **more), slurm=slurm)


def gres_lines(made):
    return texts.gres_conf(made, made.primary.options["slurm"]).splitlines()[1:]


def test_gpus_have_their_cores_where_the_catalogue_knows_their_sockets():
    assert gres_lines(one(H100)) == [
        "NodeName=gpu1 AutoDetect=off Name=gpu Type=h100 File=/dev/nvidia[0-3] Cores=0-55",
        "NodeName=gpu1 AutoDetect=off Name=gpu Type=h100 File=/dev/nvidia[4-7] Cores=56-111",
    ]


def test_sockets_that_alternate_make_a_line_each():
    sku = make_gpu_sku(
        gpus=Gpus(model="T4", gres_type="t4", count=3, memory_mib=15360), gpu_sockets=(1, 0, 1)
    )
    assert gres_lines(one(sku)) == [
        "NodeName=gpu1 AutoDetect=off Name=gpu Type=t4 File=/dev/nvidia0 Cores=56-111",
        "NodeName=gpu1 AutoDetect=off Name=gpu Type=t4 File=/dev/nvidia1 Cores=0-55",
        "NodeName=gpu1 AutoDetect=off Name=gpu Type=t4 File=/dev/nvidia2 Cores=56-111",
    ]


@pytest.mark.parametrize(
    "made",
    [
        one(catalogue()["dgx-a100"]),  # eight NUMA nodes, and no word on the order of /dev/nvidiaN
        one(catalogue()["hgx-h100"]),  # the board of many hosts
        one(catalogue()["dgx-h100"], slurm=of(gres_autodetect="nvml")),
        one(catalogue()["dgx-h100"], os_release("debian-13")),
        one(catalogue()["dgx-h100"], mig={"1g.10gb": 7}),
        one(make_gpu_sku(sockets=1, gpu_sockets=(0,) * 8)),
    ],
)
def test_no_cores_where_they_are_not_known_or_found_by_slurm(made):
    assert "Cores=" not in texts.gres_conf(made, made.primary.options["slurm"])


@pytest.mark.parametrize(
    ("sockets", "sentence"),
    [
        ((0, 1), "`gpu_sockets` has 2 entries, but the node has 8 GPUs."),
        ((0, 0, 0, 0, 2, 2, 2, 2), "`gpu_sockets` names socket 2, but the node has 2, counted from 0."),
    ],
)
def test_sockets_that_cannot_be(sockets, sentence):
    with pytest.raises(ValueError, match="gpu_sockets") as caught:
        make_gpu_sku(gpu_sockets=sockets)
    assert sentence in str(caught.value)


def test_a_head_that_works_keeps_memory_for_its_services():
    made = small()
    node1, node2 = made.by_name["node1"], made.by_name["node2"]
    slurm, mariadb = made.primary.options["slurm"], made.primary.options["mariadb"]
    assert isinstance(slurm, ReservesMemory)
    assert isinstance(mariadb, ReservesMemory)
    # slurmctld 2048, slurmdbd 1024; the buffer pool, a tenth of 256 GiB, and a tenth of that
    assert (slurm.reserved_mib(node1), mariadb.reserved_mib(node1)) == (3072, 28835)
    assert (slurm.reserved_mib(node2), mariadb.reserved_mib(node2)) == (0, 0)
    assert layout.real_memory(node2, slurm) - layout.real_memory(node1, slurm) == 3072 + 28835


def test_what_services_keep_is_declared_or_small_on_a_small_node():
    node1 = small().by_name["node1"]
    assert SlurmOptions(controller_memory_mib=8000).reserved_mib(node1) == 12000
    assert SlurmOptions(controller_memory_mib=0).reserved_mib(node1) == 0
    assert MariadbOptions(buffer_pool_mib=1000).reserved_mib(node1) == 1100
    assert SlurmOptions().reserved_mib(lab().primary) == 2048 // 16 + 2048 // 32


def test_a_backup_keeps_memory_for_slurmctld_alone():
    heads = [node(f"h{i}", f"10.0.0.{i}", "head", "worker", primary=i == 1, sku=HEAD_SKU) for i in (1, 2, 3)]
    options = of(backups=["h2"], state_dir="/shared/slurm")
    made = cluster("c", *heads, slurm=options)
    assert [options.reserved_mib(made.by_name[name]) for name in ("h1", "h2", "h3")] == [3072, 2048, 0]


@pytest.mark.parametrize(
    ("detect", "refused"),
    [(None, True), ("off", True), ("nvml", False)],
)
def test_a_gpu_for_screens_is_not_handed_to_jobs(detect, refused):
    made = one(catalogue()["dgx-station-a100"], slurm=SlurmOptions(gres_autodetect=detect))
    problems = [(path, hint) for path, _, hint in found(made)]
    assert (("gres_autodetect", "set `gres_autodetect: nvml`") in problems) == refused


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lab(), "flat"),
        (lab(leaves=("leaf1", "leaf1")), "flat"),
        (lab(leaves=("leaf1", None)), "flat"),
        (lab(leaves=("leaf1", "leaf2")), "tree"),
        (dgx(), "tree"),
    ],
)
def test_auto_is_a_tree_of_declared_switches_alone(made, kind):
    assert topology.topology_kind(made, SlurmOptions()) == kind


def test_racks_are_not_switches():
    nodes = [node(f"w{i}", f"10.0.0.{i + 1}", "worker", rack=f"r{i}") for i in (1, 2)]
    made = cluster("c", node("head1", "10.0.0.1", "head", primary=True), *nodes)
    assert topology.topology_kind(made, SlurmOptions()) == "flat"
    assert texts.topology_conf(made, SlurmOptions()) is None
    tree = cluster("c", node("head1", "10.0.0.1", "head", primary=True), *nodes, slurm=of(topology="tree"))
    assert found(tree) == [
        ("topology", "w[1-2] has no declared switch, which the tree topology needs.", "`switch: leaf1`")
    ]


def racks(sizes, os=None, sku=NVL72, switch=None):
    """Racks with this number of nodes."""
    places = [(rack, i) for rack, size in enumerate(sizes, 1) for i in range(size)]
    more = {"os": os} if os else {}
    return cluster(
        "nvl",
        node("head1", "10.1.1.1", "head", sku=HEAD_SKU, primary=True, **more),
        *(
            node(
                f"r{rack}n{i:02}", f"10.1.{rack + 1}.{i + 1}", "worker",
                sku=sku, rack=f"r{rack}", switch=switch and f"{switch}{rack}", **more,
            )
            for rack, i in places
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (racks((18, 18)), "block"),
        (racks((18, 17), switch="leaf"), "block"),
        (racks((19, 18), switch="leaf"), "tree"),  # more nodes than one NVLink domain has
        (racks((18, 18), OLD), "flat"),  # topology/block is of 24.05
        (racks((18, 18), OLD, switch="leaf"), "tree"),
        (racks((4, 4), sku=make_gpu_sku()), "flat"),
    ],
)
def test_auto_is_blocks_where_racks_are_nvlink_domains(made, kind):
    assert topology.topology_kind(made, SlurmOptions()) == kind
    assert found(made) == []


def test_the_blocks_of_nvl72_racks():
    made = racks((18, 17))
    assert texts.topology_conf(made, SlurmOptions()).splitlines()[1:] == [
        "BlockName=r1 Nodes=r1n[00-17]",
        "BlockName=r2 Nodes=r2n[00-16]",
        "BlockSizes=17",
    ]
    assert "\nTopologyPlugin=topology/block\n" in texts.slurm_conf(made, SlurmOptions())


def test_gpu_nodes_are_heavier_than_others():
    made = cluster(
        "c",
        node("head1", "10.0.0.1", "head", primary=True),
        node("cpu1", "10.0.0.2", "worker", sku=LAB_SKU),
        node("gpu1", "10.0.0.3", "worker", sku=H100),
        node("gpu2", "10.0.0.4", "worker", sku=H100),
        slurm=of(node_settings={"gpu[1-2]": {"features": ["nvme", "nvme"]}, "gpu2": {"weight": 3}}),
    )
    assert found(made) == []
    lines = layout.node_lines(made, made.primary.options["slurm"])
    assert [line.split(" Feature=")[1] for line in lines] == [
        "lab-node",
        "dgx-h100,nvme Weight=9",
        "dgx-h100,nvme Weight=3",
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"wroker1": {"weight": 2}},
            ("node_settings.wroker1", "wroker1 is not declared under nodes.", "did you mean `worker1`?"),
        ),
        (
            {"head1": {"features": ["big"]}},
            (
                "node_settings.head1",
                "head1 is not a worker and runs no jobs.",
                "give it the role `worker`",
            ),
        ),
        ({"worker[2-1]": {}}, ("node_settings.worker[2-1]", "The range runs backwards.", "write `1-2`")),
        (
            {"worker[1-2]": {"weight": 2}, "worker2": {"weight": 3}},
            (
                "node_settings.worker2.weight",
                "worker2 already has a weight by worker[1-2].",
                "give it one weight",
            ),
        ),
    ],
)
def test_node_settings_that_are_refused(settings, problem):
    assert found(lab(of(node_settings=settings))) == [problem]


def test_imex_channels():
    made = racks((18, 18))
    options = of(switch_type="nvidia_imex", imex_channels=512)
    assert isinstance(options, ManagesImexChannels)
    assert (options.manages_imex_channels, SlurmOptions().manages_imex_channels) == (True, False)
    assert list(options.problems(made)) == [
        (key, f"{key} must be the same on every node.", "move it to the slurm section of the cluster")
        for key in ("switch_type", "imex_channels")
    ]  # nothing else: the nodes carry other options than these
    text = texts.slurm_conf(made, options)
    assert "\nSwitchType=switch/nvidia_imex\nSwitchParameters=imex_channel_count=512\n" in text
    assert "SwitchType" not in texts.slurm_conf(made, SlurmOptions())


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        (
            one(NVL72, OLD, of(switch_type="nvidia_imex"), rack="r1"),
            [("switch_type", "switch/nvidia_imex needs Slurm 24.05 or newer.", "none, or newer packages")],
        ),
        (
            dgx(of(switch_type="nvidia_imex")),
            [
                (
                    "switch_type",
                    "No worker shares NVLink with other nodes of its rack, so there are no IMEX channels to make.",
                    "`switch_type: none`",
                )
            ],
        ),
        (
            dgx(of(imex_channels=4)),
            [
                (
                    "imex_channels",
                    "Slurm makes IMEX channels only with `switch_type: nvidia_imex`.",
                    None,
                )
            ],
        ),
    ],
)
def test_imex_that_is_refused(made, problems):
    assert found(made) == problems
