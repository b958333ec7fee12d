"""Mount options that the cluster file takes, against those that nfs(5) names."""

from __future__ import annotations

import pytest

from rackwright.model.mount_options import option_mistakes
from rackwright.model.storage import FilesystemKind

NFS_5 = """
acdirmax= acdirmin= acregmax= acregmin= actimeo= clientaddr= lookupcache= minorversion= mounthost= mountport=
mountproto= mountvers= namlen= nfsvers= port= proto= retrans= retry= rsize= sec= timeo= vers= wsize= ac noac acl noacl
fg cto nocto fsc nofsc local_lock= lock nolock max_connect= migration nomigration nconnect= rdirplus nordirplus
resvport noresvport sharecache nosharecache soft hard softreval nosoftreval
"""
"""Every option of nfs(5) of nfs-utils 2.6.2 (Debian 12, read 2026-11-26), but for those below."""
ELSEWHERE = {"bg", "tcp", "udp", "rdma"}
"""Keys of the filesystem say it."""
REFUSED = {"intr", "nointr", "sloppy"}
"""Ignored by the kernel since 2.6.25; hides misspelt options."""
VALUES = {"sec": "sys", "proto": "tcp", "vers": "4.2", "nfsvers": "4.2", "rsize": "65536", "wsize": "65536"}


def mistakes(*options, kind=FilesystemKind.NFS):
    return list(option_mistakes(kind, options))


@pytest.mark.parametrize("name", NFS_5.split())
def test_each_option_of_the_manual_is_taken(name):
    bare = name.removesuffix("=")
    assert mistakes(f"{name}{VALUES.get(bare, '8')}" if name.endswith("=") else name) == []
    assert (
        mistakes(f"{name}{VALUES.get(bare, '8')}" if name.endswith("=") else name, kind=FilesystemKind.VAST)
        == []
    )


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_what_a_key_says_is_refused_with_that_key(name):
    ((index, sentence, hint),) = mistakes(name)
    assert (index, sentence) == (0, f"`{name}` cannot be set in `options`.")
    assert hint


@pytest.mark.parametrize("option", ["proto=udp", "proto=udp6", "udp"])
def test_nfs_by_udp_is_refused(option):
    assert mistakes(option) == [
        (0, f"`{option}` cannot be set in `options`.", "NFSv4 does not run over UDP: remove the option")
    ]
    assert mistakes("proto=tcp6") == []


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_does_nothing_is_refused(name):
    assert mistakes(name)[0][1] == f"`{name}` is not a mount option of nfs."


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("vast", "remoteports=10.0.0.1-10.0.0.8~10.0.0.20"),
        ("vast", "nconnect=64"),
        ("lustre", "flock"),
        ("weka", "net=eth0"),
    ],
)
def test_options_of_other_kinds(kind, option):
    assert mistakes(option, kind=FilesystemKind(kind)) == []
    assert mistakes(option)


def test_vast_has_more_connections_and_not_any_number():
    assert mistakes("nconnect=65", kind=FilesystemKind.VAST) == [
        (0, "`nconnect` must be a number from 1 to 64.", None)
    ]


@pytest.mark.parametrize("option", ["a;b", "a=b c", "", "=", "a='x'", "a=$(id)", "a=b\n", "-o"])
def test_what_would_need_quoting_is_no_option(option):
    assert mistakes(option) == [
        (0, f"{option!r} is not a valid mount option.", "e.g. `nconnect=8`; one item per option")
    ]


def test_each_mistake_has_the_index_of_its_option():
    assert [index for index, _, _ in mistakes("hard", "nope", "soft", "hard")] == [1, 2, 3]
