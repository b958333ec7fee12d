"""Mount options of NFS by kind and purpose, and which of them the kernel shows. Pure.

Sources, read 2026-11-26: nfs(5) of nfs-utils 2.6.2; fs/nfs/super.c of Linux (nfs_show_mount_options, as it is since
`xprtsec` came with 6.5); of VAST https://vastnfs.vastdata.com/docs/4.0/usage/mount-params.html (4.0.34) and "VAST Client
NFS Multipathing" of kb.vastdata.com.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import AddressValueError, IPv4Address

from rackwright.model.storage import Filesystem, FilesystemKind, FilesystemPurpose

MOST_CONNECTIONS = 16
"""Of one mount: NFS_MAX_CONNECTIONS, nfs(5); vastnfs allows more."""
FIRST_DECIDES = frozenset({"nconnect", "max_connect"})
"""Options in which mounts may differ and still share the connections to a server (nfs_match_client, fs/nfs/client.c of Linux)."""
DECIDED_BY_FIRST = ("nconnect", "max_connect", "noresvport")
"""All that the first mount decides; `noresvport` is shown as it was given, even where the connections differ."""
RDMA_PORT = 20049
"""IANA: nfsrdma; nfs(5), `port=`."""
TIMEO = 600
"""Tenths of a second: 60 s, the kernel's own for TCP and RDMA (NFS_DEF_TCP_TIMEO)."""
_RETRANS = 2
"""The kernel's own (NFS_DEF_TCP_RETRANS)."""
_SOFTERR_RETRANS = 4
"""With `timeo=600` an answer is awaited for timeo x (retrans + 1), five minutes, over TCP (nfs_init_timeout_values and
xprt_adjust_timeout of Linux): longer than a server takes to boot, so that programs survive that, and a shell whose PATH
has a tree of software waits no longer."""
_ATTRIBUTE_SECONDS = 120
"""How long attributes of software that is mounted read-only are cached; Oracle's oci-hpc uses the same for such trees."""
_GROUPS = (
    frozenset({"hard", "soft", "softerr"}),
    frozenset({"vers", "nfsvers", "minorversion"}),
    frozenset({"proto", "tcp", "udp", "rdma"}),
    frozenset({"atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime"}),
    frozenset({"actimeo", "ac", "noac", "acregmin", "acregmax", "acdirmin", "acdirmax"}),
)
"""A declared option takes away those of its group that the role would give."""
_ALWAYS_SHOWN = ("proto", "timeo", "retrans", "xprtsec", "local_lock", "write")
"""With the value that was given. rsize and wsize are not among them: a server may allow less."""
_NEVER_SHOWN = ("xprtsec=none", "write=lazy")
"""The kernel shows these options only with their other values."""
_FLAGS = frozenset(
    (
        *("hard", "soft", "softerr", "softreval", "nocto", "noac", "noacl", "nordirplus", "nosharecache"),
        *("noresvport", "migration", "noalignwrite", "nosuid", "nodev", "noexec", "noatime", "nodiratime"),
        *("relatime", "sync", "dirsync"),
    )
)
"""Shown as they are given."""
_CACHE_DEFAULTS: Mapping[str, int] = {"acregmin": 3, "acregmax": 60, "acdirmin": 30, "acdirmax": 60}
"""Seconds of nfs(5). A value equal to these is not shown."""


def options(fs: Filesystem, connections: int, transfer_kib: int) -> tuple[str, ...]:
    """Options as mount(8) takes them, but for `ro`."""
    given = _by_purpose(fs, connections, transfer_kib)
    for option in fs.options:
        name = option.partition("=")[0]
        given = [one for one in given if not _gives_way(one.partition("=")[0], name)]
        given.append(option)
    return tuple(given)


def _by_purpose(fs: Filesystem, connections: int, transfer_kib: int) -> list[str]:
    size = transfer_kib * 1024
    vast = fs.kind is FilesystemKind.VAST
    # VAST spreads one mount over several servers with NFSv3 and 4.1; 4.1 has locks without rpc.statd
    found = ["vers=4.1" if vast else "vers=4.2", "proto=rdma" if fs.rdma else "proto=tcp"]
    if fs.rdma:
        found.append(f"port={RDMA_PORT}")
    if vast and len(fs.servers) > 1:
        found += [f"remoteports={remote_ports([one.address for one in fs.servers])}"]
        found += ["spread_reads", "spread_writes"]
        # a multiple of the servers, so that each has as many; vastnfs allows more than the kernel's own client
        connections = max(1, connections // len(fs.servers)) * len(fs.servers)
    if vast or not fs.rdma:  # one connection by RDMA fills a port, and older kernels ignore more
        found.append(f"nconnect={connections}")
    found += [f"rsize={size}", f"wsize={size}"]
    # nfs(5): soft mounts may corrupt data silently; a tree that is only read has none to lose
    if fs.purpose is FilesystemPurpose.SOFTWARE and fs.read_only:
        found += ["softerr", f"timeo={TIMEO}", f"retrans={_SOFTERR_RETRANS}"]
        found += ["nocto", f"actimeo={_ATTRIBUTE_SECONDS}"]
    else:
        found += ["hard", f"timeo={TIMEO}", f"retrans={_RETRANS}"]
    found += ["noatime", "nodev"]
    if fs.purpose is not FilesystemPurpose.SOFTWARE:
        found.append("nosuid")
    return found


def _gives_way(name: str, declared: str) -> bool:
    """Whether a declared option of this name replaces one of the role."""
    opposite = declared.removeprefix("no") if declared.startswith("no") else f"no{declared}"
    together = any(name in group and declared in group for group in _GROUPS)
    return name in (declared, opposite) or together


def remote_ports(addresses: Iterable[str]) -> str:
    """VAST's `remoteports`: ranges FIRST-LAST and addresses joined by `~`; names are asked of DNS."""
    try:
        numbers = sorted({int(IPv4Address(one)) for one in addresses})
    except AddressValueError:
        return "dns"
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return "~".join(
        str(IPv4Address(first)) if first == last else f"{IPv4Address(first)}-{IPv4Address(last)}"
        for first, last in ranges
    )


def shown(fs: Filesystem, given: tuple[str, ...]) -> dict[str, str | None]:
    """The options that /proc/self/mountinfo has to show for these, with their values."""
    found: dict[str, str | None] = {}
    for option in given:
        name, _, value = option.partition("=")
        if name in ("vers", "nfsvers") and value != "4":  # 4 is the highest that both sides have
            found["vers"] = value
        elif option in _NEVER_SHOWN:
            continue
        elif option == "sec=none":  # nfs_pseudoflavour_to_name
            found["sec"] = "null"
        elif name in _ALWAYS_SHOWN or (name == "sec" and ":" not in value):
            found[name] = value
        elif name in _FLAGS and not value:
            found[name] = None
        elif name == "port" and value != "2049":
            found["port"] = value
        elif name == "nconnect" and value != "1" and not fs.rdma and fs.kind is FilesystemKind.NFS:
            found["nconnect"] = value
        elif name == "max_connect" and value != "1":
            found["max_connect"] = value
        elif name == "lookupcache" and value != "all":
            found["lookupcache"] = "pos" if value == "positive" else value
        elif name == "actimeo":
            found.update({key: value for key, usual in _CACHE_DEFAULTS.items() if value != str(usual)})
        elif name in _CACHE_DEFAULTS and value != str(_CACHE_DEFAULTS[name]):
            found[name] = value
    return found


def version(given: Mapping[str, str]) -> str:
    """The version to mount with: `vers` and `nfsvers` are synonyms, and 4 alone is taken for the latest, 4.2."""
    found = given.get("vers") or given.get("nfsvers") or "4"
    if found.startswith("4") and "minorversion" in given:
        return f"4.{given['minorversion']}"
    return "4.2" if found == "4" else found


def connection(given: Mapping[str, str]) -> tuple[str, ...]:
    """What mounts of one server that share its connections have in common (nfs_match_client, fs/nfs/client.c of Linux)."""
    protocol = given.get("proto", "tcp").removesuffix("6")
    return version(given), protocol, given.get("port", "2049"), given.get("xprtsec", "none")


def values(given: Iterable[str]) -> dict[str, str]:
    """Value by name; empty of a flag."""
    return {name: value for name, _, value in (one.partition("=") for one in given)}
