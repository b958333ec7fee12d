"""Output of tools as operators save it: recognised, read, and judged by what it holds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rackwright.catalog.read import catalogue
from rackwright.cli import run as cli
from rackwright.health.captured.judged import judge_capture
from rackwright.health.captured.kinds import KINDS, kind_of, read_capture
from rackwright.health.captured.reading import Context
from rackwright.health.declare import expected_of_sku
from rackwright.health.probe.source import Unavailable
from rackwright.status import Status
from tests.unit.health.corpus import NOT_READ, READERS
from tests.unit.health.corpus_entries import OWN, load

H100 = expected_of_sku(catalogue()["hgx-h100"])
XID = "NVRM: Xid (PCI:0000:4b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def capture_of(text, context=Context()):  # noqa: B008 - frozen
    kind = kind_of(text)
    assert kind is not None
    return read_capture(text, kind, context)


def section(text, name, context=Context()):  # noqa: B008 - frozen
    return capture_of(text, context).document["sections"][name]["data"]


def judged(text, expected=H100, context=Context()):  # noqa: B008 - frozen
    return {one.check: one for one in judge_capture(expected, capture_of(text, context))}


@pytest.mark.parametrize("entry", load(OWN), ids=lambda entry: entry.file)
def test_a_recorded_document_is_recognised(entry):
    if entry.kind in READERS and entry.file not in NOT_READ:
        kind = kind_of((OWN / entry.file).read_text(errors="replace"))
        assert kind is not None
        assert kind.name == READERS[entry.kind].name


@pytest.mark.parametrize("text", ["", "half a docu", "{}", '{"schema": "rackwright-probe"}', "a: b\nc: d\n"])
def test_other_text_is_no_capture(text):
    assert kind_of(text) is None


FORMS = [
    XID,
    f"gpu001 kernel: {XID}",
    f"[  +0.000012] {XID}",
    f"[Nov15 12:02] {XID}",
    f"2024-11-15T12:00:00,470068+00:00 {XID}",
    f"[ 5140.900123] {XID}",
    f"[ 5140.900123][ T1234] {XID}",
    f"<4>[ 5140.900123] {XID}",
    f"kern  :warn  : [ 5140.900123] {XID}",
    f"[Thu Jul 10 12:00:00 2025] {XID}",
    f"4,339,5140900123,-;{XID}",
    f"Jul 10 12:00:00 gpu001 kernel: {XID}",
    f"Jul 10 12:00:00.123456 gpu001 kernel: {XID}",
    f"Thu 2025-07-10 12:00:00 UTC gpu001 kernel: {XID}",
    f"2025-07-10T12:00:00+0000 gpu001 kernel: {XID}",
    f"2025-07-10T12:00:00.123456+02:00 gpu001 kernel: [ 5140.900123] {XID}",
    json.dumps({"__REALTIME_TIMESTAMP": "1752148800000000", "MESSAGE": XID}),
]


@pytest.mark.parametrize("line", FORMS)
def test_a_kernel_log_in_any_form_is_judged(line):
    [entry] = section(line, "kernel_log")["entries"]
    assert (entry["kind"], entry["code"], entry["message"]) == ("xid", 79, XID)
    assert any(one.status is Status.FAIL for one in judged(line).values())


@pytest.mark.parametrize("form", [one for one in FORMS if "12:00:00" in one])
def test_the_times_of_a_kernel_log_are_in_seconds(form):
    later = form.replace("12:00:00", "12:01:30")
    [entry] = section(f"{form}\n{later}\n", "kernel_log")["entries"]
    assert entry["at"] - entry["first"] == pytest.approx(90)


def test_the_devices_of_a_kernel_log_are_known_by_its_words_or_beside_it():
    line = (
        "pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: {0}\nnvidia {0}: AER: can't recover"
    )
    told = section(line.format("0000:4b:00.0"), "kernel_log")["entries"]
    assert {one["where"] for one in told if one["device"] == "0000:4b:00.0"} == {"gpu"}
    lone = "pci 0000:0b:00.0: 63.012 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x4 link at 0000:00:03.3"
    lone += " (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
    assert section(lone, "kernel_log")["entries"][0]["where"] is None
    assert section(lone, "kernel_log", Context(gpus=("0000:0b:00.0",)))["entries"][0]["where"] == "gpu"
    disk = "I/O error, dev sdb, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
    assert judged(disk)["disk-errors"].status is Status.FAIL
    assert judged(disk, context=Context(drives=("sda",)))["disk-errors"].status is Status.WARN


TEXT = """\
==============NVSMI LOG==============

Timestamp                           : Wed Feb 27 12:00:00 2019
Driver Version                      : 418.43
CUDA Version                        : 10.1

Attached GPUs                       : 1
GPU 00000000:3B:00.0
    Product Name                    : Tesla V100-SXM2-32GB
    Persistence Mode                : Enabled
    GPU UUID                        : GPU-0
    Inforom Version
        Image Version               : G503.0203.00.05
    PCI
        Device Id                   : 0x1DB510DE
        GPU Link Info
            PCIe Generation
                Max                 : 3
                Current             : 1
            Link Width
                Max                 : 16x
                Current             : 16x
        Replays Since Reset         : 2
    Clocks Throttle Reasons
        Idle                        : Active
        HW Slowdown                 : Not Active
            HW Thermal Slowdown     : Not Active
        SW Thermal Slowdown         : Not Active
    FB Memory Usage
        Total                       : 32480 MiB
        Used                        : 11 MiB
    Ecc Mode
        Current                     : Enabled
        Pending                     : Enabled
    ECC Errors
        Volatile
            Single Bit
                Device Memory       : 1
                Total               : 1
            Double Bit
                Device Memory       : 0
                Total               : 0
    Retired Pages
        Single Bit ECC              : 0
        Double Bit ECC              : 2
        Pending                     : Yes
    Temperature
        GPU Current Temp            : 34 C
        GPU Slowdown Temp           : 87 C
    Power Readings
        Power Draw                  : 41.99 W
        Power Limit                 : 300.00 W
        Default Power Limit         : 300.00 W
    Clocks
        SM                          : 135 MHz
    Processes
        Process ID                  : 4711
            Type                    : C
            Name                    : python
            Used GPU Memory         : 1000 MiB
        Process ID                  : 4712
            Type                    : C
            Name                    : python
            Used GPU Memory         : 1000 MiB
"""
"""The fields of an old driver, laid out as it prints them; values made up."""


def test_the_text_of_an_old_driver():
    told = section(TEXT, "gpus")
    [gpu] = told["gpus"]
    assert (told["driver_version"], told["attached"]) == ("418.43", 1)
    assert (gpu["address"], gpu["pci_id"], gpu["uuid"]) == ("0000:3b:00.0", "1db5", "GPU-0")
    assert gpu["pcie"] == {"gen": 1, "gen_max": 3, "width": 16, "width_max": 16, "replays": 2}
    assert gpu["retired"] == {"single_bit": 0, "double_bit": 2, "pending": True}
    assert gpu["power"] == {"draw_w": 41.99, "limit_w": 300.0, "default_w": 300.0}
    assert gpu["throttle"] == {
        "gpu_idle": True,
        "hw_slowdown": False,
        "hw_thermal_slowdown": False,
        "sw_thermal_slowdown": False,
    }
    assert gpu["ecc"]["current"] is True
    assert [one["pid"] for one in gpu["processes"]] == [4711, 4712]
    assert (gpu["temperature"]["gpu_c"], gpu["temperature"]["slowdown_c"]) == (34, 87)


@pytest.mark.parametrize(("mark", "end"), [("<nvidia_smi_log>", "<gpu>"), ("<nvidia_smi_log", "")])
def test_xml_that_is_cut_is_refused(mark, end):
    with pytest.raises(Unavailable):
        capture_of(mark + end)


STATUS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n" + "".join(
    f"\t Link {at}: 26.562 GB/s\n" for at in range(18)
)
ONE = replace(H100, gpus=replace(H100.the_gpus(), count=1))


def test_only_what_a_capture_holds_is_judged():
    assert {name: one.status for name, one in judged(STATUS, ONE).items()} == {
        "nvlink-up": Status.PASS,
        "nvlink-speed": Status.PASS,
    }
    errors = STATUS.split("\n")[0] + "\n\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 7\n"
    assert set(judged(errors, ONE)) & {"nvlink-errors", "nvlink-speed"} == {"nvlink-errors"}
    assert len(judged(STATUS + "\n" + errors, ONE)) == 3


def test_a_matrix_without_nics_says_nothing_of_nics():
    header = "\t" + "\t".join(f"GPU{at}" for at in range(8)) + "\tCPU Affinity\n"
    rows = [
        f"GPU{one}\t" + "\t".join("X" if one == other else "NV18" for other in range(8)) + "\t0-51\n"
        for one in range(8)
    ]
    assert set(judged(header + "".join(rows))) == {"nvlink-pairs"}
    assert judged(header + "".join(rows).replace("NV18", "NV12", 1))["nvlink-pairs"].status is Status.FAIL


PORT = """\
mlx5_0/node_guid:{}a088:c203:00ab:0001
mlx5_0/ports/1/state:{}4: ACTIVE
mlx5_0/ports/1/phys_state:{}5: LinkUp
mlx5_0/ports/1/rate:{}400 Gb/sec (4X NDR)
mlx5_0/ports/1/link_layer:{}InfiniBand
"""


@pytest.mark.parametrize(("space", "folder"), [(" ", ""), ("", "/sys/class/infiniband/")])
def test_a_listing_is_read_as_far_as_it_goes(space, folder):
    text = "".join(folder + line + "\n" for line in PORT.replace("{}", space).splitlines())
    [device] = section(text, "infiniband")["devices"]
    assert set(device) == {"name", "node_guid", "ports"}
    assert device["ports"][0]["rate_gbps"] == 400
    found = judged(text)
    assert found["rdma-ports"].status is Status.FAIL  # one of eight
    assert "ib-pkeys" not in found
    assert [one.check for one in found.values() if one.status is Status.UNKNOWN] == []


def test_md_arrays():
    text = (
        "/sys/block/md0/md/array_state:active\n/sys/block/md0/md/level:raid1\n/sys/block/md0/md/degraded:1\n"
    )
    declared = replace(H100, arrays=("md0",))
    assert judged(text, declared)["array-health"].status is Status.FAIL
    assert judged(text)["array-health"].status is Status.WARN
    assert judged(text.replace("degraded:1", "degraded:0"))["array-health"].status is Status.PASS


SMARTCTL = {
    "device": {"name": "/dev/nvme3"}, "model_name": "M", "firmware_version": "F",
    "nvme_smart_health_information_log": {
        "critical_warning": 0, "temperature": 35, "available_spare": 100, "available_spare_threshold": 10,
        "percentage_used": 3, "media_errors": 0,
    },
}  # fmt: skip


def test_the_health_log_of_one_drive():
    [drive] = section(json.dumps(SMARTCTL), "nvme")["drives"]
    assert (drive["name"], drive["model"], drive["smart"]["used"]) == ("nvme3", "M", 3)
    found = judged(json.dumps(SMARTCTL).replace('"critical_warning": 0', '"critical_warning": 4'))
    assert found["nvme-warning"].status is Status.FAIL
    assert {one.status for one in found.values()} == {Status.FAIL, Status.PASS}
    assert "nvme-count" not in found


def test_mounts_and_an_excerpt_of_them():
    line = "nfs1:/home /home nfs4 ro,relatime,vers=4.2 0 0\n"
    assert set(judged(line)) == set()
    assert judged("/dev/sda1 / ext4 ro,relatime 0 0\n" + line)["fs-writable"].status is Status.FAIL


LSPCI = """\
15:01.0 PCI bridge: Intel Corporation Device 352a (rev 04) (prog-if 00 [Normal decode])
\tBus: primary=15, secondary=16, subordinate=1c, sec-latency=0
17:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
\tBus: primary=17, secondary=19, subordinate=19, sec-latency=0
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\tCapabilities: [148 v1] Access Control Services
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
0000:19:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
\tNUMA node: 0
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s, Width x8 (downgraded)
\tKernel driver in use: nvidia
"""


def test_lspci():
    told = section(LSPCI, "pci")
    assert told["devices"] == [
        {
            "address": "0000:19:00.0", "class": "0302", "vendor": "10de", "device": "2330", "driver": "nvidia",
            "numa": 0, "speed_gts": 32.0, "width": 8, "speed_max_gts": 32.0, "width_max": 16,
            "upstream": ["0000:17:00.0"], "slot_speed_gts": 16.0, "slot_width": 16,
        }
    ]  # fmt: skip
    assert (told["acs_redirecting"], told["acs_unread"]) == ([], [])
    assert judged(LSPCI)["gpu-pcie-lanes"].evidence == "0000:19:00.0 has 8 of 16 lanes"
    assert section(LSPCI.replace("ReqRedir-", "ReqRedir+"), "pci")["acs_redirecting"] == ["0000:17:00.0"]
    denied = LSPCI.replace("[148 v1] Access Control Services", "<access denied>")
    assert section(denied, "pci")["acs_unread"] == ["0000:17:00.0"]
    plain = "".join(line + "\n" for line in LSPCI.splitlines() if not line.startswith("\t"))
    assert set(section(plain, "pci")) == {"devices"}


def test_amd_smi_as_text_and_as_json():
    text = "GPU: 0\n    ECC:\n        TOTAL_CORRECTABLE_COUNT: 1\n        TOTAL_UNCORRECTABLE_COUNT: 2\n"
    told = [{"gpu": 0, "ecc": {"total_correctable_count": 1, "total_uncorrectable_count": 2}}]
    for form in (text, json.dumps(told), json.dumps({"gpu_data": told})):
        assert section(form, "amd_metrics")["gpus"] == [
            {"index": 0, "uncorrectable": 2, "deferred": None, "correctable": 1}
        ]
    [gpu] = section(json.dumps([{"gpu": 0, "asic": {"device_id": "0x74a1"}}]), "amd_gpus")["gpus"]
    assert gpu["pci_id"] == "74a1"


def test_the_diagnostic_of_dcgm():
    results = [{"status": "Fail", "gpu_id": "0", "warnings": "broken"}]
    told = {"DCGM GPU Diagnostic": {"test_categories": [{"tests": [{"name": "Memory", "results": results}]}]}}
    [result] = section(json.dumps(told), "dcgm_diag")["results"]
    assert (result["test"], result["status"]) == ("Memory", "fail")
    assert judged(json.dumps(told), replace(H100, dcgm="localhost"))["dcgm-diag"].status is Status.FAIL


TABLE = """\
| Diagnostic                | Result                                         |
|-----  Deployment  --------+------------------------------------------------|
| software                  | Pass                                           |
|                           | GPU1: Fail                                     |
|-----  Integration  -------+------------------------------------------------|
| PCIe                      | Fail - GPU: 1                                  |
| Warning                   | GPU 1 is slow                                  |
"""
HEALTH = """\
Health Monitor Report
| Overall Health            | Failure                                        |
| GPU                       |                                                |
| -> 0                      | Failure                                        |
|    -> Errors              |                                                |
|       -> NVLink system    | Failure                                        |
|                           | link 3 is down                                 |
"""
MLXLINK = """\
Operational Info
----------------
FEC                                : Standard RS-FEC (544,514)

Physical Counters and BER Info
------------------------------
Effective Physical BER             : 4E-9
Raw Physical BER                   : 3E-5
"""


def test_tables_that_people_paste():
    results = section(TABLE, "dcgm_diag")["results"]
    assert [(one["test"], one["entity"], one["status"], one["text"]) for one in results] == [
        ("software", "node", "pass", ""),
        ("software", "GPU 1", "fail", ""),
        ("PCIe", "GPU 1", "fail", "GPU 1 is slow"),
    ]
    told = section(HEALTH, "dcgm")
    assert told["overall"] == "Failure"
    assert told["incidents"] == [
        {"entity": "GPU 0", "system": "NVLink system", "health": "Failure", "text": "link 3 is down"}
    ]
    [port] = section(MLXLINK, "links")["ports"]
    assert (port["effective_ber"], port["raw_ber"], port["fec"]) == (4e-9, 3e-5, "Standard RS-FEC (544,514)")


def run(tmp_path, capsys, text, *arguments):
    path = tmp_path / "capture"
    path.write_text(text)
    status = cli(["health", "--document", str(path), *arguments])
    said = capsys.readouterr()
    return status, " ".join((said.out + said.err).split())


def test_the_command_line_judges_a_capture(tmp_path, capsys):
    status, said = run(tmp_path, capsys, STATUS, "--sku", "hgx-h100")
    assert (status, "1 of 8 GPUs have NVLinks" in said) == (3, True)
    status, said = run(tmp_path, capsys, STATUS, "--sku", "hgx-h100", "--gpus", "1")
    assert status == 0
    assert "a capture of nvidia-smi nvlink; only its nvlink is judged: 1 PASS" in said


def test_the_command_line_says_why_a_capture_is_not_judged(tmp_path, capsys):
    known = ", ".join(one.name for one in KINDS)
    for text, arguments, words in (
        ("half a docu", ["--sku", "hgx-h100"], f"known captures: {known}"),
        (STATUS, ["inventory/lab.yaml"], "A capture has no node name."),
        (
            STATUS,
            ["--sku", "cpu-16c-64g"],
            "No check of SKU cpu-16c-64g uses the content of nvidia-smi nvlink",
        ),
        (
            "<nvidia_smi_log><gpu>",
            ["--sku", "hgx-h100"],
            "This looks like nvidia-smi -q -x, but cannot be parsed",
        ),
    ):
        status, said = run(tmp_path, capsys, text, *arguments)
        assert (status, words in said) == (1, True), said
