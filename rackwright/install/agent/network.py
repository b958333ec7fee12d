"""Configures the one interface that reaches the head, found by its MAC address."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from rackwright.install.agent.guard import Network
from rackwright.install.agent.programs import AgentError, link_name, log, read_text, run

INTERFACES = "/sys/class/net"
LEASE_SCRIPT = "/usr/lib/rackwright/lease"
LEASE_PROCESS = "/run/rackwright/udhcpc.pid"
_FOUND_SECONDS = 60.0
_CARRIER_SECONDS = 45.0
_ATTEMPTS, _ATTEMPT_SECONDS = 20, 3

LEASE = """\
#!/bin/sh
# Run by udhcpc: uses only the address and the route of a DHCP lease.
case "$1" in bound | renew) ;; *) exit 0 ;; esac
ip addr replace "$ip/${mask:-24}" dev "$interface"
[ -z "$router" ] || ip route replace default via "${router%% *}" dev "$interface"
"""


def physical(folder: str = INTERFACES) -> list[str]:
    """Names of interfaces with a device."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(name for name in names if os.path.exists(f"{folder}/{name}/device"))


def find(mac: str, folder: str = INTERFACES) -> str | None:
    """Name of the interface with this MAC address."""
    matching = (name for name in physical(folder) if read_text(f"{folder}/{name}/address") == mac)
    return next(matching, None)


def wait_for(mac: str) -> str:
    """The interface with this MAC address, once its driver has loaded; AgentError lists the existing ones."""
    deadline = time.monotonic() + _FOUND_SECONDS
    while (name := find(mac)) is None:
        if time.monotonic() > deadline:
            there = [f"{one} ({read_text(f'{INTERFACES}/{one}/address')})" for one in physical()]
            raise AgentError(f"no interface has the MAC address {mac}; found: {', '.join(there) or 'none'}")
        time.sleep(0.2)
    return name


def commands(network: Network, name: str) -> list[list[str]]:
    """Commands that make the head reachable through an interface that is up."""
    found: list[list[str]] = []
    device = name
    if network.vlan is not None:
        device = f"vlan{network.vlan}"
        found.append(
            ["ip", "link", "add", "link", name, "name", device, "type", "vlan", "id", str(network.vlan)]
        )
        found.append(["ip", "link", "set", device, "up"])
    if network.address is None:
        # without -q it stays and renews its lease: a machine on hold waits for hours
        bounds = ["-n", "-t", str(_ATTEMPTS), "-T", str(_ATTEMPT_SECONDS)]
        found.append(
            ["busybox", "udhcpc", *bounds, "-i", device, "-s", LEASE_SCRIPT, "-p", LEASE_PROCESS, "-S"]
        )
        return found
    found.append(["ip", "addr", "replace", network.address, "dev", device])
    if network.gateway is not None:
        found.append(["ip", "route", "replace", "default", "via", network.gateway, "dev", device])
    return found


def bring_up(network: Network, sleep: Callable[[float], None] = time.sleep) -> str:
    """Configure the declared interface and return its name; bring the others up only to see their link state."""
    name = wait_for(network.mac)
    for one in physical():
        run(["ip", "link", "set", one, "up"], check=False)
    deadline = time.monotonic() + _CARRIER_SECONDS
    while read_text(f"{INTERFACES}/{name}/carrier") != "1":
        if time.monotonic() > deadline:
            log(f"{name} has no link after {_CARRIER_SECONDS:g} s; continuing anyway")
            break
        sleep(0.2)
    for argv in commands(network, name):
        run(argv, seconds=_ATTEMPTS * _ATTEMPT_SECONDS + 30)
    address = network.address or "by DHCP"
    log(f"network: {name} {network.mac} {link_name(f'{INTERFACES}/{name}/device/driver')} {address}")
    return name
