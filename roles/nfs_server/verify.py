"""Checks of the nfs_server role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access
from rackwright.claims.nfs import SERVER_OF_KERBEROS, daemons_run, secured
from rackwright.claims.packages import installed
from rackwright.claims.units import is_masked, runs
from rackwright.facts.mounts import MountTable
from rackwright.model.mount_names import unit_name
from rackwright.model.platforms import Capability
from rackwright.mounts import live
from rackwright.osfamily.names import names
from rackwright.roles.nfs_server import texts
from rackwright.roles.nfs_server.options import NfsServerOptions, filesystem_below
from rackwright.roles.nfs_server.problems import PORT

Context = CheckContext[NfsServerOptions]
_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})
_KERNEL = "/proc/fs/nfsd"


def _runs(context: Context) -> str:
    server = names(context.node.family, "nfs-server")
    there = installed(context, server.packages)
    active = [runs(context, unit) for unit in (server.unit or "", "nfs-mountd.service", "nfsdcld.service")]
    return f"{there}; {', '.join(active)}"


def _files(context: Context) -> str:
    return as_rendered(context, texts.files(context.cluster, context.node, context.options))


def _masked(context: Context) -> str:
    for unit in texts.MASKED:
        is_masked(context, unit, why="NFSv4 does not need it, and it listens on every address")
    return ", ".join(texts.MASKED)


def _threads(context: Context) -> str:
    printed = context.output("cat %s", f"{_KERNEL}/threads").strip()
    if not printed.isdecimal():
        raise Undetermined(f"the kernel prints {printed[:40]!r} for the number of threads")
    wanted = context.options.thread_count(context.node)
    if int(printed) != wanted:
        fail(f"the server has {printed} threads, not {wanted}")
    return f"{printed} threads"


def _versions(context: Context) -> str:
    """`-3 +4 -4.0 +4.1 +4.2`; a version that the kernel was built without is not in the list.

    4.0 is implied by `+4` where it is not listed (nfsd_print_version_support, fs/nfsd/nfsctl.c of Linux).
    """
    printed = context.output("cat %s", f"{_KERNEL}/versions").split()
    found = {word[1:]: word[0] == "+" for word in printed if word[0] in "+-"}
    if "4" not in found or len(found) != len(printed):
        raise Undetermined(f"the kernel prints {' '.join(printed)[:80]!r} for its versions")
    found.setdefault("4.0", found["4"])
    wrong = [
        f"{version} is {'off' if on else 'on'}"
        for version, on in texts.VERSIONS.items()
        if found.get(version, False) != on
    ]
    if wrong:
        fail(f"NFS version {', '.join(wrong)}")
    return " ".join(printed)


def _exports(context: Context) -> str:
    """What the kernel is answered; `no_root_squash` where it is declared alone."""
    there = set(context.output("sh -c %s", texts.read_exports()).splitlines())
    wanted = set(texts.in_force(context.cluster, context.node, context.options).splitlines())
    wrong = [f"{line} is not exported" for line in sorted(wanted - there)]
    wrong += [f"the export {line} is not declared" for line in sorted(there - wanted)]
    if wrong:
        fail("; ".join(wrong))
    return "; ".join(sorted(there))


def _folders(context: Context) -> str:
    """Each is on its declared filesystem, with its mode; what the server uses itself is mounted."""
    options, node, found = context.options, context.node, []
    exported = options.exported(node)
    below = {one.name: filesystem_below(node, one.export or "") for one in exported}
    paths = tuple(sorted({path for path in below.values() if path is not None}))
    table = context.fact(MountTable, paths)
    for one in exported:
        mounted = below[one.name]
        if mounted is not None and live(table.get(mounted, ())) is None:
            fail(f"{mounted} is not mounted: {one.export} is on the system disk")
        if mounted != one.export:
            has_access(context, one.export or "", options.mode(one).lstrip("0"), "root", "root")
        found.append(f"{one.export} on {mounted or 'the system disk'}")
    for one in options.bound(node):
        runs(context, unit_name(one.path))
        first, second = context.output("stat -c %s %s %s", "%d:%i", one.export or "", one.path).split()
        if first != second:
            fail(f"{one.path} is not {one.export}")
        found.append(f"{one.path} is {one.export}")
    return ", ".join(found)


def _listens(context: Context) -> str:
    """TCP on every address: exports and the firewall decide who is let in."""
    printed = context.output("ss -Hlnt %s", f"sport = :{PORT}")
    if not printed.strip():
        fail(f"nothing listens on port {PORT}")
    udp = context.output("ss -Hlnu %s", f"sport = :{PORT}")
    if udp.strip():
        fail(f"UDP port {PORT} is open")
    rdma = [line for line in context.output("cat %s", f"{_KERNEL}/portlist").splitlines() if "rdma" in line]
    wanted = any(one.rdma for one in context.options.exported(context.node))
    if wanted and not rdma:
        fail("the server does not listen for RDMA")
    if rdma and not wanted:
        fail(f"the server listens for RDMA ({rdma[0]}), but no filesystem declares RDMA")
    return f"TCP port {PORT}{', ' + rdma[0] if rdma else ''}"


def _daemons(context: Context) -> str:
    return daemons_run(context, context.options.exported(context.node), SERVER_OF_KERBEROS)


CHECKS = (
    Check("the NFS server is installed and running", _runs, needs=_NEEDS, settle_seconds=10),
    Check("the NFS server's files are as declared", _files),
    Check("rpcbind and rpc.statd are masked", _masked),
    Check("the NFS server has its declared threads", _threads, needs=_NEEDS),
    Check("only NFS 4.1 and 4.2 are served", _versions, needs=_NEEDS),
    Check("only declared folders are exported, as declared", _exports, needs=_NEEDS),
    Check("exported folders are on their declared filesystems", _folders, needs=_NEEDS),
    Check("the NFS server listens on its declared addresses", _listens, needs=_NEEDS),
    Check(
        "the daemons for the declared security are running",
        _daemons,
        applies=lambda node, options: secured(options.exported(node)),
        needs=_NEEDS,
    ),
)
