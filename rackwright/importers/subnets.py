"""The network that addresses are in: as the source has it, or an example that fits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

_WIDEST, _NARROWEST = 8, 30


@dataclass(frozen=True)
class Subnet:
    """A network that the file declares, or is to declare."""

    cidr: IPv4Network | None
    """None: not in the source."""
    example: IPv4Network
    """What fits the addresses, where `cidr` is None."""
    why: str = ""
    """Why `cidr` is None."""

    @property
    def network(self) -> IPv4Network:
        """What is declared, or the example."""
        return self.cidr or self.example


def subnet_of(addresses: Iterable[IPv4Interface], fallback: str) -> Subnet:
    """The network of addresses; prefix lengths of 31 and 32 give none.

    `fallback`: the example without addresses.
    """
    every = list(addresses)
    stated = Counter(one.network for one in every if _WIDEST <= one.network.prefixlen <= _NARROWEST)
    if not stated:
        example = _around([one.ip for one in every]) if every else IPv4Network(fallback)
        return Subnet(
            None,
            example or _around([every[0].ip]) or IPv4Network(fallback),
            "the source has no prefix length",
        )
    if len(stated) == 1:
        return Subnet(next(iter(stated)), next(iter(stated)))
    joined = _around([end for network in stated for end in (network[0], network[-1])])
    if joined is None:  # e.g. one public address among private ones: the most frequent network is the file's
        most = stated.most_common(1)[0][0]
        return Subnet(most, most)
    names = ", ".join(str(network) for network in sorted(stated)[:6])
    return Subnet(None, joined, f"the addresses are in {names}{', ...' if len(stated) > 6 else ''}")


def usable(address: IPv4Interface, subnet: Subnet) -> bool:
    """Whether a node of the network can have the address."""
    network = subnet.network
    return address.ip in network and address.ip not in (network.network_address, network.broadcast_address)


def free_runs(subnet: Subnet, taken: Iterable[IPv4Address]) -> Iterator[IPv4Address]:
    """Addresses for examples: above every one that is taken, each only once."""
    network = subnet.network
    highest = max((int(one) for one in taken if one in network), default=int(network.network_address) + 10)
    while True:
        highest += 1
        yield IPv4Address(min(highest, int(network.broadcast_address) - 1))


def _around(addresses: list[IPv4Address]) -> IPv4Network | None:
    """The smallest network, a /24 at least, that has all as addresses of nodes; None: wider than a /8."""
    for prefix in range(24, _WIDEST - 1, -1):
        network = IPv4Network((addresses[0], prefix), strict=False)
        inner = [one for one in addresses if one in network]
        if len(inner) == len(addresses):
            return network
    return None
