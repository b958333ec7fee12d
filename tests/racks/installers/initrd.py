"""The first programs of Debian's installer, from its own initrd, in namespaces of this host: no virtual machine, no kernel of theirs.

What they run powers off and names the host: they have a namespace for processes and one for names, and may not reboot.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.lab import names

# As /init does: templates, the kernel's arguments (its environment), then the menu's items up to the preseed file; at
# last what the menu would run before it partitions.
_STEPS = """\
export PATH=/usr/bin:/usr/sbin:/bin:/sbin DEBIAN_FRONTEND=noninteractive
mkdir -p /var/lib/cdebconf /run /var/log /var/run
sh /lib/debian-installer-startup.d/S20templates
/lib/debian-installer-startup.d/S32env-preseed
/lib/debian-installer-startup.d/S60auto-install
for attempt in 1 2 3; do  # netcfg was seen to fail once in five, silently
    debconf -o d-i /bin/netcfg
    ip -4 -o addr | grep -q ens3 && break
    sleep 2
done
ip -4 -o addr
debconf -o d-i /var/lib/dpkg/info/network-preseed.postinst
echo "METHOD $(debconf-get partman-auto/method)"
$(debconf-get partman/early_command)
"""
_ENTER = """\
mount -t proc proc proc; mount -t tmpfs none sys; mkdir sys/block; mount -t tmpfs none dev
mknod dev/null c 1 3; mknod dev/urandom c 1 9; mknod dev/random c 1 8
exec setpriv --bounding-set=-sys_boot,-sys_module,-sys_rawio env -i "$@" /usr/sbin/chroot . /bin/sh /steps
"""
_SECONDS = 300.0


class Initrd:
    """An initrd, the folder that it is unpacked to, and a network namespace on the wire of a rack."""

    def __init__(self, folder: Path, initrd: Path, namespace: str) -> None:
        self.folder, self._initrd, self._namespace = folder, initrd, namespace

    def boot(self, arguments: str) -> str:
        """The first steps with these kernel arguments, in a new root as at each boot; returns their output.

        They end with the power off. debconf's exit status is not used: of 20 programs that ended with 1, it gave 0 for 18.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        unpack = f"gzip -dc {self._initrd} | cpio -id --quiet"
        subprocess.run(["sh", "-c", unpack], cwd=self.folder, check=True, timeout=120)
        (self.folder / "steps").write_text(_STEPS)
        apart = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
        words = [one for one in arguments.split() if not one.startswith(("DEBIAN_FRONTEND=", "console="))]
        done = subprocess.run(
            ["ip", "netns", "exec", self._namespace, *apart, "sh", "-c", _ENTER, "sh", *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
        return done.stdout.decode(errors="replace")


@contextmanager
def cable(head: str, node: str, address: str, mac: str) -> Iterator[tuple[str, str]]:
    """Two network namespaces: the head's, with an address, and the node's, whose port has a MAC alone."""
    first, second = names.namespace(head), names.namespace(node)
    try:
        for one in (first, second):
            _ip("netns", "add", one)
            _ip("-n", one, "link", "set", "lo", "up")
        _ip("-n", first, "link", "add", "head0", "type", "veth", "peer", "name", "ens3", "netns", second)
        _ip("-n", first, "addr", "add", f"{address}/24", "dev", "head0")
        _ip("-n", first, "link", "set", "head0", "up")
        _ip("-n", second, "link", "set", "ens3", "address", mac)
        yield first, second
    finally:
        for one in (first, second):
            subprocess.run(["ip", "netns", "delete", one], check=False, timeout=30)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=30)
