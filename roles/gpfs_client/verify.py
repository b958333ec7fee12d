"""Checks of the gpfs_client role: packages, kernel layer, membership, the daemon, and each mount."""

from __future__ import annotations

from rackwright.claims import modules, mounts
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.packages import held_at
from rackwright.claims.units import starts_at_boot
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.mount_roles import declared_kernel
from rackwright.roles.gpfs_client import readings
from rackwright.roles.gpfs_client.options import UNIT, GpfsClientOptions

Context = CheckContext[GpfsClientOptions]
_MIB = 1024 * 1024


def _names_cluster(node: Node, options: GpfsClientOptions) -> bool:
    return options.cluster_name is not None


def _has_pagepool(node: Node, options: GpfsClientOptions) -> bool:
    return options.pagepool_mib is not None


def _asked(context: Context, command: str) -> str:
    """What a command prints; a node that is not a member fails by name."""
    result = context.host.run(command)
    if readings.NO_MEMBER in result.stdout + result.stderr:
        fail(
            f"{context.node.name} is not a member of a Storage Scale cluster: run `mmaddnode` on one of the cluster's nodes"
        )
    if result.rc in (126, 127):
        raise Undetermined(f"cannot run `{command.split()[2]}`: not found")
    if result.rc != 0:
        raise Undetermined(
            f"`{command}` exited {result.rc}: {(result.stderr or result.stdout).strip()[:120]}"
        )
    return str(result.stdout)


def _installed(context: Context) -> str:
    return held_at(context, context.options.versions())


def _built(context: Context) -> str:
    evidence = modules.is_built(context, "mmfs26")
    of = readings.kernel_word(declared_kernel(context.cluster, context.node))
    state = context.output("sh -c %s", f"({readings.layer(of)}) 2>/dev/null").strip()
    if state == "older":
        fail(f"{evidence} is older than its sources, gpfs.gpl: rebuild it with mmbuildgpl")
    if state != "built":
        raise Undetermined(f"the age of the kernel layer is unknown: {state[:80]!r}")
    return evidence


def _loaded(context: Context) -> str:
    return modules.is_loaded(context, "mmfs26")


def _at_boot(context: Context) -> str:
    return starts_at_boot(context, UNIT, "the node stays without its filesystems after a reboot")


def _daemon(context: Context) -> str:
    (row, *_) = readings.rows(_asked(context, readings.STATE), "")
    state = readings.field(row, "state")
    if state == "unknown":
        raise Undetermined("mmgetstate does not report the daemon's state: see `mmgetstate -v`")
    if state != "active":
        fail(f"the daemon is {state}, not active: see `mmgetstate` and /var/adm/ras/mmfs.log.latest")
    return f"{readings.field(row, 'nodeName')} is active"


def _member(context: Context) -> str:
    (row, *_) = readings.rows(_asked(context, readings.CLUSTER), "clusterSummary")
    name = readings.field(row, "clusterName")
    if name != context.options.cluster_name:
        fail(f"the node belongs to the Storage Scale cluster {name}, not {context.options.cluster_name}")
    return name


def _pagepool(context: Context) -> str:
    wanted = context.options.pagepool_mib or 0
    for row in readings.rows(_asked(context, readings.CONFIG), "config"):
        if readings.field(row, "name") == "pagepool":
            value = readings.field(row, "value")
            if not value.isdecimal():
                raise Undetermined(f"pagepool is {value!r}")
            if int(value) != wanted * _MIB:
                fail(f"pagepool is {int(value) // _MIB} MiB, not {wanted}: jobs get the rest of the memory")
            return f"{wanted} MiB"
    raise Undetermined("mmdiag names no pagepool")


_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})
CHECKS: tuple[Check, ...] = (
    Check("Storage Scale is installed as declared and held", _installed, needs=_NEEDS),
    Check("Storage Scale's kernel layer is built for the declared kernel", _built, needs=_NEEDS),
    Check("Storage Scale starts at boot", _at_boot, needs=_NEEDS),
    Check("Storage Scale's daemon is active", _daemon, needs=_NEEDS, settle_seconds=60, timeout_seconds=90),
    Check(
        "the node belongs to the declared Storage Scale cluster",
        _member,
        needs=_NEEDS,
        applies=_names_cluster,
    ),
    Check("the page pool is as declared", _pagepool, needs=_NEEDS, applies=_has_pagepool),
    *mounts.checks("GPFS"),
    Check("Storage Scale's kernel layer is loaded", _loaded, needs=_NEEDS),
)
