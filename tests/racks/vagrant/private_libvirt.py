"""libvirtd in private mount, network and process namespaces, so that nothing of this machine's libvirt is touched.

Its configuration, sockets, state and storage pool are folders of the test; its bridges and firewall rules are in a
network namespace without any way out. Ending the first process of the process namespace ends everything inside.
Settings as in libvirt's qemu.conf and libvirtd.conf (libvirt 9.0, read 2026-11-23): without control groups, device
namespaces and virtlogd, which need parts of the machine that other people use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.racks.program import Ran

PROGRAMS = {
    "libvirtd": "libvirt-daemon-system",
    "virsh": "libvirt-clients",
    "vagrant": "vagrant vagrant-libvirt",
    "dnsmasq": "dnsmasq-base",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
"""Programs that the suite needs, with Debian's package of each."""

_QEMU = """\
user = "root"
group = "root"
security_driver = "none"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
"""
_DAEMON = """\
auth_unix_rw = "none"
auth_unix_ro = "none"
"""
_BOUND = ("/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
# /sys is mounted again because libvirt finds its bridges below /sys/class/net, which belongs to a network namespace.
# `wait` makes the shell, the first process, take over and bury what the daemons leave.
_FIRST_PROCESS = """\
set -e
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755,size=64m tmpfs /run
ip link set lo up
for path in {bound}; do mount --bind "{folder}$path" "$path"; done
libvirtd --config /etc/libvirt/libvirtd.conf &
wait
"""


def missing() -> list[str]:
    """`program (package)` for every program that is not installed."""
    return [f"{name} ({package})" for name, package in PROGRAMS.items() if shutil.which(name) is None]


class PrivateLibvirt:
    """A libvirtd and the namespaces it runs in."""

    first_process = _FIRST_PROCESS
    """What runs in them, as a script of sh; `folder` and `bound` are filled in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ran = 0

    def start(self) -> None:
        """Start it and wait until it answers."""
        for path in _BOUND:
            Path(f"{self.folder}{path}").mkdir(parents=True)
        etc = Path(f"{self.folder}/etc/libvirt")
        etc.joinpath("qemu.conf").write_text(_QEMU)
        etc.joinpath("libvirtd.conf").write_text(_DAEMON)
        Path(f"{self.folder}/var/lib/libvirt/images").mkdir()
        script = self.first_process.format(bound=" ".join(_BOUND), folder=self.folder)
        with (self.folder / "libvirtd.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "setpriv",
                    "--pdeathsig=KILL",  # a killed test leaves nothing behind either
                    "unshare",
                    "--mount",
                    "--net",
                    "--pid",
                    "--fork",
                    "--kill-child",
                    "--mount-proc",
                    "sh",
                    "-c",
                    script,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while self.run(["virsh", "-q", "version"], timeout=30).status != 0:
            assert time.monotonic() < deadline, (self.folder / "libvirtd.log").read_text()
            time.sleep(0.5)
        pool = "pool-define-as default dir --target /var/lib/libvirt/images; pool-start default"
        made = self.run(["virsh", "-q", pool], timeout=60)
        assert made.status == 0, made

    def stop(self) -> None:
        """End every process inside; the mounts and links go with the last one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=60)
        shutil.rmtree(self.folder / "var", ignore_errors=True)  # gigabytes of volumes

    def processes(self) -> set[str]:
        """Process IDs of all that runs inside, as seen from outside."""
        own = os.readlink(f"/proc/{self._first()}/ns/pid")
        found = set()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if os.readlink(entry / "ns" / "pid") == own:
                    found.add(entry.name)
        return found

    def inside(self, argv: Sequence[str]) -> list[str]:
        """The command which runs `argv` in the namespaces of the daemon."""
        return [
            "nsenter",
            f"--target={self._first()}",
            "--mount",
            "--net",
            "--pid",
            f"--wd={os.getcwd()}",
            "--",
            *argv,
        ]

    def _first(self) -> str:
        """The first process of its process namespace."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        deadline = time.monotonic() + 10
        while not (first := children.read_text().split()):
            assert self._process.poll() is None, "the first process has ended"
            assert time.monotonic() < deadline, "the first process has not started"
            time.sleep(0.05)
        return first[0]

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> Ran:
        """Run a program inside, to its end."""
        self._ran += 1
        out, err = (self.folder / f"{self._ran:03}-{Path(argv[0]).name}.{kind}" for kind in ("out", "err"))
        began = time.monotonic()
        command = self.inside(argv)
        command[5] = f"--wd={cwd or Path.cwd()}"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                timeout=timeout,
                check=False,
                env={**os.environ, "LIBVIRT_DEFAULT_URI": "qemu:///system", **(environment or {})},
            )
        return Ran(done.returncode, out.read_text(), err.read_text(), time.monotonic() - began)
