"""The rdma role's checks: each seen to pass, to fail and not to know; and the readings they parse."""

from __future__ import annotations

import shlex

import pytest

from rackwright.claims.check import Undetermined
from rackwright.model.types import LinkKind, Platform
from rackwright.roles.rdma import texts
from rackwright.roles.rdma.readings import READ, Found, parse_devices, parse_memlock
from rackwright.roles.rdma.verify import CHECKS
from tests.factories import RunsSlurm
from tests.unit.roles.fake_facts import answer, file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.test_rdma import CARDS, SOFT, made

DEVICES = f"sh -c {shlex.quote(READ)}"
NAMES = "every declared RDMA device has its name at its PCI address"
ACTIVE, LAYER = "every RDMA port is active", "every RDMA port has its network's link layer"
SPEED, FIRMWARE = "every RDMA port runs at its SKU's speed", "HCA firmware is as declared"
SOFTWARE, MODULES = "software RDMA devices are on their interfaces", "the RDMA modules are loaded"
REQUESTS = "PCIe read requests of HCAs are as declared"
RULES = "udev rules for RDMA device names are as declared"
SESSION, SLURMD = "user sessions can lock unlimited memory", "slurmd can lock unlimited memory"


def card(name="mlx5_rail0", pci="0000:18:00.0", **changes):
    values = {
        "fw_ver": "28.43.2026",
        "board_id": "MT_0000000838",
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "rate": "400 Gb/sec (4X NDR)",
        "link_layer": "InfiniBand",
        **changes,
    }
    lines = [f"device {name}", f"at {pci}", *(f"{key} {value}" for key, value in values.items() if value)]
    return "\n".join(lines) + "\n"


def sysfs(*devices):
    return {DEVICES: "".join(devices) + "end\n"}


def two(**changes):
    """Rail 0 as declared, rail 1 with changes."""
    return sysfs(card(), card("mlx5_rail1", "0000:2a:00.0", **changes))


GOOD = two()
DECLARED = {"firmware": {"MT_0000000838": "28.43.2026"}, "max_read_request": 4096}


def check(name, replies, devices=CARDS, **where):
    more = {} if "kind" in where else DECLARED
    cluster, node = made(devices, **{**more, **where})
    return judged("rdma", CHECKS, name, cluster, node, FakeHost(replies))


@pytest.mark.parametrize(
    ("name", "replies", "status", "evidence"),
    [
        (NAMES, GOOD, "PASS", "mlx5_rail0 at 0000:18:00.0, mlx5_rail1 at 0000:2a:00.0"),
        (
            NAMES,
            sysfs(card()),
            "FAIL",
            "mlx5_rail1 (rail 1 of fabric) is missing: no RDMA device is at 0000:2a:00.0",
        ),
        (
            NAMES,
            sysfs(card(), card("ibp42s0", "0000:2a:00.0")),
            "FAIL",
            "mlx5_rail1 (rail 1 of fabric): the device at 0000:2a:00.0 is named ibp42s0",
        ),
        (NAMES, {DEVICES: card()}, "UNKNOWN", None),
        (NAMES, {}, "UNKNOWN", None),
        (ACTIVE, GOOD, "PASS", "2 ports ACTIVE, LinkUp"),
        (
            ACTIVE,
            two(state="1: DOWN", phys_state="2: Polling"),
            "FAIL",
            "mlx5_rail1 (rail 1 of fabric) is DOWN, Polling: no cable, or no link partner",
        ),
        (
            ACTIVE,
            two(state="1: DOWN", phys_state="3: Disabled"),
            "FAIL",
            "mlx5_rail1 (rail 1 of fabric) is DOWN, Disabled: its port or interface is switched off",
        ),
        (
            ACTIVE,
            two(state="2: INIT"),
            "FAIL",
            "mlx5_rail1 (rail 1 of fabric) is INIT, LinkUp: no subnet manager has brought the port up",
        ),
        (ACTIVE, two(state=None), "UNKNOWN", "mlx5_rail1 do not report the state of their port"),
        (ACTIVE, {}, "UNKNOWN", None),
        (LAYER, GOOD, "PASS", "InfiniBand"),
        (
            LAYER,
            two(link_layer="Ethernet"),
            "FAIL",
            "mlx5_rail1 (rail 1 of fabric) is Ethernet, not InfiniBand",
        ),
        (LAYER, two(link_layer=None), "UNKNOWN", None),
        (SPEED, GOOD, "PASS", "2 ports at 400 Gb/s"),
        (
            SPEED,
            two(rate="200 Gb/sec (4X HDR)"),
            "FAIL",
            "mlx5_rail1 (rail 1 of fabric) runs at 200 Gb/s, not 400",
        ),
        (SPEED, two(rate="fast"), "UNKNOWN", None),
        (FIRMWARE, GOOD, "PASS", "MT_0000000838 28.43.2026"),
        (
            FIRMWARE,
            two(fw_ver="28.39.1002"),
            "FAIL",
            "mlx5_rail1 (MT_0000000838) has 28.39.1002, not 28.43.2026",
        ),
        (
            FIRMWARE,
            two(board_id="MT_0000000970"),
            "WARN",
            "no firmware is declared for these boards: mlx5_rail1 is a MT_0000000970",
        ),
        (FIRMWARE, two(fw_ver=None), "UNKNOWN", None),
    ],
)
def test_cards(name, replies, status, evidence):
    found = check(name, replies)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize("name", [SPEED, FIRMWARE, REQUESTS])
def test_a_virtual_machine_s_cards_are_its_host_s(name):
    assert check(name, GOOD, platform=Platform.VM).status == "OUT OF SCOPE"


def test_a_container_has_no_devices():
    for name in (NAMES, ACTIVE, LAYER, MODULES):
        assert check(name, {}, platform=Platform.CONTAINER).status == "OUT OF SCOPE"


def test_the_speed_of_a_port_that_the_sku_lacks_is_unknown():
    cluster, node = made()
    node = node.model_copy(update={"sku": node.sku.model_copy(update={"nics": ()})})
    found = judged("rdma", CHECKS, SPEED, cluster, node, FakeHost(GOOD))
    assert (found.status, found.evidence) == (
        "UNKNOWN",
        "the SKU gpu-node does not declare the speed of mlx5_rail0 (rail 0 of fabric)",
    )


def _soft(first="enp0s3", second="rail-1", **states):
    devices = sysfs(card("rxe_rail0", "virtio1"), card("rxe_rail1", "virtio2"))
    return {
        **devices,
        **unit(texts.soft_unit("rxe_rail0"), **states),
        **unit(texts.soft_unit("rxe_rail1")),
        **answer(texts.soft_read("rxe_rail0"), first),
        **answer(texts.soft_read("rxe_rail1"), second),
    }


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        (_soft(), "PASS", "rxe_rail0 of enp0s3, rxe_rail1 of rail-1"),
        (_soft(first="enp0s9"), "FAIL", "rxe_rail0 is made of enp0s9, not enp0s3"),
        ({**_soft(first=""), **sysfs(card("rxe_rail1", "virtio2"))}, "FAIL", "rxe_rail0 is missing"),
        (_soft(active="failed"), "FAIL", "rackwright-rdma-soft-rxe_rail0.service is failed"),
        (_soft(first=""), "UNKNOWN", "rdma link does not report the interface of rxe_rail0"),
        ({}, "UNKNOWN", None),
    ],
)
def test_software_devices(replies, status, evidence):
    found = check(SOFTWARE, replies, SOFT, kind=LinkKind.ROCE, platform=Platform.VM)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_software_devices_are_claimed_only_where_they_are():
    _, node = made(SOFT, kind=LinkKind.ROCE, platform=Platform.VM)
    assert NAMES not in claimed("rdma", CHECKS, node)
    _, node = made()
    assert SOFTWARE not in claimed("rdma", CHECKS, node)


LOADED = "".join(f"{name} 1 0 - Live 0x0\n" for name in ("ib_uverbs", "rdma_ucm", "ib_umad"))


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        ({"cat /proc/modules": LOADED}, "PASS", None),
        (
            {"cat /proc/modules": LOADED.replace("ib_umad", "x"), "test -d /sys/module/ib_umad": (1, "", "")},
            "FAIL",
            "not loaded: ib_umad",
        ),
        ({"cat /proc/modules": "\n"}, "UNKNOWN", "/proc/modules is empty"),
        ({}, "UNKNOWN", None),
    ],
)
def test_modules(replies, status, evidence):
    found = check(MODULES, replies)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_udev_s_rules():
    cluster, node = made()
    text = texts.rules(node.options["rdma"].hcas(cluster, node))
    assert check(RULES, file(texts.RULES, text)).status == "PASS"
    assert check(RULES, file(texts.RULES, text.replace("mlx5_rail0", "mlx5_0"))).status == "FAIL"
    assert check(RULES, {}).status == "UNKNOWN"


ASK = "runuser -u admin -- prlimit --memlock --output=SOFT,HARD --noheadings"


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        ({ASK: "unlimited unlimited\n"}, "PASS", "a session of admin can lock unlimited memory"),
        (
            {ASK: "8388608 8388608\n"},
            "FAIL",
            "a session of admin can lock 8388608 bytes of memory (at most 8388608): RDMA needs unlimited",
        ),
        ({ASK: "nonsense"}, "UNKNOWN", None),
        ({}, "UNKNOWN", None),
    ],
)
def test_memory_of_a_session(replies, status, evidence):
    found = check(SESSION, replies)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


PID = "systemctl show --property=MainPID --value slurmd.service"
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\n"


@pytest.mark.parametrize(
    ("replies", "status"),
    [
        (
            {PID: "71\n", "cat /proc/71/limits": LIMITS + "Max locked memory  unlimited unlimited bytes\n"},
            "PASS",
        ),
        ({PID: "71\n", "cat /proc/71/limits": LIMITS + "Max locked memory  8388608 8388608 bytes\n"}, "FAIL"),
        ({PID: "0\n"}, "FAIL"),
        ({PID: "\n"}, "UNKNOWN"),
        ({PID: "71\n"}, "UNKNOWN"),
    ],
)
def test_memory_of_slurmd(replies, status):
    found = check(SLURMD, replies, others={"slurm": RunsSlurm()})
    assert found.status == status


def test_slurmd_is_asked_only_where_it_runs_jobs():
    cluster, node = made(others={"slurm": RunsSlurm()})
    assert SLURMD in claimed("rdma", CHECKS, node)
    assert SLURMD not in claimed("rdma", CHECKS, cluster.by_name["head1"])
    assert SLURMD not in claimed("rdma", CHECKS, made()[1])


def test_readings():
    (found,) = parse_devices(card(rate="2.5 Gb/sec (1X SDR)") + "end\n").values()
    assert found == Found(
        "mlx5_rail0",
        "0000:18:00.0",
        "28.43.2026",
        "MT_0000000838",
        "ACTIVE",
        "LinkUp",
        2.5,
        "InfiniBand",
    )
    assert parse_devices("device rxe0\nat virtio1\nend\n") == {"rxe0": Found("rxe0")}
    assert parse_devices("end\n") == {}
    assert parse_memlock(LIMITS + "Max locked memory         65536 unlimited bytes") == ("65536", "unlimited")
    with pytest.raises(Undetermined):
        parse_memlock("Max open files 1 1 files\n")
