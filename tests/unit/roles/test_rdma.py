"""The rdma role: what is declared, files, units and commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.model.gpu_stack import GpuStack
from rackwright.model.hcas import DeclaresHcas, Hca
from rackwright.model.types import LinkKind, Platform
from rackwright.osfamily.known import RELEASES, os_release
from rackwright.roles.network.options import NetworkOptions
from rackwright.roles.rdma import texts
from rackwright.roles.rdma.options import RdmaOptions
from rackwright.roles.tuning.options import TuningOptions
from tests.unit.roles.fabric_sites import fabric_site
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.stack_sites import STACK, site, worker

CARDS = {
    "mlx5_rail1": {"pci": "0000:2a:00.0", "rail": 1},
    "mlx5_rail0": {"pci": "0000:18:00.0", "rail": 0},
}
SOFT = {
    "rxe_rail0": {"soft": "rxe", "netdev": "enp0s3", "rail": 0},
    "rxe_rail1": {"soft": "rxe", "netdev": "rail-1", "rail": 1},
}
NETWORK = {
    "interfaces": {
        "mgmt0": {"mac": "b8:ce:f6:00:00:01"},
        "rail0": {"pci": "0000:18:00.0"},
        "rail1": {"pci": "0000:2a:00.0"},
    },
    "networks": {"management": {"on": "mgmt0"}, "fabric": {"on": ["rail0", "rail1"]}},
}


def declared(devices=CARDS, **more):
    return RdmaOptions.model_validate({"devices": devices, **more})


def made(devices=CARDS, *, kind=LinkKind.INFINIBAND, others=None, **more):
    """The site, and its worker gpu1."""
    where = {key: more.pop(key) for key in ("os", "platform", "network", "gpu_stack") if key in more}
    cluster = fabric_site({"rdma": declared(devices, **more), **(others or {})}, kind=kind, **where)
    return cluster, cluster.by_name["gpu1"]


@pytest.mark.parametrize(
    ("devices", "printed"),
    [
        (
            {"mlx5_0": {"pci": "0000:18:00.0"}},
            "`mlx5_0` is a name that the kernel or rdma-core may give to another device.",
        ),
        (
            {"rocep24s0": {"pci": "0000:18:00.0"}},
            "`rocep24s0` is a name that the kernel or rdma-core may give to another device.",
        ),
        (
            {"mlx5_a": {"pci": "18:00.0"}},
            "'18:00.0' is not a PCI address with its domain in lower case.",
        ),
        (
            {"mlx5_a": {"rail": 0}},
            "A device is either at a PCI address (`pci`) or made in software (`soft`).",
        ),
        (
            {"mlx5_a": {"pci": "0000:18:00.0", "soft": "rxe"}},
            "A device is either at a PCI address (`pci`) or made in software (`soft`).",
        ),
        (
            {"mlx5_a": {"pci": "0000:18:00.0"}, "mlx5_b": {"pci": "0000:18:00.0"}},
            "`mlx5_a` and `mlx5_b` are both at 0000:18:00.0.",
        ),
    ],
)
def test_a_device_that_cannot_be_is_refused(devices, printed):
    assert printed in errors_in(RdmaOptions, {"devices": devices})[0]


@pytest.mark.parametrize(("name"), ["mlx5 rail0", "mlx5:0", "mlx5,a", "^mlx5", "=mlx5", "0a", "A"])
def test_a_name_has_nothing_that_nccl_reads_as_more(name):
    assert errors_in(RdmaOptions, {"devices": {name: {"pci": "0000:18:00.0"}}})


def test_it_runs_where_a_device_s_network_is():
    cluster, _ = made()
    assert [node.name for node in cluster.running("rdma")] == ["head1", "head2", "gpu1", "gpu2", "gpu3"]


def test_hcas_are_listed_rail_by_rail_with_their_interface():
    cluster, node = made()
    assert node.offers(DeclaresHcas).hcas(cluster, node) == (
        Hca("mlx5_rail0", "fabric", 0, "0000:18:00.0"),
        Hca("mlx5_rail1", "fabric", 1, "0000:2a:00.0"),
    )
    network = NetworkOptions.model_validate(NETWORK)
    cluster, node = made(kind=LinkKind.ROCE, others={"network": network}, network={"vlan": 40})
    assert [hca.netdev for hca in node.offers(DeclaresHcas).hcas(cluster, node)] == ["rail0", "rail1"]
    soft = {"rxe_rail0": {"soft": "rxe"}}
    cluster, node = made(soft, kind=LinkKind.ROCE, others={"network": network}, network={"vlan": 40})
    assert [hca.netdev for hca in node.offers(DeclaresHcas).hcas(cluster, node)] == ["rail0.40"]


def test_the_network_role_names_ports_and_vlans():
    network = NetworkOptions.model_validate(NETWORK)
    cluster, _ = made(kind=LinkKind.ROCE, others={"network": network}, network={"vlan": 40})
    assert network.interface(cluster, "fabric", 1) == "rail1.40"
    assert network.port("fabric", 1) == "rail1"
    assert network.interface(cluster, "management") == "mgmt0"
    assert network.interface(cluster, "fabric", 2) is network.interface(cluster, "storage") is None
    plain = {**NETWORK["networks"], "fabric": {"on": ["rail0", "rail1"], "tagged": False}}
    untagged = NetworkOptions.model_validate({**NETWORK, "networks": plain})
    assert untagged.interface(cluster, "fabric", 1) == "rail1"


@pytest.mark.parametrize(
    ("devices", "kind", "path", "printed"),
    [
        (
            {"mlx5_a": {"pci": "0000:18:00.0", "rail": 2}},
            LinkKind.ROCE,
            "devices.mlx5_a.rail",
            "fabric has rails 0 to 1, and this is rail 2.",
        ),
        (
            {"mlx5_a": {"pci": "0000:18:00.0"}, "mlx5_b": {"pci": "0000:19:00.0"}},
            LinkKind.ROCE,
            "devices.mlx5_b.rail",
            "mlx5_a is on rail 0 of fabric too.",
        ),
        (
            {"mlx5_a": {"pci": "0000:18:00.0", "network": "fabrik"}},
            LinkKind.ROCE,
            "devices.mlx5_a.network",
            "There is no network fabrik.",
        ),
        (
            {"mlx5_a": {"pci": "0000:18:00.0", "network": "management"}},
            LinkKind.ROCE,
            "devices.mlx5_a.network",
            "management is plain Ethernet: it has no RDMA devices.",
        ),
        (
            {"mlx5_a": {"pci": "0000:18:00.0"}},
            LinkKind.ETHERNET,
            "network",
            "fabric is plain Ethernet: it has no RDMA devices.",
        ),
        (
            SOFT,
            LinkKind.INFINIBAND,
            "devices.rxe_rail0.soft",
            "rxe cannot be on fabric, which is infiniband.",
        ),
        (
            {"siw_a": {"soft": "siw", "netdev": "eth9"}},
            LinkKind.ROCE,
            "devices.siw_a.soft",
            "siw cannot be on fabric, which is roce.",
        ),
        (
            {"mlx5_a": {"pci": "0000:18:00.0", "netdev": "ib0"}},
            LinkKind.INFINIBAND,
            "devices.mlx5_a.netdev",
            "fabric is InfiniBand, and its interfaces are made by the role ipoib.",
        ),
        (
            {"rxe_a": {"soft": "rxe"}},
            LinkKind.ROCE,
            "devices.rxe_a.netdev",
            "head1, head2, gpu1, gpu2, gpu3: no interface is declared for rail 0 of fabric.",
        ),
    ],
)
def test_what_contradicts_the_networks_is_refused(devices, kind, path, printed):
    cluster, node = made(devices, kind=kind)
    found = list(node.options["rdma"].problems(cluster))
    assert (path, printed) in [problem[:2] for problem in found]


def test_right_devices_have_no_problems():
    for devices, kind in ((CARDS, LinkKind.INFINIBAND), (SOFT, LinkKind.ROCE)):
        cluster, node = made(devices, kind=kind)
        options = node.options["rdma"]
        assert [*options.problems(cluster), *options.lock_problems(cluster), *options.warnings(cluster)] == []


def test_a_rail_without_a_device_and_a_limit_are_warned_of():
    cluster, node = made(
        {"mlx5_a": CARDS["mlx5_rail0"]}, others={"tuning": TuningOptions(limits={"memlock": 64})}
    )
    printed = [sentence for _, sentence, _ in node.options["rdma"].warnings(cluster)]
    assert printed[0] == "No device is declared for rail 1 of fabric."
    assert printed[1].endswith("the role tuning limits locked memory, which RDMA registers buffers in.")


def test_cards_are_named_by_udev_at_their_place():
    cluster, node = made()
    plan = planned(cluster, node)
    assert plan.error is None
    assert content(plan, texts.RULES).splitlines()[2:] == [
        'ACTION!="add", GOTO="rackwright_rdma_end"',
        'SUBSYSTEM!="infiniband", GOTO="rackwright_rdma_end"',
        'KERNELS=="0000:18:00.0", PROGRAM="rdma_rename %k NAME_FIXED mlx5_rail0", GOTO="rackwright_rdma_end"',
        'KERNELS=="0000:2a:00.0", PROGRAM="rdma_rename %k NAME_FIXED mlx5_rail1", GOTO="rackwright_rdma_end"',
        'PROGRAM="rdma_rename %k NAME_FALLBACK"',
        'LABEL="rackwright_rdma_end"',
    ]
    assert content(plan, texts.MODULES_LOAD).splitlines()[1:] == ["ib_uverbs", "rdma_ucm", "ib_umad"]


def test_software_devices_come_with_their_interface():
    cluster, node = made(SOFT, kind=LinkKind.ROCE, platform=Platform.VM)
    plan = planned(cluster, node)
    assert plan.error is None
    unit = content(plan, "/etc/systemd/system/rackwright-rdma-soft-rxe_rail1.service")
    # as `systemd-escape --path /sys/subsystem/net/devices/rail-1` prints it
    assert r"BindsTo=sys-subsystem-net-devices-rail\x2d1.device" in unit.splitlines()
    assert "ExecStart=/usr/bin/env rdma link add rxe_rail1 type rxe netdev rail-1" in unit.splitlines()
    assert content(plan, texts.MODULES_LOAD).splitlines()[1:] == ["ib_uverbs", "rdma_ucm", "rdma_rxe"]
    # a NIC on PCI would have rdma-core's rule rename the device
    assert 'KERNEL=="rxe_rail0", GOTO="rackwright_rdma_end"' in content(plan, texts.RULES)


def test_a_container_gets_packages_and_limits_alone():
    cluster, node = made(platform=Platform.CONTAINER)
    found = [operation.name for operation in planned(cluster, node).operations if operation.role == "rdma"]
    assert [name.partition(":")[0] for name in found] == [
        "Install RDMA's libraries and tools",
        "Create the folder for systemd settings",
        "Raise the locked memory limit",
        "Raise the locked memory limit",
        "Reload systemd for the service limit",
    ]


def test_the_role_tuning_has_the_limits_where_it_runs():
    cluster, node = made(others={"tuning": TuningOptions()})
    plan = planned(cluster, node)
    assert content(plan, texts.LIMITS) is content(plan, texts.MANAGER) is None


def test_link_types_are_set_only_where_asked_for():
    cluster, node = made()
    names = {operation.name for operation in planned(cluster, node).operations}
    assert not any("link type" in name for name in names)
    cluster, node = made(set_link_type=True)
    assert commands(planned(cluster, node), "Set the link type of mlx5_rail0 for the next boot") == (
        "mstconfig -y -d 0000:18:00.0 set LINK_TYPE_P1=1",
    )


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_planned_on_each_release(release):
    cluster, node = made(
        {**CARDS}, os=os_release(release), set_link_type=True, max_read_request=512, firmware={"MT_1": "1.2"}
    )
    plan = planned(cluster, node)
    assert plan.error is None
    (install,) = commands(plan, "Install RDMA's libraries and tools")[-1:]
    for package in ("rdma-core", "perftest", "infiniband-diags", "mstflint", "pciutils"):
        assert package in install


DOCA = GpuStack(**{**STACK.model_dump(), "ofed": "doca"})


def test_doca_is_refused_without_a_lock_that_has_it(tmp_path):
    options = RdmaOptions(network="management")
    cluster = site(tmp_path, {"rdma": options}, worker("gpu1", 11, "dgx-h100"), gpu_stack=DOCA, locked=False)
    ((_, printed, hint),) = options.lock_problems(cluster)
    assert "lock" in printed
    assert hint is not None


def _tree(tmp_path: Path, devices: dict[str, str]) -> dict[str, str]:
    """A sysfs and an `rdma` that renames in it, as the kernel does: never onto a name that is taken."""
    for name, pci in devices.items():
        (tmp_path / "pci" / pci).mkdir(parents=True)
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "device").symlink_to(tmp_path / "pci" / pci)
    tool = tmp_path / "bin" / "rdma"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\ncd {tmp_path}/class\n[ ! -e "$5" ] || {{ echo "File exists" >&2; exit 1; }}\nmv "$3" "$5"\n'
    )
    tool.chmod(0o755)
    return {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}


def _run(tmp_path: Path, script: str, environment: dict[str, str]) -> str:
    script = script.replace("/sys/class/infiniband", f"{tmp_path}/class")
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("there", "before", "after"),
    [
        (
            {"mlx5_rail1": "0000:18:00.0", "mlx5_rail0": "0000:2a:00.0"},  # swapped
            "mlx5_rail0: is mlx5_rail1 at 0000:18:00.0; mlx5_rail1: is mlx5_rail0 at 0000:2a:00.0;",
            {"mlx5_rail0", "mlx5_rail1"},
        ),
        (
            {"ibp24s0": "0000:18:00.0", "mlx5_rail0": "0000:99:00.0"},  # another card has the name
            "mlx5_rail0: is ibp24s0 at 0000:18:00.0;",
            {"mlx5_rail0", "rackwright_moved_1"},
        ),
        ({"mlx5_rail0": "0000:18:00.0"}, "as declared", {"mlx5_rail0"}),  # the other is missing
        ({}, "as declared", set()),
    ],
)
def test_devices_get_their_names_without_a_reboot(tmp_path, there, before, after):
    cluster, node = made()
    hcas = node.options["rdma"].hcas(cluster, node)
    environment = _tree(tmp_path, there)
    assert _run(tmp_path, texts.names_read(hcas), environment) == before
    _run(tmp_path, texts.names_write(hcas), environment)
    assert _run(tmp_path, texts.names_read(hcas), environment) == "as declared"
    assert {path.name for path in (tmp_path / "class").glob("*")} == after
