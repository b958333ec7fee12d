"""Parses output of infiniband-diags: ibnetdiscover, iblinkinfo, ibqueryerrors. Pure functions of text."""

from __future__ import annotations

import re

from rackwright.fabric.discovered import Device, Discovery, Health, Link, Port

LINE_MAX = 1024
LANE_GBPS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
"""Gb/s of one lane as links are sold: 4xNDR is 400 (InfiniBand Trade Association, InfiniBand Roadmap, read 2026-11-25)."""
_SECTION = re.compile(
    r'^(Switch|Ca|Rt)\s+\d+\s+"([SHR])-([0-9a-f]{16})"\s*#\s*"(.*?)"(?: base port| enhanced port|\s*$)'
)
_CABLE = re.compile(
    r'^\[(\d{1,3})\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s+"[SHR]-([0-9a-f]{16})"\[(\d{1,3})\](?:\[ext \d+\])?'
    r"(?:\([0-9a-f]+\))?\s*#(.*)$"
)
_RATE = re.compile(r"(\d{1,2})x([A-Z]+\d*)\s*(?:s=\S+)?\s*$")
_OWNER = re.compile(r"^(?:Switch:\s+0x([0-9a-f]{16})\s.*|(CA):\s.*):$")
_STATE = re.compile(
    r"^\s+(?:0x([0-9a-f]{16})\s+)?\d+\s+(\d{1,3})\[[^]]*\] ==\(\s*(?:\d+X\s+[0-9.]+ Gbps\s+)?([A-Za-z]+)/\s*([A-Za-z]+)\)"
)
_ERRORS = re.compile(r"^\s*GUID 0x([0-9a-f]{1,16}) port (\d{1,3}):(.*)$")
_FIRMWARE = re.compile(r"switch ([0-9a-f]{1,16}) (\d{1,5}\.\d{1,5}\.\d{1,5})")
_COUNTER = re.compile(r"\[(\w+) == (\d{1,20})\]")


def parse_ibnetdiscover(text: str) -> Discovery:
    """Devices and links of `ibnetdiscover` (infiniband-diags 44 to 56). Without any link the text is `unread`."""
    devices: dict[str, Device] = {}
    links: dict[tuple[Port, Port], Link] = {}
    current: str | None = None
    unread: list[str] = []
    for line in text.splitlines():
        if len(line) > LINE_MAX:
            unread.append("ibnetdiscover printed a line that is too long")
            continue
        if section := _SECTION.match(line):
            current = section[3]
            devices[current] = Device(current, switch=section[1] == "Switch", description=section[4])
        elif current is not None and (cable := _CABLE.match(line)):
            one, other = Port(current, cable[1]), Port(cable[2], cable[3])
            rate = _RATE.search(cable[4])
            lanes = int(rate[1]) if rate else None
            lane = LANE_GBPS.get(rate[2]) if rate else None
            gbps = None if lanes is None or lane is None else lanes * lane
            key = (one, other) if one < other else (other, one)
            links.setdefault(key, Link(*key, gbps, lanes))
        elif line.startswith("["):
            unread.append(f"a line of ibnetdiscover cannot be read: {line[:80]}")
    if not devices:
        unread.append("ibnetdiscover found nothing: this node has no active port, or no subnet manager runs")
    elif not links:
        unread.append("ibnetdiscover found no link: the port that it used is not connected")
    missing = {port.device for link in links.values() for port in (link.one, link.other)} - set(devices)
    unread += [
        f"ibnetdiscover has no section for {guid}: its output is incomplete" for guid in sorted(missing)[:8]
    ]
    return Discovery(devices, tuple(links.values()), unread=tuple(unread))


def parse_iblinkinfo(text: str) -> Discovery:
    """The state of every port of every switch in `iblinkinfo`, those without a link included."""
    health: dict[Port, Health] = {}
    switch: str | None = None
    for line in text.splitlines():
        if len(line) > LINE_MAX:
            continue
        if owner := _OWNER.match(line):
            switch = owner[1]
        elif switch is not None and (state := _STATE.match(line)):
            logical, physical = state[3].lower(), state[4].lower()
            # without a link the physical state has the reason; a port that was just switched off may still be "Active"
            health[Port(switch, state[2])] = Health(state=logical if physical == "linkup" else physical)
    unread = () if health else ("iblinkinfo shows no port of a switch",)
    return Discovery(health=health, unread=unread)


def parse_ibqueryerrors(text: str) -> dict[Port, Health]:
    """Counters of ports in `ibqueryerrors`, which lists those that have any."""
    found: dict[Port, Health] = {}
    for line in text.splitlines():
        if len(line) <= 8 * LINE_MAX and (port := _ERRORS.match(line)):
            counts = {name: int(value) for name, value in _COUNTER.findall(port[3])}
            found[Port(port[1].zfill(16), port[2])] = Health(
                symbol_errors=counts.get("SymbolErrorCounter", 0),
                link_downed=counts.get("LinkDownedCounter", 0),
                receive_errors=counts.get("PortRcvErrors", 0),
            )
    return found


def parse_firmware(text: str) -> dict[str, str]:
    """Firmware of switches by GUID, of lines `switch GUID VERSION` (`switch_firmware` of infiniband_nodes prints them)."""
    lines = (_FIRMWARE.fullmatch(line.strip()) for line in text.splitlines() if len(line) < LINE_MAX)
    return {match[1].zfill(16): match[2] for match in lines if match is not None}
