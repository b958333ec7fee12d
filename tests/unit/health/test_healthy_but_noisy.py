"""Healthy nodes that earlier versions would have drained, one test for each case found in the field."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rackwright.health.expected import ExpectedMount, ExpectedPorts
from rackwright.health.judge import judge
from rackwright.health.probe.network import rdma_device
from rackwright.health.probe.pci import bridges_above
from rackwright.health.probe.storage import parse_mounts
from rackwright.health.registry import CHECKS
from rackwright.health.request import request_of
from rackwright.health.verdict import Action
from rackwright.status import Status
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import HANGS, document
from tests.unit.health.faults import kept, rose, smart, unit
from tests.unit.health.healthy import SPEEDS, bridge, pci_device

FULL = BASES["full"]
IB2 = "/sys/class/infiniband/mlx5_2/ports/1"
NIC2 = "/sys/bus/pci/devices/0000:38:00.0"
GPU3 = "/sys/bus/pci/devices/0000:4b:00.0"
NVME1 = "/sys/bus/pci/devices/0000:e1:00.0"


def judged(check, mutate=lambda node: None, expected=FULL.expected, base=FULL):
    """(status, action, evidence) of each finding of a check about a changed machine."""
    node = base.node.with_fault(mutate)
    node.request = request_of(expected)
    told = document(node)
    return [(one.status, one.action, one.evidence) for one in judge(expected, told) if one.check == check]


def statuses(*args, **more):
    return {status for status, _, _ in judged(*args, **more)}


def drains(*args, **more):
    return any(action.rank >= Action.DRAIN.rank for _, action, _ in judged(*args, **more))


PASSED, WARNED, FAILED = {Status.PASS}, {Status.WARN}, {Status.FAIL}


# Counters since boot


@pytest.mark.parametrize(
    ("check", "file", "content"),
    [
        ("rdma-link-errors", IB2 + "/counters/symbol_error", 5000),
        ("rdma-link-errors", IB2 + "/counters/link_downed", 200),
        ("rdma-traffic-errors", IB2 + "/counters/port_rcv_errors", 5000),
        ("rdma-discards", IB2 + "/counters/port_xmit_discards", 5000),
        ("pcie-corrected", GPU3 + "/aer_dev_correctable", "TOTAL_ERR_COR 5000000"),
        ("pcie-uncorrected", GPU3 + "/aer_dev_fatal", "TOTAL_ERR_FATAL 3"),
        ("memory-corrected", "/sys/devices/system/edac/mc/mc1/ce_count", 50000),
        ("interface-errors", "/sys/class/net/net1/statistics/rx_errors", 500000),
        ("cpu-throttle", "/sys/devices/system/cpu/cpu9/thermal_throttle/core_throttle_count", 10**6),
    ],
)
def test_an_old_total_is_a_warning_until_a_second_reading_shows_no_increase(check, file, content):
    def old(node):
        node.put(file, content)
        kept(node)

    assert statuses(check, lambda node: node.put(file, content)) == WARNED
    assert statuses(check, old) == PASSED


def test_a_link_downed_counter_full_since_last_year():
    """The H100 node of gpud: link_downed 255."""

    def old(node):
        node.put(IB2 + "/counters/link_downed", 255)
        kept(node)

    for mutate in (old, lambda node: node.put(IB2 + "/counters/link_downed", 255)):
        [(status, action, evidence)] = judged("rdma-link-errors", mutate)
        assert (status, action) == (Status.WARN, Action.NONE)
        assert (
            evidence
            == "mlx5_2/1: link_downed is saturated at 255 and no longer counts; clear it with perfquery -R"
        )


def test_errors_that_came_with_the_boot_are_no_increase():
    """Training the links counts some; an hour later none has come."""

    def booted(node):
        kept(node, minutes=120)
        node.put(IB2 + "/counters/symbol_error", 5000)
        node.put("/proc/uptime", "3600.00 9000.00")

    assert statuses("rdma-link-errors", booted) == WARNED


def test_thirty_five_bit_errors_a_day_are_within_the_specification():
    assert (
        statuses("rdma-link-errors", rose(lambda node: node.put(IB2 + "/counters/symbol_error", 35)))
        == PASSED
    )


def test_a_gen5_link_within_its_bit_error_rate():
    corrected = rose(lambda node: node.put(GPU3 + "/aer_dev_correctable", "TOTAL_ERR_COR 1800"))
    assert statuses("pcie-corrected", corrected) == PASSED


def test_unsupported_requests_of_a_bus_scan():
    scanned = rose(lambda node: node.put(GPU3 + "/aer_dev_nonfatal", "UnsupReq 4\nTOTAL_ERR_NONFATAL 4"))
    assert statuses("pcie-uncorrected", scanned) == PASSED


def test_media_errors_of_a_drives_youth():
    def old(node):
        smart(1, media_errors=12)(node)
        kept(node)

    assert statuses("nvme-media-errors", old) == PASSED
    assert statuses("nvme-media-errors", smart(1, media_errors=12)) == WARNED


def test_restarts_of_last_month():
    def old(node):
        unit("chrony.service", "NRestarts=0", "NRestarts=40")(node)
        kept(node)

    assert statuses("services-steady", old) == PASSED
    assert not drains("services-steady", rose(unit("chrony.service", "NRestarts=0", "NRestarts=40")))


def test_a_processor_that_cooled_itself_is_no_reason_to_drain():
    hot = "/sys/devices/system/cpu/cpu9/thermal_throttle/core_throttle_count"
    assert statuses("cpu-throttle", rose(lambda node: node.put(hot, 50000))) == WARNED


# Declared ports, drives, links


def irdma(node):
    """An on-board Intel NIC, as in the recorded H100 node: no performance agent, 10 Gb/s, listed first."""
    at = "/sys/class/infiniband/i40iw0"
    pci_device(node, "0000:06:00.0", "0200", "8086:37d3", "i40e", 0, 8, SPEEDS[3])
    node.links[at + "/device"] = "/sys/devices/pci0000:00/0000:06:00.0"
    for name, value in (
        ("board_id", "I40IW Board ID"), ("fw_ver", "1.2"), ("node_guid", "0000:0000:0000:0000"), ("ports/1/lid", "0x1"),
        ("ports/1/link_layer", "Ethernet"), ("ports/1/state", "4: ACTIVE"), ("ports/1/phys_state", "5: LinkUp"),
        ("ports/1/rate", "10 Gb/sec (1X QDR)"), ("ports/1/sm_lid", "0x0"), ("ports/1/pkeys/0", "0x7fff"),
        *((f"ports/1/counters/{name}", "N/A (no PMA)") for name in ("symbol_error", "link_downed", "port_rcv_errors")),
    ):  # fmt: skip
        node.put(f"{at}/{name}", value)


def unused(node):
    """The same NIC without a cable."""
    irdma(node)
    at = "/sys/class/infiniband/i40iw0/ports/1"
    node.put(at + "/state", "1: DOWN")
    node.put(at + "/phys_state", "3: Disabled")


@pytest.mark.parametrize("mutate", [irdma, unused])
@pytest.mark.parametrize("base", ["full", "roce"])
def test_an_rdma_nic_that_is_not_declared(mutate, base):
    """Counters that read `N/A (no PMA)`; ports that are disabled because they are unused."""
    node = BASES[base].node.with_fault(mutate)
    results = judge(BASES[base].expected, document(node))
    assert [
        (one.check, one.evidence) for one in results if one.status not in (Status.PASS, Status.OUT_OF_SCOPE)
    ] == []


def test_counters_without_a_performance_agent_are_not_listed():
    node = FULL.node.with_fault(irdma)
    [port] = rdma_device(node, "i40iw0")["ports"]
    assert port["counters"] == {}


@pytest.mark.parametrize("base", ["full", "roce"])
def test_a_declared_port_that_is_down_or_gone_is_found_beside_another_nic(base):
    def down(node):
        irdma(node)
        node.put(IB2 + "/state", "1: DOWN")
        node.put(IB2 + "/rate", "10 Gb/sec (4X SDR)")

    def gone(node):
        irdma(node)
        node.drop("/sys/class/infiniband/mlx5_2")

    base = BASES[base]
    assert [
        evidence.split(",")[0] for _, _, evidence in judged("rdma-active", down, base.expected, base)
    ] == ["mlx5_2/1 is DOWN/LinkUp"]
    assert statuses("rdma-ports", gone, base.expected, base) == FAILED


def test_a_port_that_counts_nothing_is_unknown_where_it_is_declared():
    silent = judged("rdma-link-errors", lambda node: node.drop(IB2 + "/counters"))
    assert {status for status, _, _ in silent} == {Status.UNKNOWN}


def narrow(at, width, slot=16):
    def mutate(node):
        node.put(at + "/current_link_width", width)
        for above in ("0000:00:01.0", "0000:01:01.0"):
            node.put(f"/sys/bus/pci/devices/{above}/max_link_width", slot)

    return mutate


def test_a_dual_port_nic_in_a_slot_of_eight_lanes():
    """NICs at x8 by design; only a link below what card and slot both can is degraded."""
    assert statuses("nic-pcie-link", narrow(NIC2, 8, slot=8)) == PASSED
    assert drains("nic-pcie-link", narrow(NIC2, 8, slot=16)), "252 of 400 Gb/s"


def test_a_degraded_link_that_still_carries_the_port():
    slow = replace(FULL.expected, ports=(ExpectedPorts("fabric", "infiniband", 200, 10),))
    assert statuses("nic-pcie-link", narrow(NIC2, 8), slow) == WARNED


@pytest.mark.parametrize(("width", "most"), [(0, 16), (255, 255), (16, 0)])
def test_a_link_whose_width_was_not_read(width, most):
    """`limited by Unknown speed x0`."""

    def unread(at):
        def mutate(node):
            node.put(at + "/current_link_width", width)
            node.put(at + "/max_link_width", most)

        return mutate

    for check, at in (("nic-pcie-link", NIC2), ("gpu-pcie-lanes", GPU3), ("nvme-pcie-link", NVME1)):
        assert statuses(check, unread(at)) == {Status.UNKNOWN}


def test_a_drive_in_half_a_slot_stays_in_service():
    assert statuses("nvme-pcie-link", narrow(NVME1, 2, slot=2)) == PASSED
    assert not drains("nvme-pcie-link", narrow(NVME1, 2))


def boot_drive(node):
    """A small drive that no SKU declares, old, hot and behind two lanes."""
    at = "/sys/class/nvme/nvme20"
    pci_device(node, "0000:05:00.0", "0108", "144d:a808", "nvme", 0, 4, SPEEDS[3])
    node.put("/sys/bus/pci/devices/0000:05:00.0/current_link_width", 2)
    node.put("/sys/bus/pci/devices/0000:05:00.0/aer_dev_fatal", "TOTAL_ERR_FATAL 9")
    node.links[at + "/device"] = "/sys/devices/pci0000:00/0000:05:00.0"
    for name, value in (
        ("model", "SAMSUNG MZ1LB960HAJQ"),
        ("firmware_rev", "EDA7602Q"),
        ("state", "resetting"),
    ):
        node.put(f"{at}/{name}", value)
    node.put("/sys/block/nvme20n1/size", 960 * 10**9 // 512)
    node.commands["nvme smart-log /dev/nvme20 -o json"] = json.dumps(
        {
            "critical_warning": 4,
            "temperature": 360,
            "avail_spare": 1,
            "spare_thresh": 10,
            "percent_used": 130,
            "media_errors": 7,
        }
    )


def test_a_boot_drive_that_is_not_declared():
    results = judge(FULL.expected, document(FULL.node.with_fault(boot_drive)))
    assert [
        (one.check, one.evidence) for one in results if one.status not in (Status.PASS, Status.OUT_OF_SCOPE)
    ] == []


def test_a_declared_drive_that_is_gone_is_missed_beside_a_boot_drive():
    def gone(node):
        boot_drive(node)
        node.drop("/sys/class/nvme/nvme1")

    assert drains("nvme-count", gone)


def test_a_declared_drive_that_died_and_shows_no_size():
    def dead(node):
        node.put("/sys/class/nvme/nvme1/state", "dead")
        node.drop("/sys/block/nvme1n1")

    assert drains("nvme-state", dead)


@pytest.mark.parametrize("flags", [0x02, 0x10, 0x20])
def test_a_warning_of_a_drive_that_does_not_fail(flags):
    """A temperature, a backup of volatile memory, a persistent region."""
    assert statuses("nvme-warning", smart(1, critical_warning=flags)) == WARNED


def test_a_drive_beyond_its_estimated_life_works_on():
    assert not drains("nvme-wear", smart(1, percent_used=130))
    assert not drains("nvme-temperature", smart(1, temperature=355))


def test_a_controller_that_is_being_reset():
    assert statuses("nvme-state", lambda node: node.put("/sys/class/nvme/nvme1/state", "resetting")) == WARNED


def test_acs_on_the_bridges_of_a_storage_switch():
    """The XE9680: four ports of the switch above its drives redirect."""

    def storage_switch(node):
        bridge(node, "0000:82:00.0", 0x1D)
        node.links[NVME1] = "/sys/devices/pci0000:80/0000:82:00.0/0000:e1:00.0"

    assert statuses("acs-off", storage_switch) == PASSED


def test_a_bridge_above_no_gpu_that_cannot_be_read():
    def unread(node):
        bridge(node, "0000:82:00.0", 0)
        node.drop("/sys/bus/pci/devices/0000:82:00.0/config")

    assert statuses("acs-off", unread) == PASSED
    assert statuses("acs-off", lambda node: node.drop("/sys/bus/pci/devices/0000:00:01.0/config")) == {
        Status.UNKNOWN
    }


def test_the_bridges_above_a_device_are_read_from_its_real_path():
    where = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"
    assert bridges_above(where, "0000:19:00.0") == ["0000:15:01.0", "0000:16:00.0", "0000:17:01.0"]


# md


def array(name, level, state, degraded=None, action=None):
    def mutate(node):
        for file, value in (
            ("level", level),
            ("array_state", state),
            ("degraded", degraded),
            ("sync_action", action),
        ):
            if value is not None:
                node.put(f"/sys/block/{name}/md/{file}", value)

    return mutate


@pytest.mark.parametrize(
    ("mutate", "status"),
    [
        (array("md7", "container", "inactive"), Status.PASS),
        (array("md8", "raid5", "active", 0, "reshape"), Status.WARN),
        (array("md1", "raid1", "active", 0, "resync"), Status.WARN),
        (array("md1", "raid1", "active", 0, "check"), Status.PASS),
        (array("md5", "raid5", "clean", 1, "idle"), Status.WARN),
        (array("md9", "raid1", "inactive"), Status.PASS),
        (array("md9", "raid0", "broken"), Status.WARN),
    ],
    ids=[
        *("container", "reshape", "resync", "scrub", "degraded, not declared", "a foreign array"),
        "a broken stripe, not declared",
    ],
)
def test_arrays_that_are_no_reason_to_drain(mutate, status):
    found = judged("array-health", mutate)
    assert [one[:2] for one in found] == [(status, Action.NONE)]


@pytest.mark.parametrize(
    "mutate", [array("md5", "raid5", "clean", 1, "idle"), array("md5", "raid6", "active", 1, "recover")]
)
def test_a_declared_array_that_lacks_a_drive(mutate):
    assert drains("array-health", mutate, replace(FULL.expected, arrays=("md0", "md1", "md5")))


# Filesystems


def mounted(line, target=None, answer=HANGS):
    def mutate(node):
        node.put("/proc/self/mounts", node.data("/proc/self/mounts", 0, 1 << 20) + line)
        if target is not None:
            node.commands[f"stat -f -c %b %f %a %c %d {target}"] = answer

    return mutate


@pytest.mark.parametrize(
    "mutate",
    [
        mounted(b"user@login:/data /home/u/mnt fuse.sshfs rw,nosuid,user_id=1000 0 0\n", "/home/u/mnt"),
        mounted(b"cloud /home/u/\xff\xe4\\040x fuse.rclone rw 0 0\n"),
        mounted("cloud /home/u/a\u2028b fuse.rclone rw 0 0\n".encode()),
        mounted(b"/dev/sdz /media/stick vfat ro 0 0\n", "/media/stick", "100 0 0 0 0\n"),
    ],
    ids=["sshfs that hangs", "a name that is no text", "a name with a line separator", "a full stick"],
)
def test_what_users_mount(mutate):
    node = FULL.node.with_fault(mutate)
    told = document(node)
    assert [one["target"] for one in told["sections"]["mounts"]["data"]["mounts"]] == [
        "/",
        "/home",
        "/scratch",
    ]
    results = [one for one in judge(FULL.expected, told) if "mounts" in CHECKS[one.check].reads]
    assert {one.status for one in results} == {Status.PASS}


def test_the_name_of_a_declared_mount_is_read_whatever_is_in_it():
    data = b"/dev/a /data\\040one xfs rw 0 0\n/dev/b /d\xc3\xa4ta xfs ro 0 0\nproc /proc proc rw 0 0\n"
    found = parse_mounts(data, {"/data one", "/däta"})
    assert [(one["target"], one["read_only"]) for one in found] == [("/data one", False), ("/däta", True)]


@pytest.mark.parametrize("target", ["/home", "/scratch"])
@pytest.mark.parametrize("answer", ["1000000 1000 1000 250000 240000\n", "1000000 700000 650000 250000 10\n"])
def test_a_full_file_server_and_full_scratch_space(target, answer):
    """Full on every node alike, or filled by users: draining does not help."""

    def full(node):
        node.commands[f"stat -f -c %b %f %a %c %d {target}"] = answer

    assert not drains("fs-space", full)
    assert not drains("fs-inodes", full)


def test_a_server_that_exports_read_only():
    def read_only(node):
        node.edit("/proc/self/mounts", "/home nfs4 rw", "/home nfs4 ro")

    assert [one[:2] for one in judged("fs-writable", read_only)] == [(Status.FAIL, Action.NONE)]
    assert drains(
        "fs-writable", lambda node: node.edit("/proc/self/mounts", "/scratch xfs rw", "/scratch xfs ro")
    )


def test_an_automount_that_was_not_used_yet():
    expected = replace(
        FULL.expected, mounts=(ExpectedMount("/"), ExpectedMount("/data", "nfs1:/data", "nfs4"))
    )
    unused_mount = mounted(b"systemd-1 /data autofs rw,fd=48 0 0\n", "/data", "0 0 0 0 0\n")
    for check in ("fs-mounted", "fs-source", "fs-answers", "fs-space"):
        assert statuses(check, unused_mount, expected) == PASSED


def test_a_declared_mount_that_hangs_drains():
    assert drains("fs-answers", mounted(b"", "/home"))


# Settings, drift, and what passes by itself


@pytest.mark.parametrize(
    "check",
    [
        "kernel-newest", "kernel-version", "kernel-arguments", "iommu-passthrough", "acs-off", "firmware-bios",
        "rdma-firmware", "nvme-firmware", "driver-locked", "driver-nouveau", "fabricmanager-version", "gpu-direct-rdma",
        "cpu-microcode", "cpu-numa", "cpu-governor", "cpu-clocksource", "cpu-load", "gpu-numa", "memory-speed",
        "memory-available", "memory-swap", "os-release", "os-own-name", "clock-synchronised", "processes-stuck",
        "processes-zombies", "services-steady", "persistenced-active", "imex-active", "slurmd-memlock", "opensm-absent",
        "nvme-size", "nvme-wear", "nvme-temperature", "nvme-pcie-link", "rdma-discards", "cpu-throttle",
    ],
)  # fmt: skip
def test_what_a_rollout_or_a_setting_explains_never_drains(check):
    """Every node of a fleet has it at once, or the node works on."""
    assert CHECKS[check].action is Action.NONE


def test_hyperthreading_that_is_switched_off():
    top = "/sys/devices/system/cpu"
    for mutate in (
        lambda node: node.put(f"{top}/online", "0-111"),
        lambda node: (node.put(f"{top}/online", "0-111"), node.put(f"{top}/present", "0-111")),
    ):
        assert not drains("cpu-threads", mutate)
        assert not drains("cpu-online", mutate)
    assert drains("cpu-threads", lambda node: node.put(f"{top}/online", "0-100"))


def test_more_processors_than_declared_work():
    expected = replace(FULL.expected, sockets=1, cores=56, threads=112)
    for check in ("cpu-sockets", "cpu-cores", "cpu-threads"):
        assert [one[:2] for one in judged(check, expected=expected)] == [(Status.FAIL, Action.NONE)]


def test_a_clock_a_little_off_and_one_that_slurm_refuses():
    def off(seconds):
        return lambda node: node.edit("chronyc -c tracking", "0.000012", seconds)

    assert statuses("clock-offset", off("-0.512")) == WARNED
    assert drains("clock-offset", off("-120.5"))


def test_uvm_is_loaded_by_the_first_cuda_program():
    assert (
        statuses("driver-loaded", lambda node: node.edit("/proc/modules", "nvidia_uvm 1 0 - Live 0x0\n", ""))
        == WARNED
    )


def test_a_bond_without_one_of_two():
    """A switch of the pair is being updated: every node of the rack lacks one."""

    def down(*names):
        def mutate(node):
            for name in names:
                old = f"Slave Interface: {name}\nMII Status: up"
                node.edit("/proc/net/bonding/bond0", old, old.replace("up", "down"))

        return mutate

    assert not drains("bond-members", down("eno1"))
    assert drains("bond-members", down("eno1", "eno2"))


def test_a_default_route_by_another_gateway():
    assert not drains("default-route", lambda node: node.edit("/proc/net/route", "0100090A", "FE00090A"))
    assert drains(
        "default-route", lambda node: node.edit("/proc/net/route", "00000000\t0100090A", "0000000A\t0100090A")
    )


@pytest.mark.parametrize("state", ["activating", "deactivating"])
def test_a_service_that_is_being_restarted(state):
    moment = unit("chrony.service", "ActiveState=active", f"ActiveState={state}")
    assert statuses("services-active", moment) == {Status.UNKNOWN}


def test_pages_offlined_after_corrected_errors():
    offlined = judged(
        "memory-poisoned",
        lambda node: node.edit("/proc/meminfo", "HardwareCorrupted: 0", "HardwareCorrupted: 4"),
    )
    assert [one[:2] for one in offlined] == [(Status.WARN, Action.NONE)]


def test_a_node_without_an_edac_driver_is_unknown_once():
    none = {"mutate": lambda node: node.drop("/sys/devices/system/edac/mc")}
    assert statuses("memory-uncorrected", **none) == {Status.UNKNOWN}
    assert statuses("memory-corrected", **none) == {Status.OUT_OF_SCOPE}


def test_a_corrected_error_every_few_minutes():
    some = judged(
        "memory-corrected", rose(lambda node: node.put("/sys/devices/system/edac/mc/mc1/ce_count", 300))
    )
    assert [one[:2] for one in some] == [(Status.WARN, Action.NONE)]


# A virtual machine, and a site without time servers


def test_an_emulated_drive_counts_no_spare_blocks():
    machine = replace(FULL.expected, platform="vm")
    emulated = smart(1, avail_spare=0, spare_thresh=0)
    assert statuses("nvme-spare", emulated, expected=machine) == PASSED  # by the other drives

    def all_of_them(node):
        for drive in range(len(node.names("/sys/class/nvme"))):
            smart(drive, avail_spare=0, spare_thresh=0)(node)

    assert statuses("nvme-spare", all_of_them, expected=machine) == {Status.OUT_OF_SCOPE}
    assert drains("nvme-spare", emulated)
    assert drains("nvme-spare", smart(1, avail_spare=0), expected=machine)  # one that has a threshold


@pytest.mark.parametrize(
    ("own", "stratum", "found"),
    [
        (None, 9, PASSED),
        (None, 10, FAILED),
        (10, 10, PASSED),
        (10, 11, PASSED),
        (10, 12, FAILED),
        (10, 0, FAILED),
        (4, 9, PASSED),
    ],
)
def test_the_heads_own_clock_is_a_source_where_it_is_declared(own, stratum, found):
    expected = replace(FULL.expected, own_clock_stratum=own)
    at = lambda node: node.edit("chronyc -c tracking", "10.0.0.1,3,", f"10.0.0.1,{stratum},")
    assert statuses("clock-synchronised", at, expected=expected) == found


@pytest.mark.parametrize(("seconds", "limits"), [(None, (2.0, 2.0, 3.0, 5.0)), (30, (15.0,) * 4)])
def test_a_pass_that_waits_longer_gives_each_tool_longer(seconds, limits):
    """An emulated node starts a program in a second."""
    asked = {}

    class Timed(type(FULL.node)):
        def start(self, arguments, seconds):
            asked[arguments[0]] = seconds
            return super().start(arguments, seconds)

    node = FULL.node.with_fault(lambda _: None)
    node.__class__ = Timed
    node.request = {**request_of(FULL.expected), **({"seconds": seconds} if seconds else {})}
    document(node)
    assert tuple(asked[tool] for tool in ("nvme", "chronyc", "ip", "journalctl")) == limits
