"""The out-of-band network of a rack: a bridge with the rack's own address, and the BMCs behind it in a namespace.

The BMCs have a namespace so that no node reaches one: a host answers at each of its addresses, whichever port a
packet came in by, and does not route from one network to the other.
"""

from __future__ import annotations

import json
from ipaddress import IPv4Interface

from rackwright.lab import names
from rackwright.lab.links import TIMEOUT, batch, has_link, make_namespace
from rackwright.lab.process import run
from rackwright.lab.spec import RackSpec

_CABLE, _PORT = "bmcs", "eth0"
_NO_ROUTING = "/proc/sys/net/ipv4/ip_forward"


def make(spec: RackSpec) -> None:
    """The BMC network of a rack that has one; addresses of BMCs that left the rack are taken away."""
    if not spec.racked or spec.bmc_bridge is None:
        return
    rack, own = names.namespace(spec.name), names.bmc_namespace(spec.name)
    bridge = names.bridge(str(IPv4Interface(spec.bmc_bridge).network))
    make_namespace(own)
    if not has_link(rack, bridge):
        mac = names.mac(spec.name, "", bridge)
        batch(rack, f"link add {bridge} address {mac} type bridge mcast_snooping 0")
    if not has_link(rack, _CABLE):
        mac = names.mac(spec.name, "", _CABLE)
        batch(rack, f"link add {_CABLE} type veth peer name {_PORT} address {mac} netns {own}")
    batch(
        rack,
        f"link set {bridge} addrgenmode none up",
        f"address replace {spec.bmc_bridge} dev {bridge}",
        f"link set {_CABLE} addrgenmode none master {bridge} up",
    )
    wanted = {f"{one.bmc.address}/{one.bmc.prefix_length}" for one in spec.racked if one.bmc is not None}
    there = _addresses(own)
    batch(
        own,
        "link set lo up",
        f"link set {_PORT} addrgenmode none up",
        *(f"address delete {cidr} dev {_PORT}" for cidr in sorted(there - wanted)),
        *(f"address add {cidr} dev {_PORT}" for cidr in sorted(wanted - there)),
    )
    for namespace in (rack, own):
        run(["ip", "netns", "exec", namespace, "sh", "-c", f"echo 0 >{_NO_ROUTING}"], timeout=TIMEOUT)


def _addresses(namespace: str) -> set[str]:
    listed = json.loads(
        run(["ip", "-n", namespace, "-j", "-4", "address", "show", "dev", _PORT], timeout=TIMEOUT).stdout
    )
    return {f"{entry['local']}/{entry['prefixlen']}" for link in listed for entry in link["addr_info"]}
