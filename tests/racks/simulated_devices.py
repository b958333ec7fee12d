"""A BMC and SNMP devices that do not exist, as files for ipmi_sim (OpenIPMI) and snmpd on a lab node.

What tests/unit/alerts/recorded/ipmi.prom and snmp.prom were recorded of. On a lab node, as root:

    apt-get install --no-install-recommends openipmi snmpd
    systemd-run --unit=simulated-bmc ipmi_sim -n -c /opt/bmc/lan.conf -f /opt/bmc/bmc.emu -s /opt/bmc/state

A sensor reads its file `value<number>` each second, so that a fault is one `echo`: 3 in that of the first fan is 300 rpm, 3
in that of a power supply is present and failed. ipmi_sim has no DCMI, and FreeIPMI needs the workaround `opensesspriv`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FOLDER = "/opt/bmc"
CELSIUS, VOLTS, WATTS, RPM = 1, 4, 6, 18
"""Units of IPMI 2.0, table 43-15."""
Limits = tuple[int, int, int]
"""Non-critical, critical, non-recoverable; raw, 0: none."""
_NONE: Limits = (0, 0, 0)
_DISCRETE, _THRESHOLD = 0x6F, 0x01
_EVENTS = f"{0x0FFF:015b}"


@dataclass(frozen=True)
class Sensor:
    """One sensor; its reading is raw * m * 10 ** exponent."""

    number: int
    name: str
    kind: int
    value: int
    unit: int = 0
    entity: tuple[int, int] = (7, 1)
    m: int = 1
    exponent: int = 0
    upper: Limits = _NONE
    lower: Limits = _NONE


SENSORS = (
    Sensor(1, "Inlet Temp", 0x01, 24, CELSIUS, (64, 1), upper=(42, 46, 50)),
    Sensor(2, "CPU1 Temp", 0x01, 51, CELSIUS, (3, 1), upper=(90, 95, 100)),
    Sensor(3, "FAN1", 0x04, 72, RPM, (29, 1), m=100, lower=(12, 8, 5)),
    Sensor(4, "FAN2", 0x04, 71, RPM, (29, 2), m=100, lower=(12, 8, 5)),
    Sensor(5, "12V", 0x02, 201, VOLTS, m=60, exponent=-3, upper=(215, 222, 230), lower=(180, 175, 170)),
    Sensor(6, "Pwr Consumption", 0x0B, 130, WATTS, m=40),
    Sensor(10, "PS1 Status", 0x08, 1, entity=(10, 1)),
    Sensor(11, "PS2 Status", 0x08, 1, entity=(10, 2)),
)


def bmc_files(address: str, user: str, password: str) -> dict[str, str]:
    """By path. The program `chassis` has to be executable."""
    lan = f"""\
name "bmc"
set_working_mc 0x20
  startlan 1
    addr {address} 623
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{FOLDER}/chassis"
  user 1 false "" "test" user 10 none md2 md5 straight
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
    return {
        f"{FOLDER}/lan.conf": lan,
        f"{FOLDER}/bmc.emu": "\n".join(_emulation()) + "\n",
        f"{FOLDER}/chassis": f'#!/bin/sh\n[ "$1 $2" != "get power" ] || echo "power:$(cat {FOLDER}/power)"\n',
        f"{FOLDER}/power": "1\n",
        **{f"{FOLDER}/value{one.number}": f"{one.value}\n" for one in SENSORS},
    }


def _emulation() -> Iterator[str]:
    yield "mc_setbmc 0x20"
    yield "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02"
    yield "sel_enable 0x20 1000 0x0a"
    for one in SENSORS:
        discrete = one.unit == 0
        code, at = _DISCRETE if discrete else _THRESHOLD, f"0x20 0 {one.number}"
        yield f'sensor_add {at} {one.kind:#04x} {code:#04x} poll 1000 file "{FOLDER}/value{one.number}"'
        if not discrete:
            limits = (*reversed(one.upper), *reversed(one.lower))
            enabled = "".join("1" if limit else "0" for limit in limits)
            yield f"sensor_set_threshold {at} settable {enabled} {' '.join(map(str, limits))}"
        events = f"{0x0F:015b}" if discrete else _EVENTS
        yield f"sensor_set_event_support {at} enable scanning per-state {' '.join([events] * 4)}"
        record = _compact(one) if discrete else _full(one)
        yield f"main_sdr_add 0x20 {' '.join(f'{byte:#04x}' for byte in record)}"
    yield "mc_enable 0x20"


def _named(one: Sensor) -> list[int]:
    return [0xC0 | len(one.name), *one.name.encode()]


def _full(one: Sensor) -> list[int]:
    """A full sensor record: IPMI 2.0, table 43-1."""
    limits = (*one.lower, *one.upper)
    readable = sum(1 << bit for bit, limit in enumerate(limits) if limit)
    body = [0x20, 0, one.number, *one.entity, 0x7F, 0x68, one.kind, _THRESHOLD, 0, 0, 0, 0, readable, 0]
    body += [0, one.unit, 0, 0, one.m & 0xFF, (one.m >> 2) & 0xC0, 0, 0, 0, (one.exponent & 0xF) << 4]
    body += [0, 0, 0, 0, 0xFF, 0, *reversed(one.upper), *reversed(one.lower), 1, 1, 0, 0, 0, *_named(one)]
    return [0, 0, 0x51, 0x01, len(body), *body]


def _compact(one: Sensor) -> list[int]:
    """A compact sensor record: IPMI 2.0, table 43-2."""
    body = [0x20, 0, one.number, *one.entity, 0x67, 0x40, one.kind, _DISCRETE, *([0x0F, 0] * 3)]
    body += [0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, *_named(one)]
    return [0, 0, 0x51, 0x02, len(body), *body]


def snmpd_conf(address: str, user: str, community: str) -> str:
    """snmpd.conf of a switch, a UPS and two PDUs in one; the user's passwords go into /var/lib/snmp/snmpd.conf."""
    ups, apc, raritan = "1.3.6.1.2.1.33.1", "1.3.6.1.4.1.318.1.1.26", "1.3.6.1.4.1.13742.6.5.2.3.1"
    sensor = "1.3.6.1.2.1.99.1.1.1"
    numbers = {
        **{f"{ups}.2.{at}.0": value for at, value in ((1, 2), (2, 0), (3, 18), (4, 100), (5, 2730), (7, 24))},
        f"{ups}.3.3.1.3.1": 231,
        f"{ups}.4.1.0": 3,
        f"{ups}.4.4.1.4.1": 2600,
        f"{ups}.4.4.1.5.1": 52,
        f"{apc}.4.3.1.4.1": 2,
        f"{apc}.4.3.1.5.1": 612,
        f"{apc}.6.3.1.4.1": 2,
        f"{apc}.6.3.1.5.1": 88,
        f"{apc}.6.3.1.6.1": 231,
        f"{raritan}.3.1.1.5": 4,
        **{f"{sensor}.{at}.100": value for at, value in ((1, 8), (2, 9), (3, 1), (4, 415), (5, 1))},
    }
    return "".join(
        (
            f"agentAddress udp:{address}:161\nsysName leaf1\nrouser {user} priv\nrocommunity {community}\n",
            *(f"override {oid} integer {value}\n" for oid, value in numbers.items()),
            f"override {ups}.6.1.0 uinteger 0\noverride {raritan}.4.1.1.5 uinteger 6120\n",
            'override 1.3.6.1.2.1.47.1.1.1.1.7.100 octet_str "Temp 1"\n',
        )
    )
