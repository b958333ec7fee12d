"""What ipmitool prints of a BMC: sensors (`sdr`), the event log (`sel`), how full it is (`sel info`).

An event log is judged as of its newest entry, because a capture has no timestamp.
"""

from __future__ import annotations

import re
from typing import Any

from rackwright.health.captured.reading import Context, Reading
from rackwright.health.probe import bmc
from rackwright.health.probe.source import Unavailable

_SENSOR = re.compile(
    r"^[^|\n]{2,}\|(?: [0-9A-F]{2}h \| [a-z]{2,3} +\| *\d+\.\d+ \|.*| [^|\n]+ \| (?:ok|ns|[lu]?n[cr]|[lu]?cr))\s*$",
    re.MULTILINE,
)
_EVENT = re.compile(r"^ *[0-9a-f]+ \| +(?:\d\d/\d\d/\d{2,4} \| *\d\d:|Pre-Init)", re.MULTILINE)
_LOG = re.compile(r"^Percent Used +:", re.MULTILINE)
_ALONE = ("bmc-answers",)
"""Checks that a capture cannot answer: the BMC evidently did respond."""


def is_sensors(text: str) -> bool:
    """`ipmitool sdr`, `sdr elist`."""
    return _SENSOR.search(text) is not None


def sensors(text: str, context: Context) -> Reading:
    """Every sensor."""
    return _reading(sensors=bmc.parse_sensors(text))


def is_events(text: str) -> bool:
    """`ipmitool sel list`, `sel elist`."""
    return _EVENT.search(text) is not None


def events(text: str, context: Context) -> Reading:
    """Every event."""
    found = bmc.parse_events(text)
    if not found:
        raise Unavailable("no entry")
    times = [one["at"] for one in found if one["at"] is not None]
    return _reading(events=found, clock=max(times, default=0.0), uptime_s=None)


def is_log(text: str) -> bool:
    """`ipmitool sel info`."""
    return _LOG.search(text) is not None


def log(text: str, context: Context) -> Reading:
    """How full the event log is."""
    return _reading(log=bmc.parse_log(text))


def _reading(**parts: Any) -> Reading:  # noqa: ANN401
    section = {"tool": "ipmitool", "device": "a capture", "why": None, **parts}
    section.update({name + "_why": None for name in parts})
    return Reading({"bmc": section}, leaves_out=_ALONE)
