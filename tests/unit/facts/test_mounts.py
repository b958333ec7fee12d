"""The kernel's mount table as the fact reads it: a real awk on recorded tables."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.facts.mounts import MountTable
from rackwright.mounts import UnreadableMounts, live

RECORDED = Path(__file__).parent / "recorded"


def table(name, *paths):
    command = MountTable().command(paths).replace("/proc/self/mountinfo", str(RECORDED / name))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=20)
    return MountTable().process(done.stdout.splitlines())


def test_a_client_s_mounts():
    found = table("mountinfo_nfs_client.txt", "/home", "/data", "/scratch")
    assert sorted(found) == ["/", "/data", "/home"]
    assert [entry.type for entry in found["/home"]] == ["autofs", "nfs4"]
    home = live(found["/home"])
    assert home is not None
    assert (home.source, home.type) == ("10.9.0.10:/srv/home", "nfs4")
    assert {"vers=4.2", "hard", "nconnect=8", "nosuid", "noatime", "rw"} <= home.options
    assert live(found["/data"]) is None  # waits for its first use
    assert live(found.get("/scratch", ())) is None


def test_what_the_kernel_escapes_is_read_as_it_was():
    found = table("mountinfo_nfs_client.txt", "/mnt/share")
    assert found["/mnt/share"][0].source == "//server/a b"


def test_the_newest_of_stacked_mounts_is_seen():
    found = table("mountinfo_nfs_server.txt", "/srv", "/home")
    assert [entry.type for entry in found["/srv"]] == ["ext4", "xfs"]
    assert live(found["/srv"]).source == "/dev/md127"
    assert live(found["/home"]).type == "xfs"


def test_nothing_but_the_asked_is_printed():
    assert sorted(table("mountinfo_nfs_server.txt")) == ["/"]


@pytest.mark.parametrize("lines", [[], ["garbage"], ["0 0 0:0 / /home rw - nfs4 a:/b rw"]])
def test_what_is_no_table_is_refused(lines):
    with pytest.raises(UnreadableMounts):
        MountTable().process(lines)
