"""Mount options by kind of filesystem, so that a misspelt one is refused before the first connection.

Sources, read 2026-11-26. NFS was compared with nfs(5) of nfs-utils 2.6.2 (Debian 12), name by name (tested); softerr,
trunkdiscovery, write, alignwrite, xprtsec and fatal_neterrors are of later kernels (fs/nfs/fs_context.c). The others are
from documents that were not at hand in whole and were compared with no client: mount(8), mount.lustre(8), mount.ceph(8),
BeeGFS's client documentation, VAST's "Mount parameters" (vastnfs 4.0.34) and "VAST Client NFS Multipathing", WEKA's "Mount
filesystems", mmmount and mmchfs of IBM Storage Scale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rackwright.documents.nearest import suggest
from rackwright.model.storage import FilesystemKind

OPTION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.,:@/~+-]+)?")
"""What needs quoting in no unit file and no shell."""


def _words(text: str) -> frozenset[str]:
    """Names of options; one that ends in `=` takes a value."""
    return frozenset(text.split())


_GENERAL = _words(
    """
    async atime noatime defaults dev nodev diratime nodiratime dirsync exec noexec iversion noiversion relatime
    norelatime strictatime nostrictatime lazytime nolazytime suid nosuid sync rw nosymfollow context= fscontext=
    defcontext= rootcontext=
    """
)
_NFS = _words(
    """
    soft softerr hard softreval nosoftreval timeo= retrans= rsize= wsize= ac noac acregmin= acregmax= acdirmin=
    acdirmax= actimeo= bg fg nconnect= max_connect= rdirplus nordirplus rdirplus= retry= sec= sharecache
    nosharecache resvport noresvport lookupcache= fsc nofsc fsc= port= mountport= mountproto= mountvers= namlen=
    clientaddr= cto nocto lock nolock local_lock= acl noacl vers= nfsvers= minorversion= migration nomigration
    xprtsec= trunkdiscovery notrunkdiscovery write= fatal_neterrors= addr= proto= mountaddr= mounthost= alignwrite
    noalignwrite
    """
)
_VAST = _NFS | _words(
    """
    remoteports= localports= spread_reads nospread_reads spread_writes nospread_writes noidlexprt idlexprt
    sticky_multipath pconnect= mdconnect= noextend
    """
)
_LUSTRE = _words(
    """
    flock localflock noflock user_xattr nouser_xattr lazystatfs nolazystatfs user_fid2path nouser_fid2path retry=
    skpath= network= always_ping checksum nochecksum lruresize nolruresize 32bitapi no32bitapi verbose noverbose
    encrypt noencrypt test_dummy_encryption= foreign= statfs_project nostatfs_project
    """
)
_BEEGFS = _words(
    """
    cfgFile= logLevel= connAuthFile= sysMgmtdHost= connClientPort= connMgmtdPort=
    """
)
_WEKA = _words(
    """
    net= core= num_cores= memory_mb= hugepages_mb= bandwidth_mbps= traces_capacity_mb= readcache writecache
    forcedirect coherent inode_bits= mgmt_ip= container_name= remove_after_secs= dedicated_mode=
    qos_max_throughput_mbps= qos_preferred_throughput_mbps= qos_max_ops= obs_direct acl noacl sync_on_close
    rdma_anyway rdma_writes_disabled dpdk_base_memory_mb= reserve_1g_hugepages= verbose auth_token_path=
    relatime_threshold= dentry_max_age_positive= dentry_max_age_negative= readahead_kb= fetch_kb= join_timeout=
    nonrdma
    """
)
_CEPHFS = _words(
    """
    mon_addr= name= secretfile= fs= mds_namespace= conf= fsid= mount_timeout= ms_mode= ip= wsize= rsize= rasize=
    crush_location= read_from_replica= rbytes norbytes dcache nodcache asyncreaddir noasyncreaddir dirstat nodirstat
    crc nocrc share noshare snapdirname= wsync nowsync caps_wanted_delay_min= caps_wanted_delay_max= caps_max=
    cap_release_safety= readdir_max_entries= readdir_max_bytes= write_congestion_kb= recover_session= acl noacl
    sparseread quotadf noquotadf copyfrom nocopyfrom require_active_mds norequire_active_mds
    """
)
_GPFS = _words(
    """
    syncnfs nosyncnfs useNSDserver= nfssync quota userquota groupquota filesetquota noquota
    """
)
_OF: Mapping[FilesystemKind, frozenset[str]] = {
    FilesystemKind.NFS: _NFS,
    FilesystemKind.VAST: _VAST,
    FilesystemKind.LUSTRE: _LUSTRE,
    FilesystemKind.BEEGFS: _BEEGFS,
    FilesystemKind.WEKA: _WEKA,
    FilesystemKind.CEPHFS: _CEPHFS,
    FilesystemKind.GPFS: _GPFS,
    FilesystemKind.LOCAL: frozenset(),
}
_EXCLUSIVE = (
    frozenset({"hard", "soft", "softerr"}),
    frozenset({"vers", "nfsvers"}),
    frozenset({"flock", "localflock", "noflock"}),
    frozenset({"readcache", "writecache", "forcedirect", "coherent"}),
)
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "nconnect": (1, 16),  # NFS_MAX_CONNECTIONS of Linux, nfs(5)
    "pconnect": (1, 64),
    "mdconnect": (1, 64),
    "max_connect": (1, 16),
    "timeo": (1, 2**31 - 1),
    "retrans": (0, 2**31 - 1),
    "rsize": (1024, 2**26),
    "wsize": (1024, 2**26),
    "actimeo": (0, 2**31 - 1),
    "port": (1, 65535),
}
_ELSEWHERE: Mapping[str, str] = {
    "ro": "write `read_only: true`",
    "rdma": "write `rdma: true`",
    "_netdev": "the mount unit waits for the network already",
    "nofail": "a mount unit stops no boot",
    "auto": "write `automount: true`",
    "noauto": "write `automount: true`",
    "user": "root alone mounts what is declared",
    "tcp": "TCP is what NFS uses; write `rdma: true` for RDMA",
    "udp": "NFSv4 has no UDP",
    "addr": "name the server under `servers`",
    "users": "root alone mounts what is declared",
    "secret": "name the secret in the role's options; it does not belong into the cluster file",
    "bg": "write `automount: true`: the first access mounts it, and a server that is away stops no boot",
    "usrquota": "write `quota:`",
    "prjquota": "declare it for the filesystem of `storage_layout`",
}


def option_mistakes(kind: FilesystemKind, options: tuple[str, ...]) -> Iterator[tuple[int, str, str | None]]:
    """(index, sentence, hint) of each option that this kind does not know, contradicts another, or is set by a key."""
    seen: dict[str, int] = {}
    for index, option in enumerate(options):
        name, _, value = option.partition("=")
        if not OPTION.fullmatch(option):
            yield index, f"{option!r} is not a mount option.", "e.g. `nconnect=8`; each in an item of its own"
        elif name.startswith("x-systemd.") or name in _ELSEWHERE or option == "proto=rdma":
            hint = _ELSEWHERE.get(name, "write `rdma: true`" if name == "proto" else None)
            systemd = "a mount unit does not read what fstab does: use the keys of the filesystem"
            yield index, f"`{name}` cannot be set by an option.", hint or systemd
        elif name in seen:
            yield index, f"`{name}` is set twice.", None
        elif (wrong := _unknown(kind, name, value, has_value="=" in option)) is not None:
            yield index, *wrong
        elif (other := _contradicted(name, seen)) is not None:
            yield index, f"`{name}` contradicts `{other}`.", "keep one of them"
        seen.setdefault(name, index)


def _unknown(
    kind: FilesystemKind, name: str, value: str, *, has_value: bool
) -> tuple[str, str | None] | None:
    if kind is FilesystemKind.LOCAL:
        return (
            "A local filesystem has no options here.",
            "declare `mount_options` of the role storage_layout",
        )
    known = _GENERAL | _OF[kind]
    with_value, flag = f"{name}=" in known, name in known
    if not with_value and not flag:
        names = sorted({one.removesuffix("=") for one in known})
        return f"{kind.value} has no mount option `{name}`.", suggest(name, names, what="its options")
    if has_value and not with_value:
        return f"`{name}` takes no value.", f"write `{name}`"
    if not has_value and not flag:
        return f"`{name}` needs a value.", f"write `{name}=...`"
    if has_value and name in _NUMBERS:
        least, most = _NUMBERS[name]
        if kind is FilesystemKind.VAST and name == "nconnect":
            most = 64  # VAST's examples have up to 34; a limit is nowhere published
        if not value.isdecimal() or not least <= int(value) <= most:
            return f"`{name}` is a number from {least} to {most}.", None
    return None


def _contradicted(name: str, seen: Mapping[str, int]) -> str | None:
    for group in _EXCLUSIVE:
        if name in group:
            return next((other for other in seen if other in group), None)
    opposite = name.removeprefix("no") if name.startswith("no") else f"no{name}"
    return opposite if opposite in seen else None
