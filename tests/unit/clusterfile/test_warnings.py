"""What a file may say and rarely means: each warning with its words and place, and the file that has none."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from rackwright.clusterfile.load import load
from rackwright.errors import ClusterFileError
from rackwright.model.types import NodeRole
from rackwright.roles.munge.options import MungeOptions
from tests.unit.clusterfile.base_file import change

SLURM = ("munge: {}", "munge: {}\n  slurm: {packages: {source: schedmd, release: '26.05'}}")
NO_FABRIC = ("      ib: 10.3.0.11\n", "")
QUIET = ("burnin:\n  floor_busbw_gbs: 10\n  floor_source: measured here, 2026-11-20\n", "")
OWN_SKU = "  own-node:\n    vendor: Example"
STACK = "gpu_stack:\n  driver: {branch: '580'}\n\nssh:\n"


def of(folder: Path, *edits: tuple[str, str]) -> list[tuple[int, str, str, str | None]]:
    """Line, path, sentence and hint of each warning about the base file with these changes."""
    path = folder / "demo.yaml"
    path.write_text(change(*edits))
    found = load(path, locked=False, warn=True).warnings
    return [(one.line, one.path, one.message, one.hint) for one in found]


def sku(name: str, *more: str) -> tuple[str, str]:
    return "switch: s[1-2]", "\n    ".join((f"sku: {name}", *more))


def own(*nics: str) -> tuple[str, str]:
    ports = "".join(f"      - {nic}\n" for nic in nics)
    return OWN_SKU, f"  own-node:\n    nics:\n{ports}    vendor: Example"


def test_nothing_is_looked_for_unless_asked(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(change())
    assert load(path).warnings == ()


# GPUs and their driver


def test_gpus_in_slurm_without_a_driver(tmp_path):
    (found,) = of(tmp_path, SLURM, NO_FABRIC, QUIET, sku("dgx-h100"))
    assert found == (
        50,
        "nodes[1].nodes",
        "w[1-4] offer their H100-SXM5-80GB GPUs to jobs, but no role installs their driver.",
        "add `nvidia_driver` under `roles`, unless the image has the driver",
    )


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((NO_FABRIC, sku("dgx-h100")), id="no workload manager"),
        pytest.param((SLURM, NO_FABRIC, sku("mi300x-8x")), id="another maker's GPUs"),
        pytest.param(
            (SLURM, NO_FABRIC, sku("dgx-h100", "platform: container", "lab: {cpus: 1, memory_mib: 1024}")),
            id="containers",
        ),
    ],
)
def test_no_driver_is_missed(tmp_path, edits):
    lab = (
        "addresses: {mgmt: 10.1.0.10}",
        "addresses: {mgmt: 10.1.0.10}\n    lab: {cpus: 1, memory_mib: 1024}",
    )
    more = (lab,) if any("lab:" in new for _, new in edits) else ()
    assert of(tmp_path, QUIET, *edits, *more) == []


def test_a_role_that_installs_the_driver_is_enough(tmp_path):
    edits = (
        ("munge: {}", SLURM[1] + "\n  nvidia_driver: {}"),
        ("ssh:\n", STACK),
        NO_FABRIC,
        QUIET,
    )
    assert of(tmp_path, *edits, sku("dgx-h100")) == []


# Ports and networks

SITE = "declare a site SKU with the actual ports under `skus`, e.g. "


@pytest.mark.parametrize(
    ("edits", "path", "message", "hint"),
    [
        pytest.param(
            (
                ("kind: infiniband", "kind: roce"),
                ("rails: 2\n    rail_prefix: 25", "rails: 8"),
                sku("dgx-h100"),
            ),
            "nodes[1].addresses.ib",
            "ib is RoCE, but the fabric ports of dgx-h100 are InfiniBand by default.",
            SITE + "`nics: [{purpose: fabric, kind: roce, speed_gbps: 400, rail: 0}, ...]`",
            id="RoCE on InfiniBand ports",
        ),
        pytest.param(
            (
                ("rails: 2\n    rail_prefix: 25", "rails: 8"),
                ("kind: infiniband", "kind: roce"),
                sku("hgx-h100"),
            ),
            "nodes[1].addresses.ib",
            "ib is RoCE, but the fabric ports of hgx-h100 are InfiniBand in the generic SKU; actual ports differ by vendor.",
            SITE + "`nics: [{purpose: fabric, kind: roce, speed_gbps: 400, rail: 0}, ...]`",
            id="example ports",
        ),
        pytest.param(
            (sku("own-node"),),
            "nodes[1].addresses.ib",
            "ib is InfiniBand, but own-node has no fabric port; its links cannot be checked.",
            "correct `skus.own-node.nics`, e.g. "
            "`nics: [{purpose: fabric, kind: infiniband, speed_gbps: 400, rail: 0}, ...]`",
            id="no port",
        ),
        pytest.param(
            (
                ("kind: infiniband", "kind: roce"),
                own(*(f"{{purpose: fabric, kind: ethernet, speed_gbps: 200, rail: {r}}}" for r in (0, 1))),
                sku("own-node"),
            ),
            "nodes[1].addresses.ib",
            "ib is RoCE, but the fabric ports of own-node are Ethernet.",
            "correct `skus.own-node.nics`, e.g. "
            "`nics: [{purpose: fabric, kind: roce, speed_gbps: 200, rail: 0}, ...]`",
            id="RoCE on Ethernet ports",
        ),
        pytest.param(
            (
                ("kind: infiniband", "kind: roce"),
                own("{purpose: storage, kind: roce, speed_gbps: 200}"),
                sku("own-node"),
            ),
            "nodes[1].addresses.ib",
            "ib is RoCE, but own-node has no fabric port; its links cannot be checked.",
            "correct `skus.own-node.nics`, e.g. "
            "`nics: [{purpose: fabric, kind: roce, speed_gbps: 400, rail: 0}, ...]`",
            id="storage ports are not fabric ports",
        ),
        pytest.param(
            (("      ib: 10.3.0.11", "      store: 10.2.0.11"), sku("dgx-h100")),
            "nodes[1].addresses.store",
            "store is Ethernet, but the storage ports of dgx-h100 are InfiniBand by default.",
            SITE + "`nics: [{purpose: storage, kind: ethernet, speed_gbps: 400}, ...]`",
            id="storage of another kind",
        ),
        pytest.param(
            (("rails: 2\n    rail_prefix: 25", "rails: 16"), sku("dgx-h100")),
            "networks.ib.rails",
            "The network has 16 rails, but no node has ports on more than 8 (dgx-h100).",
            "set `rails: 8`, or declare the actual ports in a site SKU under `skus`",
            id="too many rails",
        ),
    ],
)
def test_ports_that_cannot_be_on_a_network(tmp_path, edits, path, message, hint):
    ((_, *found),) = of(tmp_path, *edits)
    assert found == [path, message, hint]


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((("rails: 2\n    rail_prefix: 25", "rails: 8"), sku("dgx-h100")), id="as sold"),
        pytest.param((("kind: infiniband", "kind: ethernet"),), id="Ethernet that no port is declared for"),
        pytest.param((("      ib: 10.3.0.11", "      store: 10.2.0.11"),), id="storage on the only port"),
        pytest.param(
            (
                ("kind: infiniband", "kind: roce"),
                own(*(f"{{purpose: fabric, kind: roce, speed_gbps: 200, rail: {r}}}" for r in (0, 1))),
                sku("own-node"),
            ),
            id="the site's ports",
        ),
    ],
)
def test_ports_that_can(tmp_path, edits):
    assert of(tmp_path, *edits) == []


def test_infiniband_on_ports_the_site_declares_as_ethernet_is_a_mistake(tmp_path):
    ports = own(*(f"{{purpose: fabric, kind: ethernet, speed_gbps: 200, rail: {r}}}" for r in (0, 1)))
    with pytest.raises(ClusterFileError) as refused:
        of(tmp_path, ports, sku("own-node"))
    (problem,) = refused.value.problems
    assert (problem.path, problem.message) == (
        "nodes[1].addresses.ib",
        "ib is InfiniBand, but the fabric ports of own-node are Ethernet.",
    )
    assert refused.value.warnings == ()


# Racks with an NVLink domain


def trays(count: int, rack: str) -> tuple[tuple[str, str], ...]:
    return (
        ("nodes: w[1-4]", f"nodes: w[1-{count}]"),
        ("rack: r[1-2]\n    position: 1\n    switch: s[1-2]", f"rack: {rack}\n    sku: dgx-gb200"),
        NO_FABRIC,
    )


def test_more_trays_than_an_nvlink_domain_has(tmp_path):
    ((line, *found),) = of(tmp_path, *trays(36, "r1"))
    assert (line, found) == (
        54,
        [
            "nodes[1].rack",
            "r1 has 36 nodes of dgx-gb200 with 144 GPUs; one NVLink domain has 18 nodes with 72 GPUs.",
            "declare one rack per NVLink domain, e.g. `rack: rack[1-2]`",
        ],
    )


def test_as_many_trays_as_an_nvlink_domain_has(tmp_path):
    assert of(tmp_path, *trays(36, "r[1-2]")) == []


# The burn-in's programs


def test_a_burnin_without_its_programs(tmp_path):
    (found,) = of(tmp_path, SLURM, ("kind: infiniband", "kind: ethernet"))
    assert found[1:3] == (
        "burnin",
        "The burn-in runs mpi, but no role installs MPI and the programs it needs.",
    )


@pytest.mark.parametrize(
    ("lock", "engine", "missing"),
    [
        (None, "mpi", "torch"),
        ("torch==2.13.0+cpu \\\n", "mpi", None),
        ("torch==2.13.0+cpu \\\n", "nccl-tests", "cupy"),
        ("cupy-cuda13x==14.2.0 \\\n", "nccl-tests", None),
        ("torchvision==0.29.1 \\\n", "mpi", "torch"),
    ],
)
def test_a_burnin_through_ray_needs_its_backend_in_the_lock(tmp_path, lock, engine, missing):
    text = Path("inventory/ray.yaml").read_text()
    if lock is not None:
        (tmp_path / "ray.txt").write_text(f"ray==2.60.0 \\\n{lock}")
        text = text.replace("  ray:\n", "  ray:\n    lock: ray.txt\n")
    text = text.replace("workload: ray\n", "workload: ray\n    sku: lab-h100-node\n")
    path = tmp_path / "ray.yaml"
    path.write_text(f"{text}burnin: {{engine: {engine}}}\n")
    found = [one.message for one in load(path, locked=False, warn=True).warnings if "burn-in" in one.message]
    wanted = f"The burn-in of worker1 needs {missing} in Ray's environment, and its lock has none."
    assert found == ([wanted] if missing else [])


def test_a_burnin_with_its_programs(tmp_path, monkeypatch):
    from rackwright.model.interfaces import ProvidesCollectives
    from rackwright.model.options import RoleOptions

    class Programs(RoleOptions, ProvidesCollectives):
        applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER})

        @property
        def program_folders(self) -> tuple[str, ...]:
            return ("/opt/programs/bin",)

    monkeypatch.setattr("rackwright.clusterfile.roles.Roles.options_class", lambda self, role: options[role])
    from rackwright.clusterfile.roles import options_class

    options = {role: options_class(role) for role in ("munge", "mariadb", "slurm")}
    options["time"] = Programs
    assert (
        of(
            tmp_path,
            ("munge: {}", SLURM[1] + "\n  time: {}"),
            ("kind: infiniband", "kind: ethernet"),
        )
        == []
    )


# Roles


def test_a_roles_own_warning_is_placed_in_its_section_or_override(tmp_path, monkeypatch):
    def warnings(self, cluster):
        yield "threads", f"{self.threads} threads.", "fewer"

    monkeypatch.setattr(MungeOptions, "warnings", warnings)
    found = of(
        tmp_path,
        ("munge: {}", "munge: {threads: 3}"),
        ("switch: s[1-2]", "options: {munge: {threads: 5}}"),
        ("kind: infiniband", "kind: ethernet"),
    )
    assert found == [
        (57, "nodes[1].options.munge.threads", "5 threads.", "fewer"),
        (60, "roles.munge.threads", "3 threads.", "fewer"),
    ]


# Local scratch

SCRATCH = (
    "ssh:\n",
    "storage:\n  fast: {kind: local, purpose: scratch, path: /scratch, roles: [worker]}\n\nssh:\n",
)
LAYOUT = "{on: [worker], disks: {a: {slot: '0000:05:00.0'}}, filesystems: {/scratch: {on: a}}}"


@pytest.mark.parametrize(
    ("docker", "containerd", "where"),
    [
        ("{}", "{root: /scratch/containerd}", ["docker"]),
        ("{data_root: /scratch/docker}", "{root: /scratch/containerd}", []),
        ("{}", "{}", ["docker", "containerd"]),
    ],
)
def test_what_fills_the_boot_disk_although_there_is_scratch(tmp_path, docker, containerd, where):
    roles = f"munge: {{}}\n  storage_layout: {LAYOUT}\n  docker: {docker}\n  containerd: {containerd}"
    found = [one for one in of(tmp_path, SCRATCH, ("munge: {}", roles), QUIET) if one[1] == "storage.fast"]
    options = {"docker": "data_root", "containerd": "root"}
    assert [(message, hint) for _, _, message, hint in found] == [
        (
            f"/var/lib/{role} of w[1-4] is on the boot disk, with {role}'s images, although the node has scratch at /scratch.",
            f"e.g. `{role}: {{{options[role]}: /scratch/{role}}}`",
        )
        for role in where
    ]
