"""Mount options of parallel filesystems: those that each client parses are known, others are refused."""

from __future__ import annotations

import pytest

from rackwright.model.mount_options import excludes, option_mistakes
from rackwright.model.storage import FilesystemKind

K = FilesystemKind


def mistakes(kind, *options):
    return [(index, message) for index, message, _ in option_mistakes(kind, options)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (K.LUSTRE, ("flock", "noatime", "nolazystatfs", "network=o2ib1", "retry=5", "test_dummy_encryption")),
        (K.BEEGFS, ("cfgFile=/etc/beegfs/x.conf", "logLevel=4", "connMgmtdPortTCP=8008", "grpid")),
        (K.WEKA, ("readcache", "dentry_max_age_positive=0", "qos_max_ops=1000", "nosync_on_close")),
        (K.CEPHFS, ("rasize=8388608", "nowsync", "acl", "mount_timeout=30", "nopagecache")),
        (K.GPFS, ("nomtime", "syncnfs", "useNSDserver=always", "relatime")),
    ],
)
def test_known(kind, options):
    assert mistakes(kind, *options) == []


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (K.LUSTRE, ("flok",), "`flok` is not a mount option of lustre."),
        (K.LUSTRE, ("flock", "localflock"), "`localflock` contradicts `flock`."),
        (K.LUSTRE, ("noatime", "relatime"), "`relatime` contradicts `noatime`."),
        (K.LUSTRE, ("network",), "`network` needs a value."),
        (K.BEEGFS, ("connClientPort=8004",), "`connClientPort` is not a mount option of beegfs."),
        (K.BEEGFS, ("logLevel=3,ro",), "'logLevel=3,ro' is not a valid mount option."),
        (K.WEKA, ("coherent",), "`coherent` is not a mount option of weka."),
        (K.WEKA, ("readcache", "forcedirect"), "`forcedirect` contradicts `readcache`."),
        (K.CEPHFS, ("wsync=1",), "`wsync` takes no value."),
        (K.CEPHFS, ("secret=AQ",), "`secret` cannot be set in `options`."),
        (K.GPFS, ("nconnect=8",), "`nconnect` is not a mount option of gpfs."),
    ],
)
def test_refused(kind, options, message):
    assert [found for _, found in mistakes(kind, *options)] == [message]


@pytest.mark.parametrize(
    ("option", "other", "wanted"),
    [
        ("noatime", "atime", True),
        ("noatime", "relatime", True),
        ("nosuid", "suid", True),
        ("flock", "localflock", True),
        ("rsize=1", "rsize=2", True),
        ("nodev", "nosuid", False),
        ("noatime", "nodiratime", False),
    ],
)
def test_what_cannot_stand_together(option, other, wanted):
    assert excludes(option, other) is excludes(other, option) is wanted
