"""Seeded faults: for every check at least one that it must FAIL, put into a healthy machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.health.document import Document
from rackwright.health.guard import places
from rackwright.health.guard.places import COUNTERS
from rackwright.health.history import counters_of
from rackwright.health.history import name as key_of
from rackwright.status import Status
from tests.unit.health import ipmi
from tests.unit.health.fake_node import HANGS, NOW, FakeNode, document
from tests.unit.health.healthy import (
    SMART,
    bridge_config,
    dcgm_diag,
    dcgm_health,
    dimm,
    mlxconfig,
    mlxconfig_of,
    mlxlink,
    services_command,
    unit_block,
)

Mutate = Callable[[FakeNode], object]


@dataclass(frozen=True)
class Fault:
    """What is done to the machine of a base, and the check that must call it FAIL."""

    check: str
    name: str
    mutate: Mutate
    base: str = "full"
    finds: Status = Status.FAIL

    @property
    def id(self) -> str:
        return f"{self.check}: {self.name}"


FAULTS: list[Fault] = []


def seed(check: str, name: str, mutate: Mutate, base: str = "full", finds: Status = Status.FAIL) -> None:
    FAULTS.append(Fault(check, name, mutate, base, finds))


def kept(node: FakeNode, minutes: float = 30) -> None:
    """What the node's counters show now becomes what was read of them this long ago."""
    at = NOW - 60 * minutes
    reading = {"at": at, "changed": counters_of(Document(document(node)))}
    node.put(places.COUNTERS, json.dumps([reading]))


def rose(mutate: Mutate, minutes: float = 30) -> Mutate:
    """A fault that came up since the counters were read."""
    return lambda node: (kept(node, minutes), mutate(node))


SMI = "nvidia-smi -q -x"


def smi(gpu: int, old: str, new: str) -> Mutate:
    """Replace words in one GPU's part of the XML."""

    def mutate(node: FakeNode) -> None:
        parts = str(node.commands[SMI]).split("<gpu id=")
        assert old in parts[gpu + 1], f"{old} is not in the XML of GPU {gpu}"
        parts[gpu + 1] = parts[gpu + 1].replace(old, new, 1)
        node.commands[SMI] = "<gpu id=".join(parts)

    return mutate


def counted(before: dict[str, int]) -> Mutate:
    """What the last pass, fifty minutes ago, read of error counters."""
    return lambda node: node.put(COUNTERS, json.dumps([{"at": NOW - 3000, "changed": before}]))


def both(*mutations: Mutate) -> Mutate:
    return lambda node: [mutate(node) for mutate in mutations]


def gpu_counter(gpu: int, counter: str) -> str:
    return key_of("gpu", f"GPU-00000000-0000-0000-0000-0000000000{gpu:02d}", counter)


def drop_gpu(gpu: int) -> Mutate:
    def mutate(node: FakeNode) -> None:
        parts = str(node.commands[SMI]).split("<gpu id=")
        last = gpu + 1 == len(parts) - 1
        gone = parts.pop(gpu + 1)
        if last:
            parts[-1] += gone.split("</gpu>")[1]
        node.commands[SMI] = "<gpu id=".join(parts)

    return mutate


def put(path: str, content: object) -> Mutate:
    def mutate(node: FakeNode) -> None:
        assert path in node.files, f"{path} is not there"
        node.put(path, content)

    return mutate


def add(path: str, content: object) -> Mutate:
    return lambda node: node.put(path, content)


def drop(*prefixes: str) -> Mutate:
    return lambda node: [node.drop(prefix) for prefix in prefixes]


def edit(path: str, old: str, new: str, count: int = -1) -> Mutate:
    return lambda node: node.edit(path, old, new, count)


def log(*messages: str) -> Mutate:
    return lambda node: node.log(*messages)


def command(words: str, says: str | tuple[int, str, str]) -> Mutate:
    def mutate(node: FakeNode) -> None:
        assert words in node.commands, f"{words} is not run"
        node.commands[words] = says

    return mutate


def unit(name: str, old: str, new: str) -> Mutate:
    def mutate(node: FakeNode) -> None:
        key = services_command(node.request["services"])
        block = unit_block(name, name != "opensm.service")
        node.edit(key, block, block.replace(old, new))

    return mutate


def smart(drive: int, **values: object) -> Mutate:
    return command(f"nvme smart-log /dev/nvme{drive} -o json", json.dumps({**SMART, **values}))


GPU3 = "/sys/bus/pci/devices/0000:4b:00.0"
IB2 = "/sys/class/infiniband/mlx5_2/ports/1"
NVME1 = "/sys/bus/pci/devices/0000:e1:00.0"

# gpu: present
for gpu in (0, 3, 7):
    seed("gpu-count", f"GPU {gpu} is gone from nvidia-smi", drop_gpu(gpu))
for status, words in (
    (
        15,
        "Unable to determine the device handle for GPU0000:4B:00.0: GPU is lost.  Reboot the system to recover it",
    ),
    (6, "No devices were found"),
):
    seed("gpu-count", words[:40], command(SMI, (status, words + "\n", "")))
seed("gpu-count", "the driver has fewer attached", edit(SMI, "<attached_gpus>8<", "<attached_gpus>7<"))
seed("gpu-count", "lost, in place of a value", smi(3, "<gpu_temp>29 C", "<gpu_temp>GPU is lost"))
seed("gpu-on-bus", "a GPU is off the bus", drop(GPU3))
seed(
    "gpu-bound",
    "vfio holds a GPU",
    lambda node: node.links.update({GPU3 + "/driver": "/sys/bus/pci/drivers/vfio-pci"}),
)
seed("gpu-bound", "the module took seven", drop("/proc/driver/nvidia/gpus/0000:4b:00.0"))
seed("gpu-model", "another model in one slot", smi(2, "233010DE", "20B210DE"))
seed(
    "gpu-identity",
    "one UUID twice",
    smi(1, "GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000000"),
)
seed("gpu-persistence", "off", smi(4, "<persistence_mode>Enabled", "<persistence_mode>Disabled"))
seed("gpu-compute-mode", "exclusive", smi(4, "<compute_mode>Default", "<compute_mode>Exclusive_Process"))
seed("gpu-mig-mode", "on though declared off", smi(5, "<current_mig>Disabled", "<current_mig>Enabled"))
seed("gpu-mig-mode", "turns on at the next reset", smi(5, "<pending_mig>Disabled", "<pending_mig>Enabled"))
seed("gpu-mig-mode", "off though declared on", smi(5, "<current_mig>Enabled", "<current_mig>Disabled"), "mig")
seed(
    "gpu-mig-layout",
    "one instance less",
    edit("nvidia-smi -L", "  MIG 3g.40gb     Device  1: (UUID: MIG-1)\n", "", 1),
    "mig",
)
seed(
    "gpu-mig-layout",
    "another profile",
    edit("nvidia-smi -L", "MIG 3g.40gb     Device  0", "MIG 1g.10gb     Device  0", 1),
    "mig",
)
seed("gpu-vbios", "one is older", smi(6, "96.00.A5.00.01", "96.00.74.00.01"))
INFOROM_WARNING = "WARNING: infoROM is corrupted at gpu 0000:7B:00.0\n"
seed(
    "gpu-inforom",
    "corrupted",
    lambda node: node.commands.update({SMI: (14, str(node.commands[SMI]) + INFOROM_WARNING, "")}),
)
seed(
    "gpu-inforom",
    "corrupted, exit 0",
    edit(SMI, "</nvidia_smi_log>\n", f"</nvidia_smi_log>\n{INFOROM_WARNING}"),
)
seed(
    "gpu-firmware",
    "of another driver",
    smi(6, "<gsp_firmware_version>580.173.02", "<gsp_firmware_version>575.57.08"),
)
seed("gpu-recovery", "wants a reset", smi(0, "<gpu_recovery_action>None", "<gpu_recovery_action>Reset"))
seed("gpu-recovery", "wants a reboot", smi(0, "<gpu_recovery_action>None", "<gpu_recovery_action>Reboot"))
seed(
    "gpu-recovery",
    "drain and reset",
    smi(0, "<gpu_recovery_action>None", "<gpu_recovery_action>Drain and Reset"),
)
seed(
    "gpu-recovery",
    "an older driver: reset required",
    smi(
        0,
        "<gpu_recovery_action>None</gpu_recovery_action>",
        "<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>",
    ),
    "dgx-a100",
)

# gpu: memory
seed(
    "gpu-memory-size",
    "half of it",
    smi(1, "<total>81559 MiB</total><reserved>", "<total>40536 MiB</total><reserved>"),
)
seed("gpu-bar1", "256 MiB", smi(1, "<total>131072 MiB", "<total>256 MiB"))
seed("gpu-ecc-mode", "off", smi(1, "<current_ecc>Enabled", "<current_ecc>Disabled"))
seed("gpu-ecc-mode", "off at the next reset", smi(1, "<pending_ecc>Enabled", "<pending_ecc>Disabled"))
for kind in ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable"):
    seed("gpu-ecc-uncorrected", kind, smi(2, f"<{kind}>0", f"<{kind}>1"))


for kind, most in (("sram_correctable", 10000), ("dram_correctable", 20000000)):
    risen = smi(2, f"<{kind}>0", f"<{kind}>{most + 7}")
    seed("gpu-ecc-corrected", kind, both(risen, counted({gpu_counter(2, kind): 6})))
for flag, check in (
    ("channel_repair_pending", "gpu-repair-pending"),
    ("tpc_repair_pending", "gpu-repair-pending"),
    ("unrepairable_memory", "gpu-unrepairable-memory"),
):
    seed(check, flag, smi(2, f"<{flag}>No", f"<{flag}>Yes"))
seed("gpu-sram-threshold", "passed", smi(2, "<sram_threshold_exceeded>No", "<sram_threshold_exceeded>Yes"))
seed("gpu-rows-failure", "failed", smi(2, "<remapped_row_failure>No", "<remapped_row_failure>Yes"))
seed("gpu-rows-pending", "pending", smi(2, "<remapped_row_pending>No", "<remapped_row_pending>Yes"))
seed("gpu-rows-remapped", "513 rows", smi(2, "<remapped_row_unc>0", "<remapped_row_unc>513"))
seed("gpu-pages-retired", "60 pages", smi(2, "<retired_count>0", "<retired_count>60"), "t4-4x")
seed("gpu-pages-retired", "pending", smi(2, "<pending_retirement>No", "<pending_retirement>Yes"), "dgx1-v100")

# gpu: PCIe
seed("gpu-pcie-width", "8 lanes", smi(7, "<current_link_width>16x", "<current_link_width>8x"))
seed(
    "gpu-pcie-width",
    "8 of its own 16 lanes",
    smi(3, "<current_link_width>16x", "<current_link_width>8x"),
    "t4-4x",
)
seed("gpu-pcie-generation", "the slot gives 4", smi(7, "<max_link_gen>5", "<max_link_gen>4"))


def busy_at_generation_one(node: FakeNode) -> None:
    smi(7, "<current_link_gen>5", "<current_link_gen>1")(node)
    smi(7, "<gpu_util>0 %", "<gpu_util>97 %")(node)


seed("gpu-pcie-generation", "busy at 1", busy_at_generation_one)
seed("gpu-pcie-lanes", "x4 in sysfs", put(GPU3 + "/current_link_width", 4))
seed(
    "gpu-pcie-replays",
    "many in an hour",
    both(smi(7, "<replay_counter>0", "<replay_counter>123456"), counted({gpu_counter(7, "replays"): 113000})),
)
seed("gpu-numa", "on no node", put(GPU3 + "/numa_node", -1))

# gpu: at work
seed(
    "gpu-temperature",
    "1 C below",
    smi(0, "<gpu_temp>29 C</gpu_temp><gpu_temp_tlimit>58 C", "<gpu_temp>86 C</gpu_temp><gpu_temp_tlimit>1 C"),
)
seed("gpu-temperature", "an older board at 88 C", smi(0, "<gpu_temp>29 C", "<gpu_temp>88 C"), "dgx-a100")
seed("gpu-idle-temperature", "75 C and idle", smi(0, "<gpu_temp>29 C", "<gpu_temp>75 C"))
for board in ("full", "dgx-a100"):
    seed(
        "gpu-memory-temperature",
        f"97 C, {board}",
        smi(0, "<memory_temp>37 C", "<memory_temp>97 C"),
        board,
    )
for reason in ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"):
    at = f"<clocks_event_reason_{reason}>"
    seed("gpu-throttle", reason, smi(0, at + "Not Active", at + "Active"))
seed("gpu-power-limit", "half", smi(0, "<current_power_limit>700.00 W", "<current_power_limit>350.00 W"))
seed("gpu-power-draw", "none", smi(0, "68.57 W", "0.00 W"))
seed("gpu-power-draw", "more than can be", smi(0, "68.57 W", "900.00 W"))


def busy(gpu: int) -> Mutate:
    return smi(gpu, "<gpu_util>0 %", "<gpu_util>99 %")


seed("gpu-clocks", "busy at 345 MHz", busy(0))


def slow_memory(node: FakeNode) -> None:
    busy(0)(node)
    smi(0, "<sm_clock>345", "<sm_clock>1900")(node)
    smi(0, "<mem_clock>2619", "<mem_clock>1593")(node)


seed("gpu-memory-clock", "1593 of 2619 MHz", slow_memory)
seed("gpu-leftovers", "40 GiB and no process", smi(0, "<used>0 MiB", "<used>40960 MiB"))

# gpu: kernel log. Words of the messages: gpud, NVIDIA's XID documentation and issue threads.
for code, words in (
    (79, "GPU has fallen off the bus."), (48, "An uncorrectable double bit error (DBE) has been detected"),
    (64, "Row Remapper Error: (0x000000000)"), (74, "NVLink: fatal error detected on link 2"), (95, "Uncontained ECC error"),
    (119, "Timeout after 6s of waiting for RPC response from GPU3 GSP!"), (154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
):  # fmt: skip
    seed(
        "xid-hardware",
        f"XID {code}",
        log(f"NVRM: Xid (PCI:0000:4b:00): {code}, pid='<unknown>', name=<unknown>, {words}"),
    )
seed(
    "xid-application",
    "31 again and again, by ever other processes",
    log(*[f"NVRM: Xid (PCI:0000:4b:00): 31, pid={2345 + at}, name=python, Ch 00000008" for at in range(101)]),
)
seed("xid-known", "of the future", log("NVRM: Xid (PCI:0000:4b:00): 997, of the future"))
seed(
    "xid-known",
    "a recovery in other words",
    log("NVRM: Xid (PCI:0000:4b:00): 154, GPU recovery action is new"),
)
for words in (
    "144, SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000008 0x00000000 0x00000000 0x00000000 0x00000000)",
    "149, pid=4711, name=python3, NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]",
    "45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
):
    seed("xid-hardware", words.split(" ")[0] + words[-20:], log(f"NVRM: Xid (PCI:0000:4b:00): {words}"))
seed(
    "xid-hardware",
    "in its form under MIG",
    log("NVRM: Xid (PCI:0000:4b:00 GPU-I:05): 95, pid=7194, Uncontained: CE User Channel (0x9). RST: Yes"),
)
seed(
    "nvlink-log",
    "no link mask",
    log("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!"),
)
seed(
    "gpu-lost",
    "over three lines",
    log(
        "NVRM: The NVIDIA GPU 0000:4b:00.0",
        "NVRM: (PCI ID: 10de:2330) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    ),
)
seed(
    "sxid-fatal",
    "20034",
    log("nvidia-nvswitch0: SXid (PCI:0000:c0:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"),
)
seed(
    "sxid-nonfatal",
    "many",
    log(
        *[
            "nvidia-nvswitch3: SXid (PCI:0000:c3:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)"
        ]
        * 11
    ),
)
seed("gpu-lost", "does not start", log("NVRM: GPU 0000:4b:00.0: RmInitAdapter failed! (0x62:0x40:2480)"))
seed(
    "driver-mismatch-log",
    "API mismatch",
    log("NVRM: API mismatch: the client has the version 580.173.02, but"),
)

# fabric: NVLink
seed(
    "nvlink-up",
    "one inactive",
    edit("nvidia-smi nvlink -s", "Link 17: 26.562 GB/s", "Link 17: <inactive>", 1),
)
seed("nvlink-up", "one not listed", edit("nvidia-smi nvlink -s", "\t Link 4: 26.562 GB/s\n", "", 1))
seed(
    "nvlink-speed",
    "as recorded on a bad H200: 1.562 GB/s",
    edit("nvidia-smi nvlink -s", "Link 3: 26.562", "Link 3: 1.562", 1),
)
for counter, base, before, now in (
    ("Replay Errors", "full", 3, 104),
    ("Recovery Errors", "full", 3, 4),
    ("CRC Errors", "full", 3, 360004),
    ("Symbol Errors", "rack", 3, 14),
    ("Rx Errors", "rack", 0, 11),
    ("Link recovery successful events", "rack", 0, 1),
):
    key = key_of("nvlink", 0, counter.removesuffix(" Errors").lower().replace(" ", "_"))
    more = edit("nvidia-smi nvlink -e", f"Link 5: {counter}: 0", f"Link 5: {counter}: {now}", 1)
    seed("nvlink-errors", f"{counter} rise", both(more, counted({key: before})), base)
seed(
    "nvlink-errors",
    "one link did not recover",
    edit(
        "nvidia-smi nvlink -e",
        "Link 5: Link recovery failed events: 0",
        "Link 5: Link recovery failed events: 1",
        1,
    ),
    "rack",
)
seed("nvlink-pairs", "one pair by PCIe", edit("nvidia-smi topo -m", "GPU0\t X \tNV18", "GPU0\t X \tPHB"))
seed("nvlink-pairs", "17 links", edit("nvidia-smi topo -m", "GPU0\t X \tNV18", "GPU0\t X \tNV17"))
seed("fabric-state", "in progress", smi(3, "<state>Completed", "<state>In Progress"))
seed("fabric-state", "failed", smi(3, "<status>Success", "<status>Failure"))
seed("fabric-clique", "two cliques", smi(3, "<cliqueId>0", "<cliqueId>1"))
seed(
    "fabric-clique",
    "no cluster in a rack",
    edit(SMI, "3f6c2d1a-0000-4000-8000-00000000beef", "00000000-0000-0000-0000-000000000000"),
    "dgx-gb200",
)
seed("fabric-bandwidth", "degraded in a rack", smi(3, "<bandwidth>Full", "<bandwidth>Degraded"), "rack")
seed("fabric-bandwidth", "degraded on a board", smi(3, "<bandwidth>N/A", "<bandwidth>Degraded"))
seed("fabric-health", "unhealthy", smi(3, "<summary>Healthy", "<summary>Unhealthy"), "rack")
seed("nvswitch-count", "three of four", drop("/proc/driver/nvidia-nvswitch/devices/0000:c2:00.0"))
seed("gpu-nic-affinity", "a NIC moved", edit("nvidia-smi topo -m", "PIX", "SYS"))
seed("pcie-uncorrected", "fatal on a GPU", rose(put(GPU3 + "/aer_dev_fatal", "TOTAL_ERR_FATAL 1")))
seed(
    "pcie-uncorrected",
    "non-fatal on a drive",
    rose(put(NVME1 + "/aer_dev_nonfatal", "UnsupReq 1\nTOTAL_ERR_NONFATAL 2")),
)
seed("pcie-corrected", "many", rose(put(GPU3 + "/aer_dev_correctable", "RxErr 50000\nTOTAL_ERR_COR 50000")))
seed(
    "pcie-log",
    "uncorrected",
    log("pcieport 0000:40:01.0: AER: Uncorrected (Fatal) error received: 0000:4b:00.0"),
)
seed(
    "pcie-log",
    "a storm",
    log(*["pcieport 0000:40:01.0: AER: Corrected error message received from 0000:4b:00.0"] * 1001),
)
seed(
    "pcie-limited",
    "at boot",
    log("mlx5_core 0000:38:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link"),
)
seed(
    "pcie-limited",
    "a GPU in a slot of four lanes",
    log(
        "pci 0000:4b:00.0: 63.012 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x4 link at 0000:00:03.3 "
        "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
    ),
)
seed("nic-pcie-link", "x8", put("/sys/bus/pci/devices/0000:38:00.0/current_link_width", 8))
seed(
    "nic-pcie-link", "16 GT/s", put("/sys/bus/pci/devices/0000:38:00.0/current_link_speed", "16.0 GT/s PCIe")
)

# fabric: RDMA
seed("rdma-ports", "a NIC is gone", drop("/sys/class/infiniband/mlx5_2"))
seed("rdma-active", "down", put(IB2 + "/state", "1: DOWN"))
seed("rdma-active", "initialising", put(IB2 + "/state", "2: INIT"))
seed("rdma-active", "polling", put(IB2 + "/phys_state", "2: Polling"))
seed("rdma-rate", "half", put(IB2 + "/rate", "200 Gb/sec (4X HDR)"))
for kind, count in (
    ("symbol_error", 121), ("link_error_recovery", 11), ("link_downed", 6), ("local_link_integrity_errors", 6),
):  # fmt: skip
    seed("rdma-link-errors", kind, rose(put(f"{IB2}/counters/{kind}", count)))
seed("rdma-link-errors", "full within half an hour", rose(put(f"{IB2}/counters/symbol_error", 65535)))
seed("rdma-traffic-errors", "receive", rose(put(IB2 + "/counters/port_rcv_errors", 101)))
seed("rdma-discards", "many", rose(put(IB2 + "/counters/port_xmit_discards", 1001)))
seed("ib-subnet", "no LID", put(IB2 + "/lid", "0xffff"))
seed("ib-subnet", "no subnet manager", put(IB2 + "/sm_lid", "0x0"))
seed("ib-pkeys", "limited member", put(IB2 + "/pkeys/0", "0x7fff"))
seed("ib-pkeys", "full member of another", put(IB2 + "/pkeys/0", "0x8001"))
seed("rdma-guids", "zero", put("/sys/class/infiniband/mlx5_2/node_guid", "0000:0000:0000:0000"))
seed("rdma-guids", "twice", put("/sys/class/infiniband/mlx5_2/node_guid", "a088:c203:00ab:0001"))
seed("roce-gids", "address lost", drop(IB2 + "/gids/3"), "roce")
seed("rdma-firmware", "one is older", put("/sys/class/infiniband/mlx5_2/fw_ver", "28.39.1002"))

# fabric: Ethernet
seed("address-present", "lost", edit("ip -j addr show", "10.8.0.11", "10.8.0.99"))
seed("interface-up", "no carrier", put("/sys/class/net/net1/carrier", 0))
seed("interface-up", "down", put("/sys/class/net/net1/operstate", "lowerlayerdown"))
seed("interface-mtu", "1500", put("/sys/class/net/net1/mtu", 1500))
seed("interface-speed", "10 Gb/s", put("/sys/class/net/net1/speed", 10000))
seed("interface-errors", "5 %", rose(put("/sys/class/net/net1/statistics/rx_errors", 50000)))
seed("link-flaps", "six times", log(*["mlx5_core 0000:38:00.0 net1: Link down"] * 6))
seed(
    "bond-members",
    "a member is down",
    edit(
        "/proc/net/bonding/bond0",
        "Slave Interface: eno2\nMII Status: up",
        "Slave Interface: eno2\nMII Status: down",
    ),
)
seed("bond-members", "no bond", drop("/proc/net/bonding/bond0"))
seed("default-route", "none", edit("/proc/net/route", "00000000\t0100090A", "0000000A\t0100090A"))
seed("default-route", "by another", edit("/proc/net/route", "0100090A", "FE00090A"))

# cpu
CPU = "/sys/devices/system/cpu"
seed(
    "cpu-sockets",
    "one",
    lambda node: [node.put(f"{CPU}/cpu{n}/topology/physical_package_id", 0) for n in range(224)],
)
seed("cpu-cores", "fewer", put(f"{CPU}/online", "0-99"))
seed("cpu-threads", "no hyperthreads", put(f"{CPU}/online", "0-111"))
seed("cpu-online", "one offline", put(f"{CPU}/online", "0-6,8-223"))
seed("cpu-governor", "powersave", put(f"{CPU}/cpu9/cpufreq/scaling_governor", "powersave"))
for words in (
    "mce: [Hardware Error]: CPU 10: Machine Check Exception: 5 Bank 8: be00000000800400",
    "EDAC skx MC3: CPU 10: Machine Check Event: 0 Bank 8: fc00010001010092",
    "[Hardware Error]: Deferred error, no action required.",
    "[Hardware Error]: Uncorrected, software restartable error.",
    "{3}[Hardware Error]: event severity: fatal",
):
    seed("cpu-machine-checks", words, log(words))
seed(
    "cpu-throttle",
    "hot",
    rose(put(f"{CPU}/cpu9/thermal_throttle/core_throttle_count", 1200)),
    finds=Status.WARN,
)
seed("cpu-lockups", "soft lockup", log("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:4711]"))
seed("cpu-lockups", "RCU stall", log("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"))
seed("cpu-lockups", "RCU self-detected", log("rcu: INFO: rcu_sched self-detected stall on CPU"))
for words in (
    "amdgpu 0000:4b:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
    "amdgpu 0000:4b:00.0: {1}4 new uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:4b:00.0: amdgpu: GPU reset(3) failed",
    "amdgpu 0000:4b:00.0: amdgpu: RAS records:512 exceed threshold:511",
):
    seed("amd-gpu-log", words, log(words), "amd")
seed("cpu-lockups", "hard", log("watchdog: Watchdog detected hard LOCKUP on cpu 3"))
seed("kernel-oops", "page fault", log("BUG: unable to handle page fault for address: ffffb2c0c0a3f000"))
seed("kernel-oops", "BUG", log("kernel BUG at mm/slub.c:448!"))
seed(
    "cpu-clocksource", "hpet", put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")
)
seed("cpu-numa", "one node", drop("/sys/devices/system/node/node1"))
seed(
    "cpu-numa",
    "four instead of eight",
    drop(*[f"/sys/devices/system/node/node{n}" for n in range(4, 8)]),
    "dgx-a100",
)
seed("cpu-microcode", "two", edit("/proc/cpuinfo", "0x2b000590", "0x2b000461", 1))
seed("cpu-load", "runaway", put("/proc/loadavg", "5000.0 5000.0 5000.0 2/3000 4711"))

# memory
seed(
    "memory-total", "a DIMM is missing", edit("/proc/meminfo", "MemTotal: 2104533975", "MemTotal: 1900000000")
)
seed("memory-dimms", "an empty slot", put("/sys/firmware/dmi/entries/17-5/raw", dimm("DIMM_5", 0)))
seed(
    "memory-speed", "a slow one", put("/sys/firmware/dmi/entries/17-5/raw", dimm("DIMM_5", 65536, 4800, 4400))
)
seed("memory-uncorrected", "one", put("/sys/devices/system/edac/mc/mc1/ue_count", 1))
seed("memory-corrected", "many", rose(put("/sys/devices/system/edac/mc/mc1/ce_count", 5000)))
seed("memory-poisoned", "a bank", edit("/proc/meminfo", "HardwareCorrupted: 0", "HardwareCorrupted: 8192"))
seed("memory-log", "uncorrected", log("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0"))
seed("memory-swap", "8 GiB", edit("/proc/meminfo", "SwapTotal: 0", "SwapTotal: 8388608"))
seed(
    "memory-available",
    "nothing left",
    edit("/proc/meminfo", "MemAvailable: 1932735283", "MemAvailable: 20000000"),
)
seed(
    "memory-numa",
    "a node has less",
    put("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 900000000 kB"),
)
seed(
    "memory-log",
    "reported by the firmware",
    log(
        "{3}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
        "{3}[Hardware Error]: event severity: recoverable",
        "{3}[Hardware Error]:   section_type: memory error",
    ),
)
seed("memory-oom", "killed", log("Out of memory: Killed process 4711 (python) total-vm:1000kB"))

# disk
seed("nvme-count", "one is gone", drop("/sys/class/nvme/nvme1"))
seed("nvme-size", "a small one", put("/sys/block/nvme1n1/size", 1875385008))
seed("nvme-state", "dead", put("/sys/class/nvme/nvme1/state", "dead"))
seed("nvme-warning", "read-only", smart(1, critical_warning=8))
seed("nvme-wear", "worn out", smart(1, percent_used=101))
seed("nvme-spare", "below its threshold", smart(1, avail_spare=5))
seed("nvme-media-errors", "three", rose(smart(1, media_errors=3)))
seed("nvme-warning", "unreliable", smart(1, critical_warning=4))
seed("nvme-warning", "few spare blocks, and hot", smart(1, critical_warning=3))
seed("nvme-temperature", "82 C", smart(1, temperature=355))
seed("nvme-pcie-link", "x2", put(NVME1 + "/current_link_width", 2))
seed("nvme-firmware", "another", put("/sys/class/nvme/nvme1/firmware_rev", "OPPA0A5Q"))
seed("disk-errors", "read error", log("I/O error, dev nvme1n1, sector 2048 op 0x0:(READ) flags 0x0"))
seed(
    "disk-errors",
    "timeout",
    log("nvme nvme1: I/O 12 QID 3 timeout, reset controller"),
)
seed("array-health", "degraded", put("/sys/block/md0/md/degraded", 1))
seed("array-health", "not there", drop("/sys/block/md1"))
seed("array-health", "stopped", put("/sys/block/md0/md/array_state", "inactive"))

# filesystem
HOME = "stat -f -c %b %f %a %c %d /home"
ROOT = "stat -f -c %b %f %a %c %d /"
seed("fs-mounted", "home is not", edit("/proc/self/mounts", "nfs1:/home /home nfs4 rw,relatime 0 0\n", ""))
seed("fs-source", "another server", edit("/proc/self/mounts", "nfs1:/home", "nfs2:/home"))
seed("fs-source", "another type", edit("/proc/self/mounts", "/home nfs4", "/home nfs"))
seed("fs-answers", "the server hangs", command(HOME, HANGS))
seed(
    "fs-answers",
    "stale",
    command(HOME, (1, "", "stat: cannot read file system information for '/home': Stale file handle")),
)
seed("fs-writable", "home", edit("/proc/self/mounts", "/home nfs4 rw", "/home nfs4 ro"))
seed("fs-writable", "root", edit("/proc/self/mounts", "/ ext4 rw", "/ ext4 ro"))
seed("fs-space", "full", command(ROOT, "1000000 10000 10000 250000 240000\n"))
seed("fs-inodes", "used up", command(ROOT, "1000000 700000 650000 250000 100\n"))
seed("fs-errors", "ext4", log("EXT4-fs error (device md0): ext4_find_entry:1663: inode #2: comm ls: reading"))
seed("fs-errors", "XFS", log("XFS (md0): Corruption detected. Unmount and run xfs_repair"))
seed("fs-stalled", "nfs", log("nfs: server nfs1 not responding, still trying"))
seed(
    "fs-stalled",
    "back once, then silent again",
    log("nfs: server nfs1 OK", "nfs: server nfs1 not responding, timed out"),
)

# os: driver
seed("driver-loaded", "not loaded", drop("/proc/driver/nvidia/version"))
seed("driver-loaded", "without its module", edit("/proc/modules", "nvidia 1 2 - Live 0x0\n", ""))
seed(
    "driver-matches",
    "libraries were updated",
    edit(SMI, "<driver_version>580.173.02", "<driver_version>580.180.01"),
)
seed("driver-locked", "another", edit("/proc/driver/nvidia/version", "580.173.02", "580.159.03"))
seed("driver-open", "proprietary", edit("/proc/driver/nvidia/version", "Open Kernel Module", "Kernel Module"))
seed(
    "driver-open",
    "proprietary on Blackwell",
    edit("/proc/driver/nvidia/version", "Open Kernel Module", "Kernel Module"),
    "dgx-b200",
)
seed("driver-security", "old", edit("/proc/driver/nvidia/version", "580.173.02", "580.65.06"))
seed(
    "driver-nouveau",
    "loaded",
    lambda node: node.put("/proc/modules", "nouveau 1 0 - Live 0x0\n" + str(node.files["/proc/modules"])),
)
seed("driver-dkms", "built for the old kernel alone", lambda node: (
    node.drop("/var/lib/dkms/nvidia/580.173.02/6.12.48-amd64"),
    node.put("/var/lib/dkms/nvidia/580.173.02/6.12.38-amd64/x86_64/module/nvidia.ko.xz", ""),
))  # fmt: skip
seed(
    "driver-held",
    "released",
    edit("/var/lib/dpkg/status", "nvidia-open\nStatus: hold", "nvidia-open\nStatus: install"),
)
seed(
    "fabricmanager-version",
    "older",
    edit(
        "/var/lib/dpkg/status",
        "nvidia-fabricmanager\nStatus: hold ok installed\nVersion: 580.173.02-1",
        "nvidia-fabricmanager\nStatus: hold ok installed\nVersion: 580.159.03-1",
    ),
)
seed(
    "fabricmanager-version",
    "not installed",
    edit("/var/lib/dpkg/status", "Package: nvidia-fabricmanager", "Package: other"),
)


def proprietary(node: FakeNode) -> None:
    node.edit("/proc/driver/nvidia/version", "Open Kernel Module", "Kernel Module")


seed("gpu-direct-rdma", "no DMA-BUF and no peermem", proprietary, "no open modules declared")
seed("gpu-direct-rdma", "no RDMA core", edit("/proc/modules", "ib_core 1 0 - Live 0x0\n", ""))

# os: kernel, firmware, state
seed(
    "kernel-newest",
    "a newer one waits",
    lambda node: (node.put("/lib/modules/6.12.57-amd64/x", ""), node.put("/boot/vmlinuz-6.12.57-amd64", "")),
)
seed("kernel-version", "another", lambda node: setattr(node, "kernel", "6.12.38-amd64"))
seed("kernel-arguments", "missing", edit("/proc/cmdline", "numa_balancing=disable", ""))
seed("iommu-passthrough", "translated", put("/sys/kernel/iommu_groups/1/type", "DMA-FQ"))
seed("acs-off", "on", put("/sys/bus/pci/devices/0000:01:01.0/config", bridge_config(0x1D)))
seed("firmware-bios", "older", put("/sys/class/dmi/id/bios_version", "1.5.0"))
seed("os-release", "another release", edit("/etc/os-release", 'VERSION_ID="13"', 'VERSION_ID="12"'))
seed("os-release", "another system", edit("/etc/os-release", "ID=debian", "ID=ubuntu", 1))
seed(
    "os-hostname",
    "another name",
    lambda node: setattr(node, "node_name", lambda: "localhost") or setattr(node, "name", "gpu001"),
)
seed("os-own-name", "loopback", lambda node: setattr(node, "own_addresses", ["127.0.1.1"]))
seed("os-own-name", "another node's", lambda node: setattr(node, "own_addresses", ["10.9.0.12"]))
seed("clock-synchronised", "not", edit("chronyc -c tracking", ",Normal", ",Not synchronised"))
seed("clock-synchronised", "stratum 0", edit("chronyc -c tracking", "10.0.0.1,3,", ",0,"))
seed("clock-offset", "two minutes", edit("chronyc -c tracking", "0.000012", "-120.5"))
seed(
    "processes-stuck",
    "21 wait",
    lambda node: [node.put(f"/proc/{9000 + n}/stat", f"{9000 + n} (python) D 0") for n in range(21)],
)
seed(
    "processes-zombies",
    "101",
    lambda node: [node.put(f"/proc/{9000 + n}/stat", f"{9000 + n} (python) Z 0") for n in range(101)],
)
seed(
    "packages-whole",
    "half installed",
    edit(
        "/var/lib/dpkg/status",
        "bash\nStatus: install ok installed",
        "bash\nStatus: install ok half-configured",
    ),
)

# DCGM
DCGM = "dcgmi health --host 127.0.0.1:5555 -c -j"
for system, text in (
    ("PCIe_system", "Detected 12 PCIe replays per minute"), ("Memory_system", "Detected 1 double-bit volatile ECC error"),
    ("InfoROM_system", "InfoROM is corrupt"), ("Thermal_system", "GPU 3 has been throttled"), ("Driver", "Lost"),
):  # fmt: skip
    seed("dcgm-health", system, command(DCGM, json.dumps(dcgm_health("Failure", **{system: text}))))
ECC = {"warning": "An uncorrectable double-bit ECC error was found", "error_id": 3, "error_severity": 6}
seed("dcgm-diag", "memory", put(places.DIAG, json.dumps(dcgm_diag(8, status="Fail", warnings=[ECC]))))

# bit error rates
for rate in ("2E-9", "1E-5"):
    seed("rdma-ber", rate, command("mlxlink -d mlx5_2 -c -m --json", json.dumps(mlxlink(effective=rate))))

# BlueField-3
CARD = "0000:98:00.0"
seed(
    "bluefield-mode",
    "a card in DPU mode",
    command(mlxconfig_of(CARD), mlxconfig(CARD, nic=False)),
    "dgx-b200",
)
seed("bluefield-mode", "a port is gone", drop(f"/sys/bus/pci/devices/{CARD[:-1]}1"), "dgx-b200")
seed(
    "bluefield-mode",
    "it changes with the next power cycle",
    command(mlxconfig_of(CARD), mlxconfig(CARD, nic=True, after=False)),
    "dgx-b200",
    Status.WARN,
)

# AMD GPUs


def amd_smi(command: str, gpu: int, **values: object) -> Mutate:
    """Change values of one GPU in what amd-smi prints; `pcie__width=8` is the width in the group pcie."""

    def mutate(node: FakeNode) -> None:
        key = f"amd-smi {command} --json"
        told = json.loads(str(node.commands[key]))
        entry = (told["gpu_data"] if isinstance(told, dict) else told)[gpu]
        for path, value in values.items():
            *groups, name = path.split("__")
            holder = entry
            for group in groups:
                holder = holder[group]
            assert name in holder, f"{path} is not printed"
            holder[name] = value
        node.commands[key] = json.dumps(told)

    return mutate


def drop_amd_gpu(command: str, gpu: int) -> Mutate:
    def mutate(node: FakeNode) -> None:
        key = f"amd-smi {command} --json"
        told = json.loads(str(node.commands[key]))
        del (told["gpu_data"] if isinstance(told, dict) else told)[gpu]
        node.commands[key] = json.dumps(told)

    return mutate


def unlink(gpu: int, peer: int, **values: object) -> Mutate:
    """Change the link of one AMD GPU to another."""

    def mutate(node: FakeNode) -> None:
        key = "amd-smi topology --json"
        told = json.loads(str(node.commands[key]))
        told[gpu]["links"][peer].update(values)
        node.commands[key] = json.dumps(told)

    return mutate


def both(*mutations: Mutate) -> Mutate:
    return lambda node: [mutate(node) for mutate in mutations]


PAGE = {"page_address": "0x1a3f000", "page_size": "0x1000", "status": "PENDING"}
DEGREES = {"unit": "C"}
AMD3 = "/sys/bus/pci/devices/0000:3a:00.0"

for gpu in (0, 7):
    seed("amd-gpu-count", f"GPU {gpu} is gone from amd-smi", drop_amd_gpu("static", gpu), "amd")
seed("amd-gpu-model", "an MI325X in one slot", amd_smi("static", 2, asic__device_id="0x74a5"), "amd")
seed("amd-gpu-memory", "half of it", amd_smi("static", 1, vram__size={"value": 98304, "unit": "MB"}), "amd")
seed(
    "amd-ecc-uncorrected",
    "one since the last pass",
    both(
        amd_smi("metric", 4, ecc__total_uncorrectable_count=1),
        add(places.COUNTERS, json.dumps([{"at": NOW - 1800, "changed": {"amd/4/uncorrectable": 0}}])),
    ),
    "amd",
)
seed("amd-bad-pages", "one is pending", amd_smi("bad-pages", 5, pending=PAGE), "amd")
seed("amd-bad-pages", "two are pending", amd_smi("bad-pages", 5, pending=[PAGE, PAGE]), "amd")
seed("amd-bad-pages", "one cannot be retired", amd_smi("bad-pages", 5, un_res=PAGE), "amd")
seed("amd-bad-pages", "as many as the threshold", amd_smi("bad-pages", 5, retired=[PAGE] * 256), "amd")
seed("amd-temperature", "hotspot", amd_smi("metric", 6, temperature__hotspot={"value": 99, **DEGREES}), "amd")
seed("amd-temperature", "memory", amd_smi("metric", 6, temperature__mem={"value": 104, **DEGREES}), "amd")
seed("amd-pcie-link", "8 lanes", amd_smi("metric", 3, pcie__width=8), "amd")
seed("amd-pcie-link", "16 GT/s", amd_smi("metric", 3, pcie__speed={"value": 16, "unit": "GT/s"}), "amd")
seed("amd-xgmi", "over PCIe", unlink(2, 6, link_type="PCIE"), "amd")
seed("amd-xgmi", "not accessible", unlink(2, 6, link_status="DISABLED"), "amd")
seed("amd-xgmi", "a GPU is missing", drop_amd_gpu("topology", 7), "amd")
seed("amd-driver", "not loaded", edit("/proc/modules", "amdgpu ", "radeon "), "amd")
seed("gpu-on-bus", "an AMD GPU is off the bus", drop(AMD3), "amd")
seed(
    "gpu-bound",
    "vfio holds an AMD GPU",
    lambda node: node.links.update({AMD3 + "/driver": "/sys/bus/pci/drivers/vfio-pci"}),
    "amd",
)
seed("gpu-pcie-lanes", "8 lanes of an AMD GPU", put(AMD3 + "/current_link_width", 8), "amd")

# services
for name in ("chrony.service", "munge.service"):
    seed("services-active", f"{name} failed", unit(name, "ActiveState=active", "ActiveState=failed"))
seed(
    "services-enabled", "disabled", unit("chrony.service", "UnitFileState=enabled", "UnitFileState=disabled")
)
seed("services-steady", "restarts", rose(unit("chrony.service", "NRestarts=0", "NRestarts=40")))
seed(
    "services-failed",
    "one",
    command(
        "systemctl list-units --state=failed --plain --no-legend --no-pager",
        "nvsm.service loaded failed failed NVSM\n",
    ),
)
for check, name, base in (
    ("persistenced-active", "nvidia-persistenced.service", "full"), ("fabricmanager-active", "nvidia-fabricmanager.service", "full"),
    ("imex-active", "nvidia-imex.service", "dgx-gb200"), ("slurmd-active", "slurmd.service", "full"),
):  # fmt: skip
    seed(check, "dead", unit(name, "ActiveState=active", "ActiveState=inactive"), base)
    seed(check, "not installed", unit(name, "LoadState=loaded", "LoadState=not-found"), base)
seed("slurmd-memlock", "8 MiB", unit("slurmd.service", "LimitMEMLOCK=infinity", "LimitMEMLOCK=8388608"))
seed("opensm-absent", "runs", unit("opensm.service", "ActiveState=inactive", "ActiveState=active"))

# the BMC


def sensor(old: str, new: str) -> Mutate:
    return edit("ipmitool sdr elist", old, new, 1)


def event(hours: float, words: str) -> Mutate:
    return lambda node: ipmi.add_event(node, hours, words)


seed("bmc-answers", "it hangs", command("ipmitool mc info", HANGS))
seed("bmc-answers", "it refuses", command("ipmitool mc info", (1, "", "Get Device ID command failed")))
seed(
    "bmc-answers",
    "it is being updated",
    edit("ipmitool mc info", "Available          : yes", "Available          : no"),
)
for state in ("Failure detected", "Power Supply AC lost", "AC lost or out-of-range"):
    seed("bmc-supplies", state, sensor("10.1 | Presence detected", f"10.1 | Presence detected, {state}"))
seed(
    "bmc-supplies", "predicted", sensor("10.1 | Presence detected", "10.1 | Presence detected, Predictive failure"),
    finds=Status.WARN,
)  # fmt: skip
for state in ("Redundancy Lost", "Non-Redundant: Insufficient Resources"):
    seed("bmc-redundancy", state, sensor("Fully Redundant", state))
for state in ("Redundancy Degraded", "Non-Redundant: Sufficient from Redundant"):
    seed("bmc-redundancy", state, sensor("Fully Redundant", state), finds=Status.WARN)
for state in ("cr ", "nr ", "lcr", "lnr"):
    seed(
        "bmc-fans",
        f"stands, {state}",
        sensor("21h | ok  | 29.1 | 8640 RPM", f"21h | {state} | 29.1 | 0 RPM"),
    )
seed(
    "bmc-fans",
    "redundancy",
    sensor("35h | ok  |  7.1 | Fully Redundant", "35h | ok  |  7.1 | Redundancy Lost"),
)
seed("bmc-fans", "slow", sensor("21h | ok", "21h | nc"), finds=Status.WARN)
seed("bmc-temperatures", "an inlet", sensor("02h | ok  |  7.1 | 23", "02h | cr  |  7.1 | 47"))
seed(
    "bmc-temperatures",
    "a cold part that is too hot",
    sensor("02h | ok  |  7.1 | 23", "02h | ucr |  7.1 | 12"),
)
seed(
    "bmc-temperatures", "below its low threshold", sensor("02h | ok  |  7.1 | 23", "02h | lcr |  7.1 | 16"), finds=Status.WARN,
)  # fmt: skip
seed("bmc-temperatures", "no margin left", sensor("03h | ok  |  3.1 | -41", "03h | cr  |  3.1 | -1"))
seed(
    "bmc-temperatures",
    "a cold one",
    sensor("02h | ok  |  7.1 | 23", "02h | cr  |  7.1 | 2"),
    finds=Status.WARN,
)
for words in (
    "Power Overload       ",
    "Main Power Fault     ",
    "Drive Fault          ",
    "Cooling/Fan Fault    ",
):
    seed("bmc-chassis", words.strip(), edit("ipmitool chassis status", f"{words}: false", f"{words}: true"))
seed("bmc-log-room", "97 %", edit("ipmitool sel info", ": 1%", ": 97%"))
seed(
    "bmc-log-room",
    "overflow",
    edit("ipmitool sel info", "Overflow         : false", "Overflow         : true"),
)
seed("bmc-log-room", "85 %", edit("ipmitool sel info", ": 1%", ": 85%"), finds=Status.WARN)
seed("bmc-power", "0 W", edit("ipmitool dcmi power reading", "2064 Watts", "   0 Watts"))
seed("bmc-power", "off", edit("ipmitool dcmi power reading", " activated", " deactivated"), finds=Status.WARN)
for check, words in (
    ("bmc-log-memory", "Memory #0x02 | Uncorrectable ECC (UnCorrectable ECC |  DIMMD7) | Asserted"),
    ("bmc-log-memory", "Memory #0xeb | Transition to Non-recoverable | Asserted"),
    ("bmc-log-processor", "Processor #0xc9 | IERR | Asserted"),
    ("bmc-log-processor", "Processor CPU1_IERR | State Asserted"),
    ("bmc-log-processor", "Processor #0x40 | Uncorrectable machine check exception | Asserted"),
    ("bmc-log-pcie", "Critical Interrupt #0x90 | Bus Fatal Error | Asserted"),
    ("bmc-log-pcie", "Critical Interrupt #0x17 | PCI SERR | Asserted"),
    ("bmc-log-power", "Power Unit #0x01 | Failure detected | Asserted"),
    ("bmc-log-drive", "Drive Slot / Bay #0x44 | Drive Fault | Asserted"),
):
    seed(check, words, event(2, words))
seed("bmc-log-memory", "before the last day, since the last boot", both(
    event(30, "Memory #0x02 | Uncorrectable ECC | Asserted"), put("/proc/uptime", "144000.0 1.0\n"),
))  # fmt: skip

TAKEN_AT = NOW
