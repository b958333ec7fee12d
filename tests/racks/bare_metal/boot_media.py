"""CDs that prove by themselves that they were booted: a boot loader that writes to the serial line, and a server for them.

Debian's signed shim and GRUB, unpacked from their packages and not installed on the host.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from rackwright.lab import names
from rackwright.lab.netns import socket_inside

PACKAGES = ("shim-signed", "grub-efi-amd64-signed", "grub-efi-amd64-bin")
PROGRAMS = ("xorriso", "mformat", "mmd", "mcopy", "dpkg-deb", "apt-get")
_MENU = """\
smbios --type 1 --get-string 7 --set serial
smbios --type 1 --get-uuid 8 --set uuid
echo "SERIAL [$serial]"
echo "UUID [$uuid]"
echo "CD BOOTED [{text}] locked [$lockdown]"
sleep 1
{end}
"""


class Media:
    """CDs in a folder, made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        assert not missing, f"{', '.join(missing)} missing: .ci/bootstrap vm"
        self.folder = folder
        self._packages = folder / "packages"
        self.served = folder / "served"
        self._packages.mkdir(parents=True)
        self.served.mkdir()
        _run("apt-get", "-q", "download", *PACKAGES, cwd=self._packages)
        for package in self._packages.glob("*.deb"):
            _run("dpkg-deb", "-x", str(package), str(self._packages / "tree"))

    def make(self, name: str, *, end: str, signed: bool = True) -> str:
        """A CD that prints its name and serial number and then ends with `halt` or `reboot`; its file name."""
        tree = self.folder / name
        (tree / "boot" / "grub").mkdir(parents=True)
        (tree / ".disk").mkdir()
        (tree / ".disk" / "info").write_text(f"{name}\n")  # GRUB's CD image looks for it
        (tree / "boot" / "grub" / "grub.cfg").write_text(_MENU.format(text=name, end=end))
        self._loader(tree / "efi.img", signed=signed)
        target = self.served / f"{name}.iso"
        options = ("-as", "mkisofs", "-quiet", "-V", "RACKWRIGHT", "-o", str(target))
        _run("xorriso", *options, "-e", "efi.img", "-no-emul-boot", str(tree))
        return target.name

    def _loader(self, image: Path, *, signed: bool) -> None:
        grub = self._packages / "tree" / "usr" / "lib" / "grub"
        files = {"BOOTX64.EFI": grub / "x86_64-efi" / "monolithic" / "gcdx64.efi"}
        if signed:
            shim = self._packages / "tree" / "usr" / "lib" / "shim" / "shimx64.efi.signed"
            files = {"BOOTX64.EFI": shim, "grubx64.efi": grub / "x86_64-efi-signed" / "gcdx64.efi.signed"}
        with image.open("wb") as file:
            file.truncate(8 << 20)
        _run("mformat", "-i", str(image), "::")
        _run("mmd", "-i", str(image), "::/EFI", "::/EFI/BOOT")
        for name, file_ in files.items():
            _run("mcopy", "-i", str(image), str(file_), f"::/EFI/BOOT/{name}")


class Served:
    """A server of a folder inside a rack; what was asked for is kept."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[str] = []


@contextmanager
def serving(rack: str, address: str, folder: Path, chain: Path | None = None) -> Iterator[Served]:
    """Serve a folder at an address inside a rack; with a certificate over https."""
    scheme = "http" if chain is None else "https"
    listener = socket_inside(names.namespace(rack))
    assert listener is not None
    listener.bind((address, 0))
    listener.listen(8)
    found = Served(f"{scheme}://{address}:{listener.getsockname()[1]}")

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            found.asked.append(" ".join(map(str, args)))

    if chain is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        listener = context.wrap_socket(listener, server_side=True)
    server = ThreadingHTTPServer((address, 0), partial(Handler, directory=folder), bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    thread = Thread(target=server.serve_forever, args=(0.1,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
