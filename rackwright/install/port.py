"""The management port of an installed system, and its systemd-networkd files. Ports are named only by MAC address."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from rackwright.model.cluster import Network
from rackwright.render import render

BOND = "bond0"
_DEFAULT_MTU = 1500


@dataclass(frozen=True)
class Port:
    """The management port of a node."""

    macs: tuple[str, ...]
    """MAC addresses, the declared one first; several form a bond."""
    vlan: int | None
    address: IPv4Address
    network: Network
    nameservers: tuple[IPv4Address, ...]

    @property
    def cidr(self) -> str:
        """Address with prefix length."""
        return f"{self.address}/{self.network.cidr.prefixlen}"

    @property
    def mtu(self) -> int | None:
        """None: the default."""
        return None if self.network.mtu == _DEFAULT_MTU else self.network.mtu

    @property
    def bonded(self) -> bool:
        """Whether several ports form a bond."""
        return len(self.macs) > 1


def networkd(port: Port) -> dict[str, str]:
    """Path to text of systemd-networkd's files."""
    names = [
        *(("10-install-bond.netdev", "10-install-members.network") if port.bonded else ()),
        *(("10-install-vlan.netdev", "10-install-port.network") if port.vlan is not None else ()),
        "20-install.network",
    ]
    return {
        f"/etc/systemd/network/{name}": render(f"install/{name}.j2", port=port, bond=BOND) for name in names
    }
