"""Commands run in a tree: a Debian system as seen from inside; from outside, only files change.

Each runs in new namespaces for mounts, processes, host name and IPC, so however it ends, no mount and no process
stays behind. Kernel settings are read-only, and the capabilities to change this host are dropped: a guard against
scripts that mean well, not against a hostile package, which is root in a chroot. Daemons are kept from starting by policy-rc.d, which deb-systemd-invoke and invoke-rc.d ask; a
command that leaves a process behind fails.
"""

from __future__ import annotations

from pathlib import Path

from rackwright.errors import ImageError, LabError
from rackwright.lab.process import run

POLICY = "usr/sbin/policy-rc.d"
_TIMEOUT = 3600

# The devices are the host's, bound one by one: a container may not make any. The address resolver and the cache of packages are the host's.
_ENTER = r"""
root=$1; archives=$2; command=$3
hostname localhost
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
for path in sys sysrq-trigger; do
    [ -e "$root/proc/$path" ] || continue # a kernel without sysrq
    mount --bind "$root/proc/$path" "$root/proc/$path"
    mount -o remount,bind,ro "$root/proc/$path"
done
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o mode=755,nosuid,size=16m dev "$root/dev"
for name in null zero full random urandom tty; do
    : >"$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for n in 0 1 2; do ln -s "/proc/self/fd/$n" "$root/dev/$(echo stdin stdout stderr | cut -d' ' -f$((n + 1)))"; done
mount -t tmpfs -o mode=755,nosuid,nodev run "$root/run"
mkdir -p "$root/run/lock"
mount -t tmpfs -o mode=1777,nosuid,nodev tmp "$root/tmp"
mount --bind "$archives" "$root/var/cache/apt/archives"
if [ -e /etc/resolv.conf ]; then
    cat /etc/resolv.conf >"$root/run/resolv.conf"
    mount --bind "$root/run/resolv.conf" "$root/etc/resolv.conf"
fi
set +e
setpriv --bounding-set "$4" chroot "$root" sh -ec "$command" </dev/null
status=$?
left=
for entry in "$root"/proc/[0-9]*; do
    pid=${entry##*/}
    [ "$pid" = 1 ] || { [ -e "$entry/exe" ] && left="$left $(cat "$entry/comm")"; }
done
[ "$status" = 0 ] || { echo "exit code $status" >&2; exit 1; }
[ -z "$left" ] || { echo "it left processes running:$left" >&2; exit 1; }
"""
_LOST = ",".join(
    f"-{name}"
    for name in (
        "sys_admin",
        "sys_boot",
        "sys_module",
        "sys_rawio",
        "sys_time",
        "net_admin",
        "syslog",
        "mknod",
    )
)
"""Capabilities that commands do not have: with them a package's script could change this host's kernel, clock,
network or mounts."""
_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child=KILL")


def run_inside(tree: Path, archives: Path, command: str, what: str) -> str:
    """Run shell in a tree and return its output; a failure is an ImageError that begins with `what`."""
    argv = ["unshare", *_NAMESPACES, "sh", "-ec", _ENTER, "enter", str(tree), str(archives), command, _LOST]
    try:
        done = run(argv, timeout=_TIMEOUT, check=False, shown=what)
    except LabError as error:
        raise ImageError(error.message, hint=error.hint) from None
    if done.returncode != 0:
        reply = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise ImageError(f"{what} failed in the image\n{reply}")
    return done.stdout


def prepare(tree: Path, settings: str) -> None:
    """Keep daemons from starting, and let apt use this machine's settings, until `settle`."""
    _write(tree / POLICY, "#!/bin/sh\nexit 101\n", 0o755)
    _write(tree / _DPKG, "force-unsafe-io\n", 0o644)
    _write(tree / _APT, settings, 0o644)
    (tree / _RESOLVER).touch()


def settle(tree: Path) -> None:
    """Remove what `prepare` wrote."""
    for path in (POLICY, _DPKG, _APT, _RESOLVER):
        (tree / path).unlink(missing_ok=True)


_DPKG = "etc/dpkg/dpkg.cfg.d/rackwright-image"
_APT = "etc/apt/apt.conf.d/99rackwright-image"
_RESOLVER = "etc/resolv.conf"


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
