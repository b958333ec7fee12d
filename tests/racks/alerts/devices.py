"""Simulated devices of the rack: a BMC, a switch, a UPS and two PDUs.

They run on workers, each in a separate network namespace: a macvlan port on the worker's cable with a separate address, which
the worker's firewall does not see. A BMC that shares a port with its node is on the network in the same way.
"""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rackwright.secrets.store import store_of
from tests.racks import simulated_devices as simulated
from tests.racks.simulated_devices import Objects
from tests.racks.site import Site

USER = "monitor"
SECRETS = {
    "bmc_monitor_password": "of-bmcs-alone",
    "snmp_password": "authenticates-devices",
    "snmp_priv_password": "encrypts-for-devices",
    "snmp_community": "community-of-a-pdu",
}
BMC, BMC_HOST, BMC_ADDRESS = "bmc", "worker1", "10.98.0.111"
"""It is the BMC of the node that hosts it."""
SNMP_HOST = "worker2"
BMC_UNIT = "simulated-bmc"
PORTS = ("swp1", "swp2")
"""Ports of the switch: the two ends of one cable."""
_V3 = simulated.v3_access(USER, SECRETS["snmp_password"], SECRETS["snmp_priv_password"])
_V2 = simulated.v2_access(SECRETS["snmp_community"])


@dataclass(frozen=True)
class SnmpDevice:
    """One SNMP device."""

    name: str
    address: str
    kind: str
    objects: Objects
    modules: tuple[str, ...] = ()
    auth: str = "v3"

    @property
    def folder(self) -> str:
        """Folder with its files on the worker."""
        return f"/opt/snmp/{self.name}"

    @property
    def unit(self) -> str:
        """The unit that runs its snmpd."""
        return f"simulated-{self.name}"

    def declared(self) -> dict[str, Any]:
        """Its entry in the cluster file."""
        found: dict[str, Any] = {"address": self.address, "kind": self.kind, "auth": self.auth}
        if self.modules:
            found["modules"] = list(self.modules)
        return found if self.kind == "switch" else {**found, "rack": "r1"}


LEAF = SnmpDevice("leaf1", "10.98.0.121", "switch", simulated.SWITCH)
UPS = SnmpDevice("ups1", "10.98.0.122", "ups", simulated.UPS)
APC = SnmpDevice("pdu1", "10.98.0.123", "pdu", simulated.APC_PDU, ("apc_pdu",), "v2")
RARITAN = SnmpDevice("pdu2", "10.98.0.124", "pdu", simulated.RARITAN_PDU, ("raritan_pdu",))
DEVICES = (LEAF, UPS, APC, RARITAN)

ROLES: dict[str, Any] = {
    "ipmi_exporter": {
        "bmcs": {BMC_HOST: BMC_ADDRESS},
        "collectors": ["bmc", "chassis", "ipmi", "sel"],  # ipmi_sim has no DCMI
        "workarounds": ["opensesspriv"],
        "interval_seconds": 10,
    },
    "snmp_exporter": {
        "interval_seconds": 10,
        "auths": {
            "v3": {"user": USER, "password": "snmp_password", "priv_password": "snmp_priv_password"},
            "v2": {"version": 2, "community": "snmp_community"},
        },
        "devices": {one.name: one.declared() for one in DEVICES},
    },
}
"""Roles in the cluster file that read them."""


def store_secrets(site: Site) -> None:
    """Stores their passwords and community, as an operator does."""
    with site.here():
        for name, value in SECRETS.items():
            store_of(site.cluster).put(name, value)


def plug_in(site: Site) -> None:
    """Installs and starts all of them."""
    with ThreadPoolExecutor(2) as pool:
        for done in (pool.submit(_plug_in_bmc, site), pool.submit(_plug_in_snmp, site)):
            done.result()


def _plug_in_bmc(site: Site) -> None:
    files = simulated.bmc_files(BMC_ADDRESS, USER, SECRETS["bmc_monitor_password"])
    state = f"{simulated.FOLDER}/state"
    program = f"ipmi_sim -n -c {simulated.LAN} -f {simulated.EMULATION} -s {state}"
    # ipmi_sim would add the sensors of its file to those of its saved state
    forget = f"ExecStartPre=rm -rf {state}"
    site.on(
        BMC_HOST,
        "\n".join(
            (
                _install("openipmi", masked="openipmi"),
                *(_file(path, text) for path, text in files.items()),
                f"chmod 755 {simulated.FOLDER}/chassis",
                _cabled(BMC, BMC_ADDRESS),
                _started(BMC_UNIT, BMC, program, forget),
            )
        ),
    )


def _plug_in_snmp(site: Site) -> None:
    lines = [_install("snmpd", masked="snmpd")]
    for one in DEVICES:
        conf = simulated.snmpd_conf(one.name, one.address, _V2 if one.auth == "v2" else _V3, one.objects)
        lines += [_file(f"{one.folder}/{name}.conf", conf) for name in ("healthy", "now")]
        lines += [_cabled(one.name, one.address)]
        if one is LEAF:
            first, second = PORTS
            link = f"link add {first} index {simulated.PORT} type veth peer name {second}"
            lines += [f"ip -n {one.name} {link}", *(f"ip -n {one.name} link set {port} up" for port in PORTS)]
        program = f"snmpd -f -Lo -C -c {one.folder}/now.conf"
        lines += [
            _started(one.unit, one.name, program, f"Environment=SNMP_PERSISTENT_DIR={one.folder}/state")
        ]
    site.on(SNMP_HOST, "\n".join(lines))


def _install(package: str, masked: str) -> str:
    """Installs a package; its default service stays off."""
    quiet = "apt-get -q -o DPkg::Lock::Timeout=120"
    return (
        f"systemctl mask --quiet {masked}.service\n{quiet} update >/dev/null\n"
        f"DEBIAN_FRONTEND=noninteractive {quiet} install -y --no-install-recommends {package} >/dev/null"
    )


def _file(path: str, text: str) -> str:
    packed = b64encode(text.encode()).decode()
    return f"mkdir -p $(dirname {path}); (umask 077; echo {packed} | base64 -d > {path})"


def _cabled(name: str, address: str) -> str:
    return "\n".join(
        f"ip {words}"
        for words in (
            f"netns add {name}",
            f"link add eth0 link eth0 netns {name} type macvlan mode bridge",
            f"-n {name} address add {address}/24 dev eth0",
            f"-n {name} link set lo up",
            f"-n {name} link set eth0 up",
        )
    )


def _started(unit: str, namespace: str, program: str, setting: str) -> str:
    """A unit in /run, which is gone after a reboot."""
    text = f"[Service]\nNetworkNamespacePath=/run/netns/{namespace}\n{setting}\nExecStart=/usr/bin/env {program}\n"
    path = f"/run/systemd/system/{unit}.service"
    return f"{_file(path, text)}; systemctl daemon-reload; systemctl start {unit}"
