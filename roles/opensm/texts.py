"""Paths on the node and the text of opensm's files: shared by the deploy and its checks."""

from __future__ import annotations

import re
from collections.abc import Callable

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import expand
from rackwright.render import render
from rackwright.roles.opensm import layout
from rackwright.roles.opensm.layout import Instance
from rackwright.roles.opensm.options import OpensmOptions, Partition, Subnet

FOLDER = "/etc/opensm"
START = "/usr/local/sbin/rackwright-opensm"
UNITS = "/etc/systemd/system"
_PREFIX = "rackwright-opensm-"
_MTU = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
_RATE = {10: 3, 20: 6, 40: 7, 56: 12, 100: 16, 200: 17, 300: 18, 400: 21}
"""The IBTA's numbers, as iba/ib_types.h of opensm 3.3.23 has them (IB_PATH_RECORD_RATE_*, read 2026-11-25)."""
_KEY = re.compile(r"(0x)?[0-9a-fA-F]{16}")


def unit(instance: Instance) -> str:
    """Its unit."""
    return f"{_PREFIX}{instance.island.name}.service"


def units_there() -> str:
    """Shell: the paths of all units that this role has written."""
    return f"ls -d {UNITS}/{_PREFIX}*.service 2>/dev/null | sort"


def conf_path(instance: Instance) -> str:
    """Its settings; readable by root alone, for the keys in it."""
    return f"{FOLDER}/rackwright-{instance.island.name}.conf"


def partitions_path(instance: Instance) -> str:
    """Its partitions."""
    return f"{FOLDER}/rackwright-{instance.island.name}-partitions.conf"


def roots_path(instance: Instance) -> str:
    """GUIDs of the spines, the roots of the tree."""
    return f"{FOLDER}/rackwright-{instance.island.name}-roots.conf"


def roots(cluster: Cluster, options: OpensmOptions, instance: Instance) -> str | None:
    """The file of root GUIDs; None where routing has no use for them, or they are not declared."""
    fabric = cluster.fabrics.get(instance.network)
    engine = layout.engine(fabric, options.networks[instance.network])
    guids = layout.root_guids(fabric, instance.island)
    return "".join(f"{guid}\n" for guid in guids) if guids and engine in ("ftree", "updn", "dnup") else None


def conf(cluster: Cluster, options: OpensmOptions, instance: Instance, secret: Callable[[str], str]) -> str:
    """Settings that are managed; the others have opensm's defaults."""
    subnet = options.networks[instance.network]
    return render(
        "opensm/opensm.conf.j2",
        subnet=subnet,
        instance=instance,
        engine=layout.engine(cluster.fabrics.get(instance.network), subnet),
        partitions=partitions_path(instance),
        roots=roots_path(instance) if roots(cluster, options, instance) is not None else None,
        sm_key=key(subnet.sm_key, secret),
        m_key=key(subnet.m_key, secret),
    )


def key(name: str | None, secret: Callable[[str], str]) -> str | None:
    """A key as opensm reads it. RackwrightError where the secret is not one; it does not show it."""
    if name is None:
        return None
    value = secret(name).strip()
    if value == f"(secret {name})":  # rendered offline
        return value
    if not _KEY.fullmatch(value) or not int(value, 16):
        raise RackwrightError(
            f"The secret {name} is not a key of InfiniBand: 16 hexadecimal digits, not all of them 0.",
            hint="store another one with `rackwright secrets set`, e.g. what `openssl rand -hex 8` prints",
        )
    return f"0x{value.lower().removeprefix('0x')}"


def partitions(subnet: Subnet) -> str:
    """partitions.conf."""
    lines = [_default(subnet)]
    lines += [_partition(name, partition, subnet) for name, partition in subnet.partitions.items()]
    return render("opensm/partitions.conf.j2", lines=lines)


def _default(subnet: Subnet) -> str:
    """Subnet managers are full members, and switches with them: limited ones do not reach each other.

    `SELF` is the subnet manager that reads the file; standbys are named where their GUIDs are declared.
    """
    group = _group(ipoib=subnet.default_ipoib, mtu=subnet.default_mtu, rate=subnet.default_rate)
    flags = "".join(f", {flag}" for flag in group)
    if subnet.default_membership == "full":
        return f"Default=0x7fff{flags} : ALL=full ;"
    managers = "".join(f", {guid}=full" for name in subnet.nodes for guid in subnet.guids.get(name, ()))
    return f"Default=0x7fff{flags} : ALL=limited, ALL_SWITCHES=full, SELF=full{managers} ;"


def _group(*, ipoib: bool, mtu: int | None, rate: int | None) -> list[str]:
    """Flags of the broadcast group."""
    return [
        *(["ipoib"] if ipoib else []),
        *([f"mtu={_MTU[mtu]}"] if mtu is not None else []),
        *([f"rate={_RATE[rate]}"] if rate is not None else []),
    ]


def _partition(name: str, partition: Partition, subnet: Subnet) -> str:
    group = _group(ipoib=partition.ipoib, mtu=partition.mtu, rate=partition.rate)
    head = [f"{name}={partition.pkey:#06x}", *group]
    if partition.members == "all":
        ports = [f"ALL_CAS={partition.membership}"]
    else:
        ports = [f"{guid}={partition.membership}" for guid in _guids(partition.members, subnet)]
        if partition.limited is not None:
            also = _guids(partition.limited, subnet)
            ports += [f"{guid}=limited" for guid in also if f"{guid}={partition.membership}" not in ports]
    return f"{', '.join(head)} : {', '.join(ports)} ;"


def _guids(nodes: str, subnet: Subnet) -> list[str]:
    return [guid for name in expand(nodes) for guid in subnet.guids.get(name, ())]


def service(instance: Instance) -> str:
    """Its unit's text."""
    return render("opensm/opensm.service.j2", instance=instance, start=START, conf=conf_path(instance))
