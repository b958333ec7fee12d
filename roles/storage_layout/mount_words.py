"""Mount options of XFS and ext4. One that the kernel rejects costs the node its filesystem at the next boot.

Sources, read 2026-11-26: xfs(5) of xfsprogs 6.1.0, ext4(5) of e2fsprogs 1.47.0, "Filesystem-independent mount options" of
mount(8) of util-linux 2.38.1, all of Debian 12; lifetime, max_atomic_write and max_open_zones are of later kernels
(fs/xfs/xfs_super.c). Each option of xfs(5) and ext4(5) is either taken or refused with its reason (tested).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rackwright.documents.nearest import nearest
from rackwright.model.mount_options import excludes

_NUMBER, _SIZE = "[0-9]{1,10}", "[0-9]{1,10}[kKmMgG]?"
_ANY = "[A-Za-z0-9_.:-]+"
_EXAMPLES = {
    _NUMBER: "a number",
    _SIZE: "a size, e.g. `64k`",
    _ANY: "e.g. `system_u:object_r:var_t:s0`",
    "[2-8]": "a number from 2 to 8",
    "[0-7]": "a number from 0 to 7",
}
"""Hints by pattern; the other patterns list their values."""
Values = Mapping[str, str | None]
"""Option -> pattern of its value; None: it takes none. A name that ends in `=` has to have one."""


def _flags(text: str) -> dict[str, str | None]:
    return dict.fromkeys(text.split())


_GENERAL: Values = {
    **_flags(
        """
        async atime noatime defaults dev nodev diratime nodiratime dirsync exec noexec iversion noiversion relatime
        norelatime strictatime nostrictatime lazytime nolazytime suid nosuid sync rw nosymfollow nofail _netdev
        discard nodiscard grpid bsdgroups nogrpid sysvgroups dax
        """
    ),
    **dict.fromkeys(("context=", "fscontext=", "defcontext=", "rootcontext="), _ANY),
    "dax=": "inode|never|always",
}
_OF: Mapping[str, Values] = {
    "xfs": {
        **_GENERAL,
        **_flags(
            """
            attr2 filestreams ikeep noikeep inode32 inode64 largeio nolargeio noalign nouuid swalloc wsync noquota quota
            uquota usrquota qnoenforce uqnoenforce gquota grpquota gqnoenforce pquota prjquota pqnoenforce lifetime
            nolifetime
            """
        ),
        "allocsize=": _SIZE,
        "logbsize=": _SIZE,
        "logbufs=": "[2-8]",
        "max_atomic_write=": _SIZE,
        **dict.fromkeys(("sunit=", "swidth=", "max_open_zones="), _NUMBER),
    },
    "ext4": {
        **_GENERAL,
        **_flags(
            """
            acl noacl bsddf minixdf debug noquota quota usrquota grpquota nouid32 user_xattr nouser_xattr barrier nobarrier
            journal_checksum nojournal_checksum delalloc nodelalloc auto_da_alloc noauto_da_alloc init_itable noinit_itable
            block_validity noblock_validity dioread_lock dioread_nolock i_version nombcache
            """
        ),
        "barrier=": "0|1",
        "errors=": "continue|remount-ro|panic",
        "data_err=": "ignore|abort",
        "data=": "journal|ordered|writeback",
        "journal_ioprio=": "[0-7]",
        **dict.fromkeys(("commit=", "stripe=", "resuid=", "resgid=", "init_itable="), _NUMBER),
        **dict.fromkeys(("max_batch_time=", "min_batch_time=", "max_dir_size_kb="), _NUMBER),
        "inode_readahead_blks=": _NUMBER,
    },
}
_MADE = "the filesystem is made without it"
_READ_ONLY = "it needs a read-only mount, and this role mounts read-write"
_JOURNALED = "quotas with journaled files are not set up; use `type: xfs` for quotas"
_REFUSED: Mapping[str, str] = {
    "ro": "this role's filesystems are for writing; remove it",
    **dict.fromkeys(("norecovery", "noload"), _READ_ONLY),
    **dict.fromkeys(("noauto", "user", "users", "owner", "group"), "root mounts it at every boot; remove it"),
    **dict.fromkeys(("auto", "nouser"), "that is so already; remove it"),
    **dict.fromkeys(("remount", "bind", "rbind", "loop"), "it is not an option of a mount unit; remove it"),
    **dict.fromkeys(("logdev", "rtdev", "journal_dev", "journal_path"), _MADE),
    **dict.fromkeys(("usrjquota", "grpjquota", "jqfmt"), _JOURNALED),
    "noattr2": "filesystems with checksums, mkfs.xfs's default, reject it",
    "journal_async_commit": "it fails with `data=ordered`, which is the default",
    **dict.fromkeys(("sb", "abort"), "it is for repair by hand"),
    **dict.fromkeys(("check", "nocheck", "oldalloc", "orlov"), "it does nothing; remove it"),
    **dict.fromkeys(("mand", "nomand"), "Linux 5.15 removed mandatory locks"),
}
_PROJECT = "mkfs.ext4 makes no `project` feature, without which the mount fails; use `type: xfs`"
_EXCLUSIVE = (
    frozenset({"sync", "async"}),
    frozenset({"inode32", "inode64"}),
    frozenset({"grpid", "bsdgroups", "nogrpid", "sysvgroups"}),
    frozenset({"dioread_lock", "dioread_nolock"}),
    frozenset({"bsddf", "minixdf"}),
    frozenset({"noalign", "sunit"}),
    *(
        frozenset({"noquota", one})
        for one in ("uquota", "usrquota", "gquota", "grpquota", "pquota", "prjquota")
    ),
    frozenset({"uqnoenforce", "qnoenforce", "uquota", "usrquota", "quota"}),
    frozenset({"gqnoenforce", "gquota", "grpquota"}),
    frozenset({"pqnoenforce", "pquota", "prjquota"}),
)


def word_mistakes(type: str, options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """(message, hint) of each option that a filesystem of this type would not be mounted with."""
    seen: list[str] = []
    for option in options:
        name, _, value = option.partition("=")
        if (wrong := _mistake(type, option, name, value)) is not None:
            yield wrong
        elif name in seen:
            yield f"`{name}` is set twice.", "remove one of them"
        elif other := next((one for one in seen if _excluded(name, one)), None):
            yield f"`{name}` contradicts `{other}`.", "keep one of them"
        seen.append(name)
    if type == "xfs" and ("sunit" in seen) != ("swidth" in seen):
        yield "`sunit` and `swidth` are given together, or neither.", "XFS takes both from an array by itself"


def _mistake(type: str, option: str, name: str, value: str) -> tuple[str, str | None] | None:
    known = _OF[type]
    if name.startswith("x-systemd."):
        return None
    if name in _REFUSED:
        return f"`{name}` cannot be a mount option here.", _REFUSED[name]
    if type == "ext4" and name == "prjquota":
        return "ext4 cannot be mounted with `prjquota` here.", _PROJECT
    flag, with_value = name in known, f"{name}=" in known
    if not flag and not with_value:
        names = sorted({one.removesuffix("=") for one in known})
        return f"{type} has no mount option `{name}`.", nearest(name, names)
    if "=" not in option:
        return None if flag else (f"`{name}` needs a value.", f"write `{name}=...`")
    if not with_value:
        return f"`{name}` takes no value.", f"write `{name}`"
    pattern = known[f"{name}="] or _ANY
    if re.fullmatch(pattern, value) is None:
        return f"{value!r} is not a value of `{name}`.", _EXAMPLES.get(pattern, pattern.replace("|", ", "))
    return None


def _excluded(name: str, other: str) -> bool:
    return excludes(name, other) or any(name in group and other in group for group in _EXCLUSIVE)
