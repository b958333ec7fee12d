"""Slurm on nodes whose GPUs are cut by MIG: Gres, gres.conf, packages, shares, refusals."""

from __future__ import annotations

import pytest

from rackwright.osfamily.known import os_release
from rackwright.roles.slurm import layout, texts
from rackwright.roles.slurm.cluster_checks import _node_mistakes
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.placement import software
from rackwright.workload.slurm.gres import gres
from rackwright.workload.slurm.output import NodeReport, node_state
from tests.factories import DEBIAN_13
from tests.unit.roles.slurm_clusters import DGX_SKU, HEAD_SKU, cluster, lab, node

MIXED = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}


def site(os=DEBIAN_13, slurm=None, mig=None):
    return cluster(
        "mig",
        node("head1", "10.1.1.1", "head", sku=HEAD_SKU, primary=True, os=os),
        node("gpu1", "10.1.0.1", "worker", sku=DGX_SKU, os=os, mig=mig or {"1g.10gb": 7}),
        node("gpu2", "10.1.0.2", "worker", sku=DGX_SKU, os=os),
        slurm=slurm,
    )


def test_gres_counts_instances():
    made = site(mig=MIXED)
    assert gres(made.by_name["gpu1"]) == "gpu:1g.10gb:16,gpu:2g.20gb:8,gpu:3g.40gb:8"
    assert gres(made.by_name["gpu2"]) == "gpu:h100:8"
    lines = layout.node_lines(made, SlurmOptions())
    assert [line.split()[0] for line in lines] == ["NodeName=gpu1", "NodeName=gpu2"]
    assert " Gres=gpu:1g.10gb:16,gpu:2g.20gb:8,gpu:3g.40gb:8 " in lines[0]


def test_nvml_finds_instances_and_is_installed_where_they_are():
    made = site()
    assert texts.gres_conf(made, SlurmOptions()).splitlines()[1:] == [
        "NodeName=gpu1 AutoDetect=nvml",
        "NodeName=gpu2 AutoDetect=nvidia",
    ]
    assert "slurm-nvml" in software(made, made.by_name["gpu1"], SlurmOptions()).slurm
    assert "slurm-nvml" not in software(made, made.by_name["gpu2"], SlurmOptions()).slurm


def test_a_container_counts_links_one_per_instance():
    made = lab(workers=1)
    worker = made.by_name["worker1"].model_copy(update={"sku": DGX_SKU, "mig": MIXED})
    made = made.model_copy(update={"nodes": (made.primary, worker)})
    assert layout.simulated_gpus(worker) == 32
    assert texts.gres_conf(made, SlurmOptions()).splitlines()[1:] == [
        "NodeName=worker1 AutoDetect=off Name=gpu Type=1g.10gb File=/run/rackwright-gpu[0-15]",
        "NodeName=worker1 AutoDetect=off Name=gpu Type=2g.20gb File=/run/rackwright-gpu[16-23]",
        "NodeName=worker1 AutoDetect=off Name=gpu Type=3g.40gb File=/run/rackwright-gpu[24-31]",
    ]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (site(), None),
        (site(slurm=SlurmOptions(gres_autodetect="nvml")), None),
        (
            site(slurm=SlurmOptions(gres_autodetect="nvidia")),
            (
                "gres_autodetect",
                "gpu1 has MIG instances, which Slurm finds only through NVML.",
                "leave gres_autodetect out or set it to nvml",
            ),
        ),
        (
            site(os_release("rocky-9")),
            (
                "packages.source",
                "gpu1 has MIG instances; Slurm of rocky-9 has no NVML plugin to find them.",
                "take packages from SchedMD: `packages: {source: schedmd, release: '26.05'}`",
            ),
        ),
        (
            site(mig={"1g.10gb": 6, "1g.10gb+me": 1}),
            (
                "",
                "gpu1 has 1g.10gb and 1g.10gb+me, which Slurm confuses, since it compares parts of names.",
                "declare one of the two in `mig`",
            ),
        ),
    ],
)
def test_problems(made, problem):
    found = list(made.primary.options["slurm"].problems(made))
    assert found == ([] if problem is None else [problem])


@pytest.mark.parametrize(
    ("found", "mistakes"),
    [
        ("gpu:1g.10gb:16(S:0-1),gpu:2g.20gb:8(S:0-1),gpu:3g.40gb:8(S:0-1)", []),
        (
            "gpu:h100:8(S:0-1)",
            ["gpu1 has Gres gpu:h100:8, not gpu:1g.10gb:16,gpu:2g.20gb:8,gpu:3g.40gb:8"],
        ),
    ],
)
def test_the_check_compares_instances(found, mistakes):
    made = site(mig=MIXED)
    gpu1 = made.by_name["gpu1"]
    options = SlurmOptions()
    report = NodeReport(
        name="gpu1",
        state=node_state("IDLE"),
        cpus=layout.hardware(gpu1).cpus,
        memory_mib=layout.real_memory(gpu1, options),
        gres=found,
    )
    assert _node_mistakes(gpu1, report, options) == mistakes
