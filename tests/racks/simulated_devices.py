"""A simulated BMC and simulated SNMP devices: files for ipmi_sim (OpenIPMI) and snmpd on a lab node.

tests/racks/alerts/devices.py puts them on a rack; tests/unit/alerts/recorded/ipmi.prom and snmp.prom were recorded from them.
A sensor reads its file `value<number>` each second, so that a fault is one `echo`: 3 in that of the first fan is 300 rpm, 3
in that of a power supply is present and failed. ipmi_sim has no DCMI, and FreeIPMI needs the workaround `opensesspriv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FOLDER = "/opt/bmc"
LAN, EMULATION, POWER = f"{FOLDER}/lan.conf", f"{FOLDER}/bmc.emu", f"{FOLDER}/power"
SEL_ENTRIES = 1000
"""Of 16 bytes each."""
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

    @property
    def file(self) -> str:
        """Where its raw value is read."""
        return f"{FOLDER}/value{self.number}"


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
        LAN: lan,
        EMULATION: "\n".join(_emulation()) + "\n",
        f"{FOLDER}/chassis": f'#!/bin/sh\n[ "$1 $2" != "get power" ] || echo "power:$(cat {POWER})"\n',
        POWER: "1\n",
        **{one.file: f"{one.value}\n" for one in SENSORS},
    }


def _emulation() -> Iterator[str]:
    yield "mc_setbmc 0x20"
    yield "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02"
    yield f"sel_enable 0x20 {SEL_ENTRIES} 0x0a"
    for one in SENSORS:
        discrete = one.unit == 0
        code, at = _DISCRETE if discrete else _THRESHOLD, f"0x20 0 {one.number}"
        yield f'sensor_add {at} {one.kind:#04x} {code:#04x} poll 1000 file "{one.file}"'
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


_UPS, _APC, _RARITAN = "1.3.6.1.2.1.33.1", "1.3.6.1.4.1.318.1.1.26", "1.3.6.1.4.1.13742.6.5.2.3.1"
_SENSOR = "1.3.6.1.2.1.99.1.1.1"
UPS_BATTERY, UPS_SOURCE, UPS_LOAD = f"{_UPS}.2.1.0", f"{_UPS}.4.1.0", f"{_UPS}.4.4.1.5.1"
APC_LOAD, RARITAN_STATE = f"{_APC}.4.3.1.4.1", f"{_RARITAN}.3.1.1.5"
PORT = 101
"""ifIndex of the switch's first port."""
IN_ERRORS = f"1.3.6.1.2.1.2.2.1.14.{PORT}"
Objects = Mapping[str, tuple[str, str]]
"""OID to type and value, as snmpd's `override` takes them."""


def _integers(values: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    return {oid: ("integer", str(value)) for oid, value in values.items()}


SWITCH: Objects = {
    IN_ERRORS: ("counter", "7"),
    **_integers({f"{_SENSOR}.{at}.100": value for at, value in ((1, 8), (2, 9), (3, 1), (4, 415), (5, 1))}),
    "1.3.6.1.2.1.47.1.1.1.1.7.100": ("octet_str", '"Temp 1"'),
}
"""Its ports are the interfaces of the network namespace that snmpd runs in."""
UPS: Objects = {
    **_integers({f"{_UPS}.2.{at}.0": value for at, value in ((2, 0), (3, 18), (4, 100), (5, 2730), (7, 24))}),
    **_integers({UPS_BATTERY: 2, UPS_SOURCE: 3, UPS_LOAD: 52}),
    **_integers({f"{_UPS}.3.3.1.3.1": 231, f"{_UPS}.4.4.1.4.1": 2600}),
    f"{_UPS}.6.1.0": ("uinteger", "0"),
}
APC_PDU: Objects = _integers(
    {
        APC_LOAD: 2,
        f"{_APC}.4.3.1.5.1": 612,
        f"{_APC}.6.3.1.4.1": 2,
        f"{_APC}.6.3.1.5.1": 88,
        f"{_APC}.6.3.1.6.1": 231,
    }
)
RARITAN_PDU: Objects = {**_integers({RARITAN_STATE: 4}), f"{_RARITAN}.4.1.1.5": ("uinteger", "6120")}


def snmpd_conf(name: str, address: str, access: str, objects: Objects) -> str:
    """snmpd.conf of one device; `access`: its lines about users and communities."""
    given = "".join(f"override {oid} {kind} {value}\n" for oid, (kind, value) in objects.items())
    return f"agentAddress udp:{address}:161\nsysName {name}\n{access}{given}"


def v3_access(user: str, password: str, priv_password: str) -> str:
    """A user with read access, authenticated and encrypted."""
    return f"createUser {user} SHA-256 {password} AES {priv_password}\nrouser {user} priv\n"


def v2_access(community: str) -> str:
    """Read access with the community."""
    return f"rocommunity {community}\n"
