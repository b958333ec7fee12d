"""A healthy BMC as ipmitool prints it. Synthetic, in the forms of the recorded documents (corpus, test_bmc_recorded)."""

from __future__ import annotations

import time

from rackwright.health.expected import Expected
from rackwright.health.probe.bmc import NEWEST, TOOL
from rackwright.model.sku import Sku
from tests.unit.health.fake_node import NOW, FakeNode

CONTROLLER = """\
Device ID                 : 32
Device Revision           : 1
Firmware Revision         : 1.75
IPMI Version              : 2.0
Manufacturer ID           : 5703
Manufacturer Name         : NVIDIA Corporation
Product ID                : 2560 (0x0a00)
Device Available          : yes
Provides Device SDRs      : yes
"""
LOG_INFO = """\
SEL Information
Version          : 1.5 (v1.5, v2 compliant)
Entries          : 5
Free Space       : 15392 bytes
Percent Used     : 1%
Last Add Time    : 11/18/26 08:01:12 UTC
Last Del Time    : Not Available
Overflow         : false
Supported Cmds   : 'Reserve'
"""
CHASSIS = """\
System Power         : on
Power Overload       : false
Power Interlock      : inactive
Main Power Fault     : false
Power Control Fault  : false
Power Restore Policy : always-on
Last Power Event     :
Chassis Intrusion    : inactive
Front-Panel Lockout  : inactive
Drive Fault          : false
Cooling/Fan Fault    : false
"""
POWER = """
    Instantaneous power reading:                  2064 Watts
    Minimum during sampling period:                256 Watts
    Maximum during sampling period:               2240 Watts
    Average power reading over sample period:      320 Watts
    IPMI timestamp:                           11/18/26 11:06:40 UTC    Sampling period:                          00000005 Seconds.
    Power reading state is:                   activated

"""
SENSORS = """\
TEMP_CPU0        | 01h | ok  |  3.1 | 46 degrees C
TEMP_INLET       | 02h | ok  |  7.1 | 23 degrees C
CPU0_DTS_MARGIN  | 03h | ok  |  3.1 | -41 degrees C
TEMP_PCIE_9      | 04h | ns  | 11.9 | No Reading
SPD_FAN_SYS0_F   | 20h | ok  | 29.1 | 9600 RPM
SPD_FAN_SYS0_R   | 21h | ok  | 29.1 | 8640 RPM
FAN_DUTY         | 22h | ok  | 29.1 | 41 percent
STATUS_PSU0      | 30h | ok  | 10.0 | Presence detected
STATUS_PSU1      | 31h | ok  | 10.1 | Presence detected
STATUS_PSU2      | 32h | ok  | 10.2 |
PWR_PSU0         | 33h | ok  | 10.0 | 1120 Watts
REDUNDANCY_PSU   | 34h | ok  |  7.1 | Fully Redundant
Fan Redundancy   | 35h | ok  |  7.1 | Fully Redundant
SEL              | 40h | ns  |  7.1 | No Reading
Drive 0          | 50h | ok  |  4.1 | Drive Present
"""
LIST = f"sel list last {NEWEST}"


def when(hours: float) -> str:
    """A time that many hours ago, as ipmitool 1.8.19 prints it."""
    return time.strftime("%m/%d/%y | %H:%M:%S UTC", time.gmtime(NOW - 3600 * hours))


def entry(number: int, hours: float, words: str) -> str:
    """A line of `sel list`; `words`: sensor | event | direction."""
    return f"{number:4x} | {when(hours)} | {words}\n"


EVENTS = (
    entry(1, 3000, "Memory #0x53 | Uncorrectable ECC | Asserted")
    + "   2 |  Pre-Init  |0000000123| Processor #0x04 | IERR | Asserted\n"
    + entry(3, 20, "Power Supply #0x31 | Failure detected | Asserted")
    + entry(4, 19, "Power Supply #0x31 | Failure detected | Deasserted")
    + entry(5, 3, "System ACPI Power State #0xd5 | S0/G0: working | Asserted")
)
"""An old error, one without a time, one that ended, and nothing."""


def put_bmc(node: FakeNode, sku: Sku, expected: Expected) -> None:
    """The device, the tool, and what it prints."""
    node.put("/dev/ipmi0", "")
    node.put(TOOL, "a program")
    for words, text in (
        ("mc info", CONTROLLER), ("sel info", LOG_INFO), ("chassis status", CHASSIS), ("dcmi power reading", POWER),
        ("sel time get", when(0).replace(" |", "") + "\n"), (LIST, EVENTS), ("sdr elist", SENSORS),
    ):  # fmt: skip
        node.commands[f"ipmitool {words}"] = text


def add_event(node: FakeNode, hours: float, words: str) -> None:
    """One more entry of the event log."""
    node.commands[f"ipmitool {LIST}"] = str(node.commands[f"ipmitool {LIST}"]) + entry(6, hours, words)
