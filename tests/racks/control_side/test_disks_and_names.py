"""noexec /tmp, read-only disks and resolvers that never answer, on nodes and on the control node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.racks.control_side.conftest import program
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_SILENT = """\
cat >/run/silent.py <<'P'
import socket, time
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked.bind(("0.0.0.0", 53))
time.sleep(100000)
P
systemd-run -q --unit silent-resolver python3 /run/silent.py
until grep -q ' 00000000:0035 ' /proc/net/udp; do sleep 0.2; done
cp /etc/resolv.conf /run/resolv.conf
printf 'nameserver 127.0.0.1\\nsearch lab.test\\n' >/etc/resolv.conf
"""
_HEARD = "systemctl stop silent-resolver; cp /run/resolv.conf /etc/resolv.conf"
_DISK = "/etc /usr /var /root /home /opt"
_READ_ONLY = f"for d in {_DISK}; do mount --bind $d $d; mount -o remount,bind,ro $d; done"
"""As a file system is after an error: `/` itself cannot be remounted while daemons write to it."""
LOOKUP_SECONDS = 10
"""What one lookup costs at a resolver that never answers: two attempts of five seconds."""


@contextmanager
def done(site: Site, script: str, undo: str) -> Iterator[None]:
    """Something done to the worker for a while."""
    site.on("worker1", script)
    try:
        yield
    finally:
        site.on("worker1", undo)


def test_a_node_whose_tmp_is_noexec_is_configured_from_scratch(site: Site):
    site.on("worker1", "apt-get -q -y purge jq tree libjq1; rm /etc/ssh/sshd_config.d/00-rackwright.conf")
    mounts = "for d in /tmp /var/tmp; do mount -t tmpfs -o noexec,nosuid,nodev,mode=1777 none $d; done"
    with done(site, mounts, "umount /tmp /var/tmp"):
        site.apply()
        assert operations(site.plan(0)) == set()


@pytest.mark.smoke
def test_a_node_with_a_read_only_disk_fails_alone_and_in_plain_words(site: Site):
    for node in site.nodes:
        site.on(node, "rm /etc/ssh/sshd_config.d/00-rackwright.conf")
    with done(site, _READ_ONLY, f"umount -l {_DISK}"):
        assert {node for node, _, _ in operations(site.plan(2))} == set(site.nodes)
        ran = site.cli("apply", str(site.file), "--yes", expect=None, timeout=600)
        assert ran.status not in (0, 2), ran
        assert "Read-only file system" in ran.out + ran.err
        assert "worker1: " in ran.out + ran.err
        assert "Traceback" not in ran.out + ran.err
    assert {node for node, _, _ in operations(site.plan(2))} == {"worker1"}
    site.apply()
    assert operations(site.plan(0)) == set()


_NOEXEC = "mount --bind /tmp /tmp; mount -o remount,bind,noexec /tmp"


def test_a_control_node_whose_tmp_is_noexec_plans(site: Site):
    ran = program(site, "plan", str(site.file), mounts=_NOEXEC)
    assert (ran.status, "nothing to change on 2 of 2 nodes" in ran.out) == (0, True), ran


@pytest.mark.parametrize(("writable", "works"), [(True, True), (False, False)])
def test_a_control_node_with_a_read_only_disk(site: Site, writable: bool, works: bool):
    keep = f"mount --bind {site.state} {site.state}" if writable else ":"
    mounts = f"{keep}; mount -o remount,bind,ro /; [ ! -d /tmp ] || ! mountpoint -q /tmp || mount -o remount,bind,ro /tmp"
    for command in (("plan",), ("plan", "--full")):
        ran = program(site, command[0], str(site.file), *command[1:], mounts=mounts)
        assert "Traceback" not in ran.out + ran.err, ran
        if works:
            assert (ran.status, "nothing to change on 2 of 2 nodes" in ran.out) == (0, True), ran
        else:
            assert ran.status == 1, ran
            assert "Read-only file system" in ran.out + ran.err


def test_resolvers_that_never_answer_cost_nothing(site: Site):
    quick = program(site, "plan", str(site.file), "--full").seconds
    resolver = site.folder / "resolv.conf"
    resolver.write_text("nameserver 10.77.0.11\nsearch lab.test\n")
    with done(site, _SILENT, _HEARD):
        asked = site.on("worker1", "timeout 9 getent hosts unknown.lab.test >/dev/null || echo $?").strip()
        assert asked == "124", f"the resolver is not silent: getent exited {asked}"
        ran = program(
            site, "plan", str(site.file), "--full", mounts=f"mount --bind {resolver} /etc/resolv.conf"
        )
    assert "nothing to change on 2 of 2 nodes" in ran.out, ran
    assert ran.seconds < quick + LOOKUP_SECONDS, f"{ran.seconds:.1f} s, and {quick:.1f} s with a resolver"
    print(f"plan --full: {quick:.1f} s; with silent resolvers {ran.seconds:.1f} s")
