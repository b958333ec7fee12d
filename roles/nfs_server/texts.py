"""Files of an NFS server, and the shell that reads back what it exports."""

from __future__ import annotations

from shlex import quote
from uuid import UUID, uuid5

from rackwright.model.cluster import Cluster, Node
from rackwright.model.mount_names import unit_name
from rackwright.model.storage import Filesystem
from rackwright.render import render
from rackwright.roles.nfs_server.options import DROP_IN, EXPORTS, NfsServerOptions, filesystem_below

CONF = "/etc/nfs.conf.d/rackwright.conf"
"""nfs.conf(5) of nfs-utils 2.6.2: its values win over /etc/nfs.conf."""
ETAB = "/var/lib/nfs/etab"
"""What is exported, as rpc.mountd answers the kernel (exportfs(8))."""
UNITS = "/etc/systemd/system"
MASKED = ("rpcbind.socket", "rpcbind.service", "rpc-statd.service")
"""nfs.systemd(7), MASKING UNWANTED SERVICES (nfs-utils 2.6.2): NFSv4 needs none of them."""
VERSIONS = {"3": False, "4": True, "4.0": False, "4.1": True, "4.2": True}
"""4.0 makes the server connect to a port of each client; 3 needs rpcbind, rpc.statd and further ports."""
_NAMESPACE = UUID("f4f7a6a4-4a0e-5b57-9d2b-6c7f2c9e0d31")
_KEYS = """\
ro rw sync async crossmnt insecure root_squash no_root_squash all_squash subtree_check no_subtree_check fsid mountpoint \
anonuid anongid sec xprtsec"""
"""Options of an export that are compared, in the order in which they are printed."""
_USUAL = "anonuid=65534 anongid=65534"
"""Written for every export (putexportent, support/nfs/exports.c of nfs-utils), and not printed."""
_READ = """\
awk -v keys={keys} -v usual={usual} '
BEGIN {{ count = split(keys, key, " ") }}
{{
  open = index($2, "("); last = split(substr($2, open + 1, length($2) - open - 1), words, ",")
  split("", there)
  for (i = 1; i <= last; i++) if (!index(" " usual " ", " " words[i] " ")) {{
    name = words[i]; sub(/=.*/, "", name)
    # each group of sec= has its own flags
    if (!(name in there)) there[name] = words[i]
    else if (there[name] != words[i]) there[name] = there[name] " " words[i]
  }}
  line = $1 " " substr($2, 1, open - 1)
  for (i = 1; i <= count; i++) if (key[i] in there) line = line " " there[key[i]]
  print line
}}' {etab} | LC_ALL=C sort"""


def conf(node: Node, options: NfsServerOptions) -> str:
    """The server's settings."""
    rdma = any(one.rdma for one in options.exported(node))
    threads = options.thread_count(node)
    return render("nfs_server/nfs.conf.j2", o=options, threads=threads, versions=VERSIONS, rdma=rdma)


def exports(cluster: Cluster, node: Node, options: NfsServerOptions) -> str:
    """One line for each filesystem: single nodes first, then its network."""
    lines = []
    for one in options.exported(node):
        clients = [f"{client}({','.join(given)})" for client, given in _clients(cluster, node, options, one)]
        lines.append(f"{one.export} {' '.join(clients)}")
    return render("nfs_server/exports.j2", lines=lines)


def _clients(
    cluster: Cluster, node: Node, options: NfsServerOptions, one: Filesystem
) -> list[tuple[str, tuple[str, ...]]]:
    """Each client that a filesystem is exported to, with its options in the order of _KEYS."""
    below = filesystem_below(node, one.export or "")
    declared = dict(option.partition("=")[::2] for option in one.options)
    rest = [f"fsid={uuid5(_NAMESPACE, f'{cluster.name} {one.name}')}"]
    rest += [f"mountpoint={below}"] if below is not None else []
    rest.append(f"sec={declared.get('sec', 'sys')}")
    if "xprtsec" in declared:
        rest.append(f"xprtsec={declared['xprtsec']}")
    access = ["ro" if one.read_only else "rw", "sync"]
    # without it nfsd refuses a client's port above 1023
    access += ["insecure"] if "noresvport" in declared else []
    roots = [cluster.by_name[name].address_on(one.network) for name in options.roots(one)]
    return [
        (client, (*access, squash, "no_subtree_check", *rest))
        for client, squash in (
            *((str(address), "no_root_squash") for address in roots),
            (str(cluster.networks[one.network].cidr), "root_squash"),
        )
    ]


def in_force(cluster: Cluster, node: Node, options: NfsServerOptions) -> str:
    """What READ prints where the declared exports are in force, and no others."""
    return "\n".join(
        sorted(
            f"{one.export} {client} {' '.join(given)}"
            for one in options.exported(node)
            for client, given in _clients(cluster, node, options, one)
        )
    )


def read_exports() -> str:
    """Shell that prints a line for each folder and client that is exported; fails where it cannot know."""
    return f"command -v awk >/dev/null && test -r {ETAB} || exit 3\n" + _READ.format(
        keys=quote(_KEYS), usual=quote(_USUAL), etab=ETAB
    )


def read_declared(paths: tuple[str, ...]) -> str:
    """The same, of these folders alone."""
    wanted = " ".join(paths)
    return f'{read_exports()} | awk -v paths={quote(wanted)} \'index(" " paths " ", " " $1 " ")\''


def drop_in(node: Node, options: NfsServerOptions) -> str:
    """The server starts after the mounts of what it exports; it requires only those that no `mountpoint=` guards."""
    below = {one.export or "": filesystem_below(node, one.export or "") for one in options.exported(node)}
    guarded = dict.fromkeys(unit_name(mounted) for mounted in below.values() if mounted is not None)
    unguarded = [folder for folder, mounted in below.items() if mounted is None]
    return render("nfs_server/drop_in.j2", mounts=tuple(guarded), folders=unguarded)


def bind_units(node: Node, options: NfsServerOptions) -> dict[str, str]:
    """Mount units of what the server uses itself, by path."""
    return {
        f"{UNITS}/{unit_name(one.path)}": render("nfs_server/bind.mount.j2", fs=one)
        for one in options.bound(node)
    }


def files(cluster: Cluster, node: Node, options: NfsServerOptions) -> dict[str, str | None]:
    """Path to content."""
    return {
        CONF: conf(node, options),
        DROP_IN: drop_in(node, options),
        EXPORTS: exports(cluster, node, options),
        **bind_units(node, options),
    }
