"""Files of an NFS client."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.nfs_client.options import NfsClientOptions

IDMAPD = "/etc/idmapd.conf"
MODPROBE = "/etc/modprobe.d/rackwright-nfs-client.conf"
MODULES_LOAD = "/etc/modules-load.d/rackwright-nfs-client.conf"
MASKED = ("rpcbind.socket", "rpcbind.service", "rpc-statd.service")
"""nfs.systemd(7), MASKING UNWANTED SERVICES (nfs-utils 2.6.2): NFSv4 needs none of them."""
PARAMETERS = {
    "sunrpc": "tcp_max_slot_table_entries",
    "nfs": "max_session_slots",
}
"""Parameter by module; both can be written while they are loaded."""


def files(cluster: Cluster, node: Node, options: NfsClientOptions) -> dict[str, str | None]:
    """Path to content; None: the file must not exist."""
    rdma = options.uses_rdma(node)
    anonymous = names(node.family, "nfs-client").settings["nobody_group"]
    return {
        IDMAPD: render("nfs_client/idmapd.conf.j2", domain=cluster.domain, anonymous_group=anonymous),
        MODPROBE: render("nfs_client/modprobe.conf.j2", parameters=PARAMETERS, slots=options.slots),
        MODULES_LOAD: render("nfs_client/modules-load.conf.j2") if rdma else None,
    }


def live(module: str, slots: int) -> str:
    """Shell that prints the parameter of a loaded module; one that is not gets the value of its file when it is loaded."""
    path = f"/sys/module/{module}/parameters/{PARAMETERS[module]}"
    return f"if [ -e /sys/module/{module} ]; then cat {path}; else echo {slots}; fi"
