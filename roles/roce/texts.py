"""Files of the roce role, as text: shared by the deploy and its checks."""

from __future__ import annotations

import json

from rackwright.model.cluster import Cluster, Node
from rackwright.node_programs import one_text
from rackwright.render import render
from rackwright.roles.roce import paths
from rackwright.roles.roce.options import RoceOptions


def program() -> str:
    """The program on the node."""
    return one_text("rackwright.roles.roce.node")


def wanted(options: RoceOptions) -> dict[str, str]:
    """What a NIC is to have, in the order in which it is set: trust before the map, the map before PFC, PFC before buffers."""
    maps = {options.dscp: options.priority, options.cnp_dscp: options.cnp_priority}
    found = {
        "dcbx": "host",
        "trust": "dscp",
        **{f"dscp.{dscp}": str(priority) for dscp, priority in maps.items()},
        "pfc": str(options.priority) if options.pfc else "",
        "cnp_dscp": str(options.cnp_dscp),
        "cnp_priority": str(options.cnp_priority),
        "default_tos": str(options.traffic_class),
    }
    if options.buffers is not None:
        found["prio_buffer"] = ",".join(map(str, options.buffers.prio_buffer))
        if options.buffers.buffer_size is not None:
            found["buffer_size"] = ",".join(map(str, options.buffers.buffer_size))
    if options.backend == "mlnx_qos":
        state = "1" if options.congestion_control else "0"
        found |= {"np": state, "rp": state, "traffic_class": str(options.traffic_class)}
    return found


def settings(cluster: Cluster, node: Node, options: RoceOptions) -> str:
    """Settings of the program on the node."""
    devices = {
        rail.hca.name: {
            "netdev": rail.hca.netdev,
            "port": rail.hca.port,
            "priority": options.priority,
            "wanted": wanted(options),
        }
        for rail in options.cards(cluster, node)
    }
    whole = {"backend": options.backend, "devices": devices}
    return json.dumps(whole, indent=2) + "\n"


def unit() -> str:
    """The unit that sets the NICs at boot."""
    return render("roce/roce.service.j2", run=paths.RUN, program=paths.PROGRAM, settings=paths.SETTINGS)


def sysctls(cluster: Cluster, node: Node, options: RoceOptions) -> dict[str, str]:
    """ARP and return paths of the rails' interfaces, where the node has several rails."""
    rails = options.rails(cluster, node)
    if not options.strict_arp or len(rails) < 2:
        return {}
    values = {"arp_ignore": "1", "arp_announce": "2", "rp_filter": "2"}
    return {
        f"net/ipv4/conf/{rail.interface}/{key}": value
        for rail in rails
        if rail.interface is not None
        for key, value in values.items()
    }


def sysctl_file(values: dict[str, str]) -> str:
    """The file that makes them last."""
    return render("roce/sysctl.conf.j2", values=values)


def files(cluster: Cluster, node: Node, options: RoceOptions) -> dict[str, str]:
    """Every file of the role on this node, by path, in the order in which they are written."""
    found: dict[str, str] = {}
    if options.cards(cluster, node):
        found[paths.PROGRAM] = program()
        found[paths.SETTINGS] = settings(cluster, node, options)
        found[paths.UNIT_PATH] = unit()
    if values := sysctls(cluster, node, options):
        found[paths.SYSCTLS] = sysctl_file(values)
    return found
