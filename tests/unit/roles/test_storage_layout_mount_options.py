"""Mount options of the storage_layout role, against those that xfs(5) and ext4(5) name."""

from __future__ import annotations

import pytest

from rackwright.roles.storage_layout.mount_words import word_mistakes
from rackwright.roles.storage_layout.sections import FilesystemOptions
from tests.unit.roles.fake_host import errors_in

XFS_5 = """
allocsize= attr2 noattr2 dax= discard nodiscard grpid bsdgroups nogrpid sysvgroups filestreams ikeep noikeep inode32
inode64 largeio nolargeio logbufs= logbsize= logdev= rtdev= noalign norecovery nouuid noquota uquota usrquota quota
uqnoenforce qnoenforce gquota grpquota gqnoenforce pquota prjquota pqnoenforce swalloc wsync
"""
"""Every option of xfs(5) of xfsprogs 6.1.0, but for sunit and swidth, which need each other."""
EXT4_5 = """
acl noacl bsddf minixdf check= nocheck debug errors= grpid bsdgroups nogrpid sysvgroups grpquota noquota quota usrquota
nouid32 oldalloc orlov resgid= resuid= sb= user_xattr nouser_xattr journal_dev= journal_path= norecovery noload data=
data_err= barrier= commit= jqfmt= usrjquota= grpjquota= journal_checksum nojournal_checksum journal_async_commit
barrier nobarrier inode_readahead_blks= stripe= delalloc nodelalloc max_batch_time= min_batch_time= journal_ioprio=
abort auto_da_alloc noauto_da_alloc noinit_itable init_itable= discard nodiscard block_validity noblock_validity
dioread_lock dioread_nolock max_dir_size_kb= i_version nombcache prjquota
"""
"""Every option of ext4(5) of e2fsprogs 1.47.0."""
REFUSED = {
    "xfs": {"noattr2", "logdev", "rtdev", "norecovery"},
    "ext4": {
        *(
            "check",
            "nocheck",
            "oldalloc",
            "orlov",
            "sb",
            "journal_dev",
            "journal_path",
            "norecovery",
            "noload",
        ),
        *("jqfmt", "usrjquota", "grpjquota", "journal_async_commit", "abort", "prjquota"),
    },
}
"""They are options, and a filesystem of this role cannot be mounted with them, or they do nothing."""
VALUES = {
    "errors": "remount-ro",
    "data": "ordered",
    "data_err": "abort",
    "barrier": "1",
    "dax": "inode",
    "allocsize": "1m",
}


def mistakes(type: str, *options: str) -> list[tuple[str, str | None]]:
    return list(word_mistakes(type, options))


@pytest.mark.parametrize(
    ("type", "option"),
    [*(("xfs", one) for one in XFS_5.split()), *(("ext4", one) for one in EXT4_5.split())],
)
def test_each_option_of_the_manual_is_taken_or_refused_with_a_reason(type, option):
    name = option.removesuffix("=")
    found = mistakes(type, f"{option}{VALUES.get(name, '5')}" if option.endswith("=") else option)
    if name not in REFUSED[type]:
        assert found == []
    else:
        ((message, hint),) = found
        assert message in (
            f"`{name}` cannot be a mount option here.",
            f"{type} cannot be mounted with `{name}` here.",
        )
        assert hint


@pytest.mark.parametrize("type", ["xfs", "ext4"])
@pytest.mark.parametrize(
    "options",
    [
        ("noatime", "nodev", "nosuid", "noexec", "discard", "nofail", "x-systemd.device-timeout=30s"),
        ("relatime", "lazytime", "usrquota", "grpquota"),
        ("rw", "strictatime", "sync"),
        (),
    ],
)
def test_options_of_every_type(type, options):
    assert mistakes(type, *options) == []


def test_stripes_and_quotas_of_xfs():
    assert mistakes("xfs", "noatime", "uquota", "prjquota", "sunit=128", "swidth=256") == []


@pytest.mark.parametrize(
    ("type", "options", "message", "hint"),
    [
        ("xfs", ["prjqouta"], "xfs has no mount option `prjqouta`.", "did you mean `prjquota`?"),
        ("xfs", ["noatime", "zzz"], "xfs has no mount option `zzz`.", None),
        ("xfs", ["nobarrier"], "xfs has no mount option `nobarrier`.", None),
        ("xfs", ["data=ordered"], "xfs has no mount option `data`.", None),
        ("ext4", ["uquota"], "ext4 has no mount option `uquota`.", "did you mean `quota`?"),
        ("ext4", ["prjquota"], "ext4 cannot be mounted with `prjquota` here.",
         "mkfs.ext4 makes no `project` feature, without which the mount fails; use `type: xfs`"),
        ("xfs", ["ro"], "`ro` cannot be a mount option here.", "this role's filesystems are for writing; remove it"),
        ("xfs", ["noatime", "relatime"], "`relatime` contradicts `noatime`.", "keep one of them"),
        ("ext4", ["strictatime", "noatime"], "`noatime` contradicts `strictatime`.", "keep one of them"),
        ("xfs", ["noquota", "prjquota"], "`prjquota` contradicts `noquota`.", "keep one of them"),
        ("xfs", ["uquota", "uqnoenforce"], "`uqnoenforce` contradicts `uquota`.", "keep one of them"),
        ("xfs", ["sync", "async"], "`async` contradicts `sync`.", "keep one of them"),
        ("xfs", ["noatime", "noatime"], "`noatime` is set twice.", "remove one of them"),
        ("xfs", ["noatime=1"], "`noatime` takes no value.", "write `noatime`"),
        ("xfs", ["logbufs"], "`logbufs` needs a value.", "write `logbufs=...`"),
        ("xfs", ["logbufs=9"], "'9' is not a value of `logbufs`.", "a number from 2 to 8"),
        ("xfs", ["allocsize=large"], "'large' is not a value of `allocsize`.", "a size, e.g. `64k`"),
        ("xfs", ["sunit=128"], "`sunit` and `swidth` are given together, or neither.",
         "XFS takes both from an array by itself"),
        ("ext4", ["errors=ro"], "'ro' is not a value of `errors`.", "continue, remount-ro, panic"),
        ("ext4", ["commit="], "'' is not a value of `commit`.", "a number"),
    ],
)  # fmt: skip
def test_options_that_are_refused(type, options, message, hint):
    assert mistakes(type, *options) == [(message, hint)]
    given = {"on": "a", "type": type, "mount_options": options}
    assert errors_in(FilesystemOptions, given) == [message]


def test_all_that_passed_validation_before():
    """Of these words the kernel knows all but one, and mounts nothing."""
    assert [message for message, _ in mistakes("xfs", "noatime", "relatime", "prjqouta", "ro")] == [
        "`relatime` contradicts `noatime`.",
        "xfs has no mount option `prjqouta`.",
        "`ro` cannot be a mount option here.",
    ]
