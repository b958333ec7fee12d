"""A site in separate namespaces: libvirtd with one machine, its BMCs, and the bridges of the two networks between.

The control node is this network namespace, in which a test runs rackwright as an operator would; nothing of the lab
is used. Ending the first process of the process namespace ends the machine, its BMCs and the networks.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.racks.program import Ran
from tests.racks.vagrant.private_libvirt import PrivateLibvirt

CONTROL, BMC_CONTROL = "10.87.0.1", "10.88.0.1"
"""Addresses of the control node on the two networks."""
MACHINE, BMC, IPMI_BMC = "10.87.0.11", "10.88.0.11", "10.88.0.12"
BOOT_BRIDGE = "boot0"
_BMC_BRIDGE = "bmc0"

# The package of libvirtd alone has no folders below /var, which an empty one replaces, nor the account that the
# one with its services makes, and without which libvirtd does not start (virGetUserID), though nothing runs as it.
_FIRST_PROCESS = """\
set -e
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755,size=64m tmpfs /run
ip link set lo up
ln -s /run "{folder}/var/run"
mount --bind "{folder}/var" /var
mount --bind "{folder}/etc/libvirt" /etc/libvirt
cp /etc/passwd /etc/group "{folder}/etc"
echo libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin >>"{folder}/etc/passwd"
echo libvirt-qemu:x:64055: >>"{folder}/etc/group"
for name in passwd group; do mount --bind "{folder}/etc/$name" /etc/$name; done
libvirtd --config /etc/libvirt/libvirtd.conf &
wait
"""


class PrivateSite(PrivateLibvirt):
    """The namespaces, libvirtd in them, and what else is started there."""

    first_process = _FIRST_PROCESS

    def connect(self) -> None:
        """Make the two networks: a bridge with the control node's address on each, and the BMCs' own addresses."""
        commands = [
            *(f"ip link add {name} type bridge" for name in (BOOT_BRIDGE, _BMC_BRIDGE)),
            f"ip address add {CONTROL}/24 dev {BOOT_BRIDGE}",
            *(f"ip address add {one}/24 dev {_BMC_BRIDGE}" for one in (BMC_CONTROL, BMC, IPMI_BMC)),
            *(f"ip link set {name} up" for name in (BOOT_BRIDGE, _BMC_BRIDGE)),
        ]
        done = self.run(["sh", "-ec", "; ".join(commands)], timeout=60)
        assert done.status == 0, done

    def virsh(self, *words: str, expect: int | None = 0) -> Ran:
        """Ask libvirtd itself, past all BMCs."""
        ran = self.run(["virsh", "-q", *words], timeout=120)
        assert expect is None or ran.status == expect, ran
        return ran

    def begin(self, name: str, *argv: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a daemon; its log is `<name>.log` of the folder."""
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                self.inside(argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
            )

    def on_the_network(self, *argv: str) -> list[str]:
        """The command that runs a program on the control node: this machine's files, the site's network."""
        return ["nsenter", f"--target={self._first()}", "--net", "--", *argv]

    def wait_for_port(self, address: str, port: int, what: str, seconds: float = 60) -> None:
        """Until TCP connections to an address of the site are taken."""
        ask = f"import socket; socket.create_connection(({address!r}, {port}), 2)"
        deadline = time.monotonic() + seconds
        while subprocess.run(
            self.on_the_network(sys.executable, "-c", ask), capture_output=True, check=False, timeout=30
        ).returncode:
            assert time.monotonic() < deadline, f"{what} does not listen at {address}, port {port}"
            time.sleep(0.5)

    def elsewhere(self) -> list[str]:
        """Processes of the site that are in this machine's network."""
        ours = os.readlink("/proc/self/ns/net")
        found = []
        for pid in self.processes():
            with suppress(OSError):  # it has ended
                if os.readlink(f"/proc/{pid}/ns/net") == ours:
                    found.append(f"{pid} {Path('/proc', pid, 'comm').read_text().strip()}")
        return found


def reached(address: str, authority: Path) -> bool:
    """Whether the network of this process leads to a BMC of the site; a proxy may answer, without its certificate."""
    context = ssl.create_default_context(cafile=str(authority))
    try:
        with (
            socket.create_connection((address, 443), 5) as plain,
            context.wrap_socket(plain, server_hostname=address),
        ):
            return True
    except OSError:
        return False
