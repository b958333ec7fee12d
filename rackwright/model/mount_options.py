"""Mount options by kind of filesystem, so that a misspelt option is refused before the first connection.

Sources, read 2026-11-26, by kind:

- nfs: nfs(5) of nfs-utils 2.6.2 (Debian 12), name by name (tested); softerr, trunkdiscovery, write, alignwrite, xprtsec and
  fatal_neterrors exist in later kernels (fs/nfs/fs_context.c).
- vast: "Mount parameters" (vastnfs 4.0.34) and "VAST Client NFS Multipathing"; not compared with a client.
- lustre: Documentation/man8/mount.lustre.8, lustre/llite/llite_lib.c (ll_sbi_flags_name) and lustre/obdclass/obd_mount.c
  of lustre-release, tag 2.15.8 and master of 2026-08-22: the options that the client's code parses.
- beegfs: client_module/source/app/config/MountConfig.c of BeeGFS 7.4.7 and 8.3.1; options of both releases are accepted.
- weka: "Mount filesystems" of WEKA's documentation (its public source on GitHub, releases 4.4 and 5): the vendor's table;
  no client was available.
- cephfs: mount.ceph(8) of Debian 12's ceph-common 16.2.15, from the package, and patches of Linux' fs/ceph/super.c
  on the kernel's mailing list (mon_addr, wsync, pagecache, sparseread); mount.ceph 16 was run with these options.
- gpfs: "GPFS-specific mount options" of Storage Scale's manual, from memory: its text was not available, nor was a
  client. Options missing here are refused, so a site must add them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rackwright.documents.nearest import suggest
from rackwright.model.storage import FilesystemKind

OPTION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.:@/~+-]+)?")
"""Characters that need no quoting in unit files and shells; a comma would start another option."""


def _words(text: str) -> frozenset[str]:
    """Option names; one that ends in `=` takes a value."""
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
    flock localflock noflock nolock user_xattr nouser_xattr lazystatfs nolazystatfs user_fid2path nouser_fid2path retry=
    skpath= network= always_ping checksum nochecksum lruresize nolruresize 32bitapi verbose noverbose encrypt noencrypt
    test_dummy_encryption test_dummy_encryption= foreign_symlink= statfs_project nostatfs_project sync_on_close
    nosync_on_close user_principal= mgssec= mgsname= exclude=
    """
)
_BEEGFS = _words(
    """
    cfgFile= logLevel= logStdFile= sysMgmtdHost= sysMountSanityCheckMS= connAuthFile= connDisableAuthentication=
    connDisableIPv6= connInterfacesList= connMgmtdPort= connMgmtdPortTCP= connMgmtdPortUDP= connPortShift=
    tunePreferredMetaFile= tunePreferredStorageFile= grpid
    """
)
_WEKA = _words(
    """
    readcache writecache forcedirect dentry_max_age_positive= dentry_max_age_negative= inode_bits= verbose quiet acl
    obs_direct relatime_threshold= file_create_mask= directory_create_mask= force_file_mode= force_directory_mode=
    sync_on_close nosync_on_close df_remote memory_mb= num_cores= core= net= mgmt_ip= remove_after_secs=
    traces_capacity_mb= reserve_1g_hugepages= readahead_kb= auth_token_path= dedicated_mode=
    qos_preferred_throughput_mbps= qos_max_throughput_mbps= qos_max_ops= connect_timeout_secs= response_timeout_secs=
    join_timeout_secs= dpdk_base_memory_mb= weka_version= restricted container_name=
    """
)
_CEPHFS = _words(
    """
    mon_addr= name= secretfile= fs= mds_namespace= conf= fsid= mount_timeout= ms_mode= ip= wsize= rsize= rasize=
    crush_location= read_from_replica= rbytes norbytes dcache nodcache asyncreaddir noasyncreaddir dirstat nodirstat
    crc nocrc share noshare snapdirname= wsync nowsync caps_wanted_delay_min= caps_wanted_delay_max= caps_max=
    cap_release_safety= readdir_max_entries= readdir_max_bytes= write_congestion_kb= recover_session= acl noacl
    sparseread nosparseread pagecache nopagecache fsc nofsc fsc= ino32 noino32 poolperm nopoolperm quotadf noquotadf
    copyfrom nocopyfrom require_active_mds norequire_active_mds osdkeepalive= osd_idle_ttl= osd_request_timeout=
    """
)
_GPFS = _words(
    """
    mtime nomtime syncnfs nosyncnfs useNSDserver= dev=
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
    frozenset({"readcache", "writecache", "forcedirect"}),
    frozenset({"atime", "noatime", "relatime", "strictatime"}),
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
_NO_UDP = "NFSv4 does not run over UDP: remove the option"
_ELSEWHERE: Mapping[str, str] = {
    "ro": "write `read_only: true`",
    "rdma": "write `rdma: true`",
    "_netdev": "the mount unit already waits for the network",
    "nofail": "a mount unit never blocks the boot",
    "auto": "write `automount: true`",
    "noauto": "write `automount: true`",
    "user": "only root mounts declared filesystems",
    "tcp": "NFS uses TCP; write `rdma: true` for RDMA",
    "proto=rdma": "write `rdma: true`",
    "proto=rdma6": "write `rdma: true`",
    "udp": _NO_UDP,
    "proto=udp": _NO_UDP,
    "proto=udp6": _NO_UDP,
    "addr": "name the server under `servers`",
    "users": "only root mounts declared filesystems",
    "secret": "name the secret in the role's options; it does not belong in the cluster file",
    "bg": "write `automount: true`: the first access mounts it, and an unavailable server never blocks the boot",
    "usrquota": "write `quota:`",
    "prjquota": "declare it for the filesystem of `storage_layout`",
}


def option_mistakes(kind: FilesystemKind, options: tuple[str, ...]) -> Iterator[tuple[int, str, str | None]]:
    """(index, sentence, hint) of each option that is unknown for this kind, contradicts another, or is set by a key."""
    seen: dict[str, int] = {}
    for index, option in enumerate(options):
        name, _, value = option.partition("=")
        if not OPTION.fullmatch(option):
            yield index, f"{option!r} is not a valid mount option.", "e.g. `nconnect=8`; one item per option"
        elif name.startswith("x-systemd.") or name in _ELSEWHERE or option in _ELSEWHERE:
            systemd = "a mount unit ignores fstab options: use the filesystem's keys"
            hint = _ELSEWHERE.get(name) or _ELSEWHERE.get(option) or systemd
            yield index, f"`{option if option in _ELSEWHERE else name}` cannot be set in `options`.", hint
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
            "A local filesystem cannot set mount options here.",
            "set `mount_options` of the role storage_layout",
        )
    known = _GENERAL | _OF[kind]
    with_value, flag = f"{name}=" in known, name in known
    if not with_value and not flag:
        names = sorted({one.removesuffix("=") for one in known})
        return f"`{name}` is not a mount option of {kind.value}.", suggest(name, names, what="its options")
    if has_value and not with_value:
        return f"`{name}` takes no value.", f"write `{name}`"
    if not has_value and not flag:
        return f"`{name}` needs a value.", f"write `{name}=...`"
    if has_value and name in _NUMBERS:
        least, most = _NUMBERS[name]
        if kind is FilesystemKind.VAST and name == "nconnect":
            most = 64  # VAST's examples go up to 34; no limit is published
        if not value.isdecimal() or not least <= int(value) <= most:
            return f"`{name}` must be a number from {least} to {most}.", None
    return None


def _contradicted(name: str, seen: Mapping[str, int]) -> str | None:
    return next((other for other in seen if other != name and excludes(name, other)), None)


def excludes(option: str, other: str) -> bool:
    """Whether two options exclude each other: duplicates, opposites, or alternatives."""
    name, second = option.partition("=")[0], other.partition("=")[0]
    opposite = name.removeprefix("no") if name.startswith("no") else f"no{name}"
    return second in (name, opposite) or any(name in group and second in group for group in _EXCLUSIVE)
