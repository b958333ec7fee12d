"""Healthy nodes made from their declaration: every file and tool output the probe reads. Synthetic."""

from __future__ import annotations

import json
import struct

from rackwright.health.expected import Expected
from rackwright.health.guard import places
from rackwright.health.probe.bluefield import BLUEFIELD_3 as BLUEFIELD
from rackwright.health.probe.kernel_log import FIELDS
from rackwright.health.request import request_of
from rackwright.lab import gpus as simulated
from rackwright.lab import smi_xml
from rackwright.model.sku import BLUEFIELD_3, Gpus, NvSwitch, Sku
from tests.unit.health import amd_smi, ipmi
from tests.unit.health.fake_node import NOW, FakeNode

JOURNAL = f"journalctl -k -b -q --no-pager -o json --output-fields={FIELDS} --since=@{NOW - 86400:.0f}"
SWITCHES = {"ampere": 6, "hopper": 4}
BRIDGES = ("0000:00:01.0", "0000:01:01.0")
SPEEDS = {3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}


def healthy(sku: Sku, expected: Expected) -> FakeNode:
    """A node that is what it is declared to be."""
    node = FakeNode(expected.node or "gpu001")
    for build in (
        _system,
        _cpu,
        _memory,
        _pci_root,
        _gpus,
        _fabric,
        _bluefields,
        _ethernet,
        _drives,
        _mounts,
        _packages,
        _services,
        ipmi.put_bmc,
    ):
        build(node, sku, expected)
    return node


def _system(node: FakeNode, sku: Sku, expected: Expected) -> None:
    name, _, version = (expected.os or "debian-13").partition("-")
    node.put("/etc/os-release", f'PRETTY_NAME="A system"\nID={name}\nVERSION_ID="{version}"\n')
    node.put(
        "/proc/cmdline",
        "BOOT_IMAGE=/boot/vmlinuz root=/dev/md0 ro iommu=pt " + " ".join(expected.kernel_arguments),
    )
    node.put("/proc/uptime", "86400.55 9000000.10\n")
    node.kernel = expected.kernel or node.kernel
    for release in ("6.12.38-amd64", node.kernel):
        node.put(f"/lib/modules/{release}/modules.dep", "")
        node.put(f"/boot/vmlinuz-{release}", "")
    for pid, state in ((1, "S"), (2, "S"), (4711, "R")):
        node.put(f"/proc/{pid}/stat", f"{pid} (a name) {state} 0 0 0")
    node.own_addresses = [one.address for one in expected.addresses[:1]] or ["10.0.0.1"]
    node.commands["chronyc -c tracking"] = (
        "0A000001,10.0.0.1,3,1795000000.1,0.000012,-0.000003,0.000020,1.2,0.001,0.05,0.0002,0.0001,64.2,Normal\n"
    )
    node.commands[JOURNAL] = "".join(
        json.dumps({"__REALTIME_TIMESTAMP": str(int((NOW - 80000 + at) * 1e6)), "MESSAGE": message}) + "\n"
        for at, message in enumerate(
            ("Linux version 6.12.48-amd64", "nvidia-nvswitch: Probing device", "md0: detected")
        )
    )
    node.put("/sys/class/dmi/id/sys_vendor", "NVIDIA")
    node.put("/sys/class/dmi/id/product_name", sku.name)
    node.put("/sys/class/dmi/id/bios_version", expected.bios or "1.6.1")


def _cpu(node: FakeNode, sku: Sku, expected: Expected) -> None:
    node.machine = sku.cpu_architecture
    line = "processor : {}\nmodel name\t: A processor\nmicrocode\t: 0x2b000590\n\n"
    if sku.cpu_architecture == "aarch64":
        line = "processor : {}\nCPU implementer\t: 0x41\n\n"
    node.put("/proc/cpuinfo", "".join(line.format(number) for number in range(expected.threads)))
    top = "/sys/devices/system/cpu"
    node.put(top + "/online", f"0-{expected.threads - 1}")
    node.put(top + "/present", f"0-{expected.threads - 1}")
    for number in range(expected.threads):
        core = number % expected.cores
        at = f"{top}/cpu{number}"
        node.put(at + "/topology/physical_package_id", core // sku.cores_per_socket)
        node.put(at + "/topology/core_id", core % sku.cores_per_socket)
        node.put(at + "/cpufreq/scaling_governor", "performance")
        node.put(at + "/thermal_throttle/core_throttle_count", 0)
    source = "tsc" if sku.cpu_architecture == "x86_64" else "arch_sys_counter"
    node.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", source)
    node.put("/proc/loadavg", "1.20 1.05 0.90 2/3000 4711")
    nodes = expected.numa_nodes or expected.sockets
    each = expected.threads // nodes
    for number in range(nodes):
        at = f"/sys/devices/system/node/node{number}"
        node.put(at + "/cpulist", f"{number * each}-{(number + 1) * each - 1}")
        node.put(at + "/meminfo", f"Node {number} MemTotal:  {expected.memory_mib * 1024 // nodes} kB")


def _memory(node: FakeNode, sku: Sku, expected: Expected) -> None:
    total = expected.memory_mib * 1024
    node.put(
        "/proc/meminfo",
        f"MemTotal: {int(total * 0.98)} kB\nMemAvailable: {int(total * 0.9)} kB\nSwapTotal: 0 kB\nHardwareCorrupted: 0 kB\n",
    )
    node.put("/proc/vmstat", "nr_free_pages 1000\noom_kill 0\n")
    for number in range(2):
        node.put(f"/sys/devices/system/edac/mc/mc{number}/ce_count", 0)
        node.put(f"/sys/devices/system/edac/mc/mc{number}/ue_count", 0)
    slots = 16 * expected.sockets
    for number in range(slots):
        node.put(
            f"/sys/firmware/dmi/entries/17-{number}/raw", dimm(f"DIMM_{number}", expected.memory_mib // slots)
        )


def dimm(locator: str, size_mib: int, speed: int = 4800, configured: int = 4800) -> bytes:
    """An SMBIOS type 17 structure."""
    raw = bytearray(0x28)
    raw[0], raw[1], raw[0x10] = 17, 0x28, 1
    small = size_mib < 0x7FFF
    struct.pack_into("<H", raw, 0x0C, size_mib if small else 0x7FFF)
    struct.pack_into("<I", raw, 0x1C, 0 if small else size_mib)
    struct.pack_into("<H", raw, 0x15, speed)
    struct.pack_into("<H", raw, 0x20, configured)
    return bytes(raw) + locator.encode() + b"\0\0"


def pci_device(
    node: FakeNode, address: str, kind: str, ids: str, driver: str, numa: int, width: int, speed: str
) -> None:
    """One function on the bus."""
    at = f"/sys/bus/pci/devices/{address}"
    vendor, _, device = ids.partition(":")
    for name, value in (
        ("class", f"0x{kind}00"), ("vendor", "0x" + vendor), ("device", "0x" + device), ("numa_node", numa),
        ("current_link_speed", speed), ("max_link_speed", speed), ("current_link_width", width), ("max_link_width", width),
        ("aer_dev_correctable", "RxErr 0\nTOTAL_ERR_COR 0"), ("aer_dev_nonfatal", "DLP 0\nTOTAL_ERR_NONFATAL 0"),
        ("aer_dev_fatal", "DLP 0\nTOTAL_ERR_FATAL 0"),
    ):  # fmt: skip
        node.put(f"{at}/{name}", value)
    node.links[at + "/driver"] = f"/sys/bus/pci/drivers/{driver}"
    node.links[at] = f"/sys/devices/pci0000:{numa:02x}/{BRIDGES[numa % 2]}/{address}"


def bridge_config(acs: int) -> bytes:
    """Configuration space of a bridge: one other capability, then ACS with this control register."""
    raw = bytearray(4096)
    struct.pack_into("<I", raw, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)
    struct.pack_into("<II", raw, 0x148, 0x000D | 1 << 16, acs << 16 | 0x5F)
    return bytes(raw)


def bridge(node: FakeNode, address: str, acs: int) -> None:
    """A bridge, with this ACS control register."""
    at = f"/sys/bus/pci/devices/{address}"
    for name, value in (("class", "0x060400"), ("vendor", "0x8086"), ("config", bridge_config(acs)),
                        ("max_link_speed", SPEEDS[5]), ("max_link_width", 16)):  # fmt: skip
        node.put(f"{at}/{name}", value)


def _pci_root(node: FakeNode, sku: Sku, expected: Expected) -> None:
    for address in BRIDGES:
        bridge(node, address, 0)
    for number in range(3):
        node.put(f"/sys/kernel/iommu_groups/{number}/type", "identity")
    pci_device(node, "0000:04:00.0", "0200", "8086:1563", "ixgbe", 0, 8, SPEEDS[3])


def _gpus(node: FakeNode, sku: Sku, expected: Expected) -> None:
    node.put("/proc/modules", "ext4 1 0 - Live 0x0\nib_core 1 0 - Live 0x0\n")
    gpus = sku.gpus
    if gpus is None:
        return
    if expected.the_gpus().vendor == "amd":
        _amd_gpus(node, gpus, expected)
        return
    mig = expected.the_gpus().mig
    for arguments, text in simulated.documents(gpus, mig, _rails(sku)).items():
        node.commands[f"nvidia-smi {arguments}"] = text
    for index in range(gpus.count):
        address = smi_xml.bus(index)[4:].lower()
        pci_device(node, address, "0302", gpus.pci_ids[0], "nvidia", index % expected.sockets, 16, SPEEDS[4])
        node.put(f"/proc/driver/nvidia/gpus/{address}/information", f"Model: NVIDIA {gpus.model}")
    if gpus.nvswitch is NvSwitch.NODE:
        for number in range(SWITCHES.get(str(gpus.architecture), 0)):
            node.put(f"/proc/driver/nvidia-nvswitch/devices/0000:c{number}:00.0", "")
    flavour = "Module" if gpus.architecture == "volta" else "Open Kernel Module"
    node.put(
        "/proc/driver/nvidia/version",
        f"NVRM version: NVIDIA UNIX {flavour} for x86_64  {smi_xml.DRIVER}  Release Build\nGCC version: 14.2\n",
    )
    node.put("/proc/driver/nvidia/params", "EnableGpuFirmware: 1\nRmProfilingAdminOnly: 1\n")
    if expected.dcgm is not None:
        node.commands[f"dcgmi health --host {expected.dcgm} -c -j"] = json.dumps(dcgm_health())
        node.put(places.DIAG, json.dumps(dcgm_diag(gpus.count)))
    peermem = "nvidia_peermem 1 0 - Live 0x0\n" if gpus.architecture == "volta" else ""
    node.put(
        "/proc/modules",
        f"nvidia 1 2 - Live 0x0\nnvidia_uvm 1 0 - Live 0x0\n{peermem}" + str(node.files["/proc/modules"]),
    )
    node.put(f"/var/lib/dkms/nvidia/{smi_xml.DRIVER}/{node.kernel}/x86_64/module/nvidia.ko.xz", "")


def dcgm_health(overall: str = "Healthy", **systems: str) -> dict[str, object]:
    """`dcgmi health -c -j`, with incidents of GPU 3 by system (dcgmi/Health.cpp and DcgmiOutput.cpp of NVIDIA/DCGM)."""
    body: dict[str, object] = {"Overall Health": {"value": overall}}
    if systems:
        errors = {
            system.replace("_", " "): {"value": overall, "overflow": [text]}
            for system, text in systems.items()
        }
        gpu = {"value": overall, "children": {"Errors": {"children": errors}}}
        body["GPU"] = {"children": {"3": gpu}}
    return {"header": ["Health Monitor Report"], "body": body}


def dcgm_diag(count: int, **failed: object) -> dict[str, object]:
    """`dcgmi diag -r 2 -j` of DCGM 4; `failed` changes the result of the last GPU in the last test."""
    passed: dict[str, object] = {"entity_group_id": 1, "entity_group": "GPU", "status": "Pass"}
    results = [{**passed, "entity_id": index} for index in range(count)]
    results[-1].update(failed)
    software = {
        "name": "software",
        "results": [{**passed, "entity_id": 0}],
        "test_summary": {"status": "Pass"},
    }
    categories = [
        {"category": "Deployment", "tests": [software]},
        {"category": "Hardware", "tests": [{"name": "memory", "results": results}]},
    ]
    return {"DCGM Diagnostic": {"test_categories": categories}}


def _amd_gpus(node: FakeNode, gpus: Gpus, expected: Expected) -> None:
    for command, text in amd_smi.documents(gpus).items():
        node.commands[f"amd-smi {command} --json"] = text
    for index in range(gpus.count):
        pci_device(
            node, amd_smi.address(index), "1200", gpus.pci_ids[0], "amdgpu", index % expected.sockets, 16, SPEEDS[5]
        )  # fmt: skip
    node.put("/proc/modules", "amdgpu 1 2 - Live 0x0\n" + str(node.files["/proc/modules"]))
    node.put(f"/var/lib/dkms/amdgpu/6.12.12/{node.kernel}/x86_64/module/amdgpu.ko.xz", "")


def _rails(sku: Sku) -> int:
    return sum(nic.purpose == "fabric" for nic in sku.nics)


def _fabric(node: FakeNode, sku: Sku, expected: Expected) -> None:
    ports = [nic for nic in sku.nics if nic.kind in ("infiniband", "roce")]
    for number, nic in enumerate(ports):
        at, address = f"/sys/class/infiniband/mlx5_{number}", f"0000:{0x18 + 0x10 * number:02x}:00.0"
        device = f"15b3:{BLUEFIELD if nic.model == BLUEFIELD_3 else '1021'}"
        pci_device(node, address, "0207", device, "mlx5_core", number % 2, 16, SPEEDS[5])
        node.links[at + "/device"] = f"/sys/devices/pci0000:00/{address}"
        node.put(at + "/board_id", "MT_0000000838")
        node.put("/usr/bin/mlxlink", "a program")
        node.commands[f"mlxlink -d mlx5_{number} -c -m --json"] = json.dumps(mlxlink())
        node.put(at + "/fw_ver", expected.nic_firmware.get("MT_0000000838", "28.43.2566"))
        node.put(at + "/node_guid", f"a088:c203:00ab:{number + 1:04x}")
        port, native = at + "/ports/1", nic.kind == "infiniband"
        for name, value in (
            ("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("rate", f"{nic.speed_gbps} Gb/sec (4X NDR)"),
            ("link_layer", "InfiniBand" if native else "Ethernet"), ("lid", f"0x{number + 1:x}" if native else "0x0"),
            ("sm_lid", "0x1" if native else "0x0"), ("pkeys/0", "0xffff"), ("pkeys/1", "0x0000"),
            ("gids/0", "fe80:0000:0000:0000:a288:c2ff:feab:0001"), ("gid_attrs/types/0", "IB/RoCE v1"),
            ("gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001"), ("gid_attrs/types/3", "RoCE v2"),
        ):  # fmt: skip
            node.put(f"{port}/{name}", value)
        for name in (*("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards"),
                     "local_link_integrity_errors"):  # fmt: skip
            node.put(f"{port}/counters/{name}", 0)


def _bluefields(node: FakeNode, sku: Sku, expected: Expected) -> None:
    """The second port of each card, which is Ethernet, and what mlxconfig prints of the card."""
    cards = [
        path.rpartition("/")[0]
        for path, text in sorted(node.files.items())
        if path.startswith("/sys/bus/pci/devices/") and text == f"0x{BLUEFIELD}"
    ]
    ethernet = [nic for nic in sku.nics if nic.model == BLUEFIELD_3 and nic.kind == "ethernet"]
    for at, nic in zip(cards, ethernet, strict=True):
        first = at.rpartition("/")[2]
        pci_device(node, first[:-1] + "1", "0200", f"15b3:{BLUEFIELD}", "mlx5_core", 0, 16, SPEEDS[5])
        node.put("/usr/bin/mlxconfig", "a program")
        node.commands[mlxconfig_of(first)] = mlxconfig(first, nic.mode == "nic")


def mlxconfig_of(address: str, tool: str = "mlxconfig") -> str:
    return f"{tool} -e -d {address} q INTERNAL_CPU_MODEL INTERNAL_CPU_OFFLOAD_ENGINE"


def mlxconfig(address: str, nic: bool, after: bool | None = None) -> str:
    """As mstflint prints a BlueField-3 (columns: its own parser; head and values: a public log of a B3220)."""
    now, then = ("DISABLED(1)" if one else "ENABLED(0)" for one in (nic, nic if after is None else after))
    mark = " " if nic == (nic if after is None else after) else "*"
    row = "{}       {:44}{:21}{:21}{:20}\n".format
    return (
        "\nDevice #1:\n----------\n\nDevice type:        BlueField3          \n"
        "Name:               900-9D3B6-00CN-A_Ax \nDescription:        NVIDIA BlueField-3 B3240 P-Series\n"
        f"Device:             {address}        \n\n"
        "Configurations:                                     Default              Current              Next Boot\n"
        + row(" ", "INTERNAL_CPU_MODEL", "EMBEDDED_CPU(1)", "EMBEDDED_CPU(1)", "EMBEDDED_CPU(1)")
        + row(mark, "INTERNAL_CPU_OFFLOAD_ENGINE", "ENABLED(0)", now, then)
    )


def mlxlink(effective: str = "15E-255", raw: str = "2E-9") -> dict[str, object]:
    """`mlxlink -d mlx5_0 -c -m --json`, as far as it is read (Mellanox/mstflint, mlxlink_commander.cpp)."""
    output = {
        "Operational Info": {"State": "Active", "Speed": "IB-NDR", "FEC": "Interleaved_Standard_RS_FEC_PLR - (546,514)"},
        "Physical Counters and BER Info": {
            "Time Since Last Clear [Min]": "348349.5", "Effective Physical Errors": "0",
            "Effective Physical BER": effective, "Raw Physical BER": raw, "Symbol BER": "15E-255",
            "Link Down Counter": "0",
        },
        "Module Info": {"Temperature [C]": "47 [-5..75]", "Vendor Serial Number": "MT0000X00000"},
    }  # fmt: skip
    return {"result": {"output": output}, "status": {"code": 0, "message": "success"}}


def _ethernet(node: FakeNode, sku: Sku, expected: Expected) -> None:
    told: list[dict[str, object]] = [
        {"ifname": "lo", "addr_info": [{"family": "inet", "local": "127.0.0.1"}]}
    ]
    speeds = {entry.purpose: entry.speed_gbps for entry in expected.ports_of("ethernet", "roce")}
    for number, wanted in enumerate(expected.addresses):
        name = f"net{number}"
        told.append({"ifname": name, "addr_info": [{"family": "inet", "local": wanted.address}]})
        at = f"/sys/class/net/{name}"
        for file, value in (
            ("operstate", "up"), ("carrier", 1), ("speed", 1000 * speeds.get(wanted.purpose, 10)), ("mtu", wanted.mtu),
            ("address", f"02:00:00:00:00:{number:02x}"), ("carrier_changes", 2), ("statistics/rx_packets", 1000000),
            ("statistics/tx_packets", 1000000), ("statistics/rx_errors", 0), ("statistics/tx_errors", 0),
            ("statistics/rx_dropped", 0),
        ):  # fmt: skip
            node.put(f"{at}/{file}", value)
    node.commands["ip -j addr show"] = json.dumps(told)
    lines = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    for gateway in expected.gateways:
        raw = "".join(f"{int(part):02X}" for part in reversed(gateway.split(".")))
        lines += f"net0\t00000000\t{raw}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    node.put("/proc/net/route", lines)
    for name, members in expected.bonds.items():
        text = "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\nMII Status: up\n\n"
        text += "".join(
            f"Slave Interface: {one}\nMII Status: up\nLink Failure Count: 0\n\n" for one in members
        )
        node.put(f"/proc/net/bonding/{name}", text)


SMART = {
    "critical_warning": 0, "temperature": 308, "avail_spare": 100, "spare_thresh": 10, "percent_used": 2,
    "media_errors": 0, "power_on_hours": 9000, "unsafe_shutdowns": 12,
}  # fmt: skip


def _drives(node: FakeNode, sku: Sku, expected: Expected) -> None:
    sizes = [group.size_gb for group in expected.drives for _ in range(group.count)]
    for number, size in enumerate(sizes):
        at, address = f"/sys/class/nvme/nvme{number}", f"0000:{0xE0 + number:02x}:00.0"
        pci_device(node, address, "0108", "144d:a80a", "nvme", number % 2, 4, SPEEDS[4])
        node.links[at + "/device"] = f"/sys/devices/pci0000:00/{address}"
        node.put(at + "/model", "SAMSUNG MZWLO3T8HCLS-00A07   ")
        node.put(at + "/firmware_rev", expected.nvme_firmware.get("SAMSUNG MZWLO3T8HCLS-00A07", "OPPA1B5Q"))
        node.put(at + "/state", "live")
        node.put(f"/sys/block/nvme{number}n1/size", size * 10**9 // 512)
        node.commands[f"nvme smart-log /dev/nvme{number} -o json"] = json.dumps(SMART)
    for name in expected.arrays or ("md0",):
        for file, value in (
            ("level", "raid1"),
            ("array_state", "clean"),
            ("degraded", 0),
            ("sync_action", "idle"),
        ):
            node.put(f"/sys/block/{name}/md/{file}", value)


def _mounts(node: FakeNode, sku: Sku, expected: Expected) -> None:
    lines = "proc /proc proc rw,nosuid 0 0\ntmpfs /run tmpfs rw,nosuid 0 0\n"
    for wanted in expected.mounts:
        source, kind = wanted.source or "/dev/md0", wanted.type or "ext4"
        lines += f"{source} {wanted.target} {kind} {'rw' if wanted.writable else 'ro'},relatime 0 0\n"
        node.commands[f"stat -f -c %b %f %a %c %d {wanted.target}"] = "1000000 700000 650000 250000 240000\n"
    node.put("/proc/self/mounts", lines)


def _packages(node: FakeNode, sku: Sku, expected: Expected) -> None:
    entries = [
        ("bash", "5.2.37-2", "install ok installed"),
        ("linux-image-amd64", "6.12.48-1", "install ok installed"),
    ]
    if sku.gpus is not None and expected.the_gpus().vendor == "nvidia":
        names = ["nvidia-driver", "nvidia-open", "nvidia-kernel-open-dkms"]
        if sku.gpus.nvswitch is NvSwitch.NODE:
            names.append("nvidia-fabricmanager")
        entries += [(name, f"{smi_xml.DRIVER}-1", "hold ok installed") for name in names]
    node.put(
        "/var/lib/dpkg/status",
        "\n\n".join(
            f"Package: {name}\nStatus: {status}\nVersion: {version}" for name, version, status in entries
        )
        + "\n",
    )


def _services(node: FakeNode, sku: Sku, expected: Expected) -> None:
    node.request = request_of(expected)
    names = node.request["services"]
    node.commands[services_command(names)] = (
        "\n\n".join(unit_block(name, name != "opensm.service") for name in names) + "\n"
    )
    node.commands["systemctl list-units --state=failed --plain --no-legend --no-pager"] = ""


def services_command(names: list[str]) -> str:
    """What the probe asks systemd."""
    from rackwright.health.probe.system import PROPERTIES

    return f"systemctl show --no-pager -p {PROPERTIES} -- {' '.join(names)}"


def unit_block(name: str, runs: bool = True) -> str:
    """What systemctl tells of one unit."""
    active, enabled = ("active", "enabled") if runs else ("inactive", "")
    loaded = "loaded" if runs else "not-found"
    return (
        f"Id={name}\nLoadState={loaded}\nActiveState={active}\nSubState=x\nUnitFileState={enabled}\nNRestarts=0\n"
        "Result=success\nLimitMEMLOCK=infinity"
    )
