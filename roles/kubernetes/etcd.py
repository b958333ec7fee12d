"""etcd's snapshots and their restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.kubernetes.commands import KUBECTL
from rackwright.model.backups import BackupPart
from rackwright.render import render

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

SNAPSHOT = "/usr/local/sbin/rackwright-etcd-snapshot"
RESTORE = "/usr/local/sbin/rackwright-etcd-restore"
SERVICE = "rackwright-etcd-snapshot.service"
TIMER = "rackwright-etcd-snapshot.timer"
_UNITS = "/etc/systemd/system"
_PKI = "/etc/kubernetes/pki/etcd"
ETCDCTL = (
    f"ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert={_PKI}/ca.crt "
    f"--cert={_PKI}/healthcheck-client.crt --key={_PKI}/healthcheck-client.key"
)
_OBJECTS = f"""\
set -eu
{KUBECTL} get pods,deployments,jobs --all-namespaces --request-timeout=20s \\
    --no-headers -o custom-columns=NS:.metadata.namespace |
    grep -vxE 'kube-system|rackwright.*' | sort | uniq -c | sed 's/^ *\\([0-9]*\\) /\\1 objects in /'
"""


def files(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, str]:
    """Programs and units by path."""
    given = options.snapshots
    address = cluster.management_address(node)
    return {
        SNAPSHOT: render(
            "kubernetes/etcd-snapshot.sh.j2", etcdctl=ETCDCTL, folder=given.folder, keep=given.keep
        ),
        RESTORE: render(
            "kubernetes/etcd-restore.sh.j2",
            name=node.name,
            address=address,
            others=[
                one.name
                for one in cluster.running("kubernetes")
                if options.runs_control_plane(one) and one.name != node.name
            ],
        ),
        f"{_UNITS}/{SERVICE}": render(
            "kubernetes/oneshot.service.j2", description="Snapshot of etcd", program=SNAPSHOT
        ),
        f"{_UNITS}/{TIMER}": render(
            "kubernetes/timer.j2", description="Snapshots of etcd", calendar=None, hours=given.every_hours
        ),
    }


def parts_of(options: KubernetesOptions, node: Node) -> tuple[BackupPart, ...]:
    """One snapshot, of the primary head; its restore makes a cluster of one member, which others join again."""
    if not (node.primary and options.runs_control_plane(node)):
        return ()
    dump = f"{SNAPSHOT} --print"
    return (
        BackupPart(
            name="etcd",
            about="etcd of Kubernetes",
            dump=dump,
            load=f"{RESTORE} -",
            ready=f"{ETCDCTL} endpoint health >/dev/null 2>&1 || test -d /var/lib/etcd/member",
        ),
    )


def probes_of(options: KubernetesOptions, node: Node) -> dict[str, str]:
    """What users have in the cluster."""
    if not (node.primary and options.runs_control_plane(node)):
        return {}
    return {"objects of users in Kubernetes": _OBJECTS}
