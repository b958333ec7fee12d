"""Paths on the node, the text of its files, and the shell that reads it: shared by the deploy and its checks."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import Hca
from rackwright.model.types import LinkKind
from rackwright.render import render
from rackwright.roles.rdma.options import RdmaOptions

RULES = "/etc/udev/rules.d/60-rdma-persistent-naming.rules"
"""Takes the place of rdma-core's file of the same name: both renaming one device would race for its name."""
MODULES_LOAD = "/etc/modules-load.d/rackwright-rdma.conf"
LIMITS = "/etc/security/limits.d/91-rackwright-rdma.conf"
MANAGER = "/etc/systemd/system.conf.d/91-rackwright-rdma.conf"
UNITS = "/etc/systemd/system"
_SOFT_PREFIX = "rackwright-rdma-soft-"
AS_DECLARED = "as declared"
_NETDEV_LIMIT = 90


def soft_unit(name: str) -> str:
    """The unit that makes a software device."""
    return f"{_SOFT_PREFIX}{name}.service"


def soft_units() -> str:
    """Shell: the paths of all units of software devices that this role has written."""
    return f"ls -d {UNITS}/{_SOFT_PREFIX}*.service 2>/dev/null | sort"


def module(soft: str) -> str:
    """The module of a kind of software device."""
    return {"rxe": "rdma_rxe", "siw": "siw"}[soft]


def modules(cluster: Cluster, node: Node, options: RdmaOptions) -> tuple[str, ...]:
    """What user space needs of the kernel with any driver; those of cards are loaded by udev.

    rdma-core loads them when a device appears (kernel-boot/modules/rdma.conf and infiniband.conf, read 2026-11-25).
    Here they are there before it, so that what starts early finds them.
    """
    devices = options.of_node(node).values()
    kinds = {cluster.networks[options.on(device)].kind for device in devices}
    soft = {module(device.soft) for device in devices if device.soft is not None}
    return (
        "ib_uverbs",
        "rdma_ucm",
        *(("ib_umad",) if LinkKind.INFINIBAND in kinds else ()),
        *sorted(soft),
    )


def rules(hcas: tuple[Hca, ...]) -> str:
    """udev's rules: the declared names, and rdma-core's own for what is not declared."""
    return render("rdma/persistent-naming.rules.j2", hcas=hcas)


def soft_service(name: str, kind: str, netdev: str) -> str:
    """The unit that makes a software device when its interface is there, and again when it comes back."""
    return render(
        "rdma/soft.service.j2",
        name=name,
        kind=kind,
        netdev=netdev,
        module=module(kind),
        device_unit=device_unit(netdev),
        timeout=_NETDEV_LIMIT,
    )


def device_unit(netdev: str) -> str:
    """systemd's name of an interface, as `systemd-escape --path` writes it."""
    escaped = "".join(char if char.isalnum() or char in "_:." else f"\\x{ord(char):02x}" for char in netdev)
    return f"sys-subsystem-net-devices-{escaped}.device"


def names_read(hcas: tuple[Hca, ...]) -> str:
    """Shell that prints `as declared`, or a line `DECLARED: is CALLED at PCI` for each with another name.

    A device that is missing has no name to compare: the check of devices names it.
    """
    pairs = {hca.name: hca.pci for hca in hcas if hca.pci is not None}
    return render("rdma/names.sh.j2", pairs=pairs, rename=False)


def names_write(hcas: tuple[Hca, ...]) -> str:
    """Shell that gives each device its name; one that has another device's name is renamed first."""
    pairs = {hca.name: hca.pci for hca in hcas if hca.pci is not None}
    return render("rdma/names.sh.j2", pairs=pairs, rename=True)


def there(netdev: str) -> str:
    """Shell that succeeds where an interface exists."""
    return f"[ -e /sys/class/net/{quote(netdev)} ]"


def soft_read(name: str) -> str:
    """Shell that prints the interface of a device, as rdma link reports it."""
    return rf"rdma link show {quote(name)}/1 | sed -n 's/.* netdev \([^ ]*\).*/\1/p'"


def limits() -> Mapping[str, str]:
    """Files that lift the limit of locked memory, by path; where no other role does."""
    return {LIMITS: render("rdma/limits.conf.j2"), MANAGER: render("rdma/system.conf.j2")}


def link_type_parameter(pci: str) -> str:
    """mstconfig's parameter: a card's ports are its functions."""
    return f"LINK_TYPE_P{int(pci[-1]) + 1}"


def link_type(kind: LinkKind) -> tuple[str, str, str]:
    """(value that mstconfig sets, what it prints, what sysfs calls it)."""
    return ("1", "IB(1)", "InfiniBand") if kind is LinkKind.INFINIBAND else ("2", "ETH(2)", "Ethernet")


def link_layer_read(pci: str | None) -> str:
    """Shell that prints the link layer of the device at a PCI address: `InfiniBand` or `Ethernet`."""
    return (
        "for path in /sys/class/infiniband/*; do at=$(readlink -f $path/device); "
        f'[ "${{at##*/}}" != {pci} ] || cat $path/ports/1/link_layer; done'
    )
