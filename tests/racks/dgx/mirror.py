"""The site's mirror: files, and NVIDIA's repository with packages of the test's own making, signed by the mirror."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rackwright.lab import names, network
from rackwright.roles.nvidia_driver.keys import fingerprint_of
from tests.gpu_repository import DRIVER, REVISION
from tests.racks.dgx.example import BRIDGE, REPOSITORY
from tests.racks.gpu_companions.repository import EVERYTHING, Content, build
from tests.racks.site import Site

CUDA = "13.0"
_MODULE = f"""\
#include <linux/module.h>
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("{DRIVER}");
"""
_DKMS = f"""\
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="{DRIVER}"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/kernel/drivers/video"
MAKE[0]="make -C ${{kernel_source_dir}} M=${{dkms_tree}}/nvidia/{DRIVER}/build modules"
AUTOINSTALL="yes"
"""
_NVCC = f"""\
#!/bin/sh
# Simulated.
echo "Cuda compilation tools, release {CUDA}, V{CUDA}.88"
"""
_PERSISTENCED = """\
[Unit]
Description=Persistence daemon, simulated

[Service]
ExecStart=/bin/false

[Install]
WantedBy=multi-user.target
"""
_SOURCES = f"/usr/src/nvidia-{DRIVER}"
CONTENTS = {
    "nvidia-open": Content(
        {
            f"{_SOURCES}/dkms.conf": _DKMS,
            f"{_SOURCES}/Makefile": "obj-m := nvidia.o\n",
            f"{_SOURCES}/nvidia.c": _MODULE,
        },
        depends="dkms",
        postinst=f"dkms add -m nvidia -v {DRIVER} || :\n",
    ),
    f"cuda-toolkit-{CUDA.replace('.', '-')}": Content(
        {f"/usr/local/cuda-{CUDA}/bin/nvcc": _NVCC},
        postinst=f"update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-{CUDA} 130\n",
    ),
    "nvidia-persistenced": Content({"/usr/lib/systemd/system/nvidia-persistenced.service": _PERSISTENCED}),
}
"""A module that compiles, a toolkit that names its release, a daemon that needs a device."""
PACKAGES = {
    **EVERYTHING,
    f"cuda-toolkit-{CUDA.replace('.', '-')}": "13.0.2-1",
    "libnccl2": "2.30.4-1+cuda13.0",
    "libnccl-dev": "2.30.4-1+cuda13.0",
}
OTHER_NSCQ = {"libnvidia-nscq": "580.95.05-1"}
assert PACKAGES["libnvidia-nscq"] == REVISION


def make(folder: Path, key: Path) -> str:
    """The repository below the mirror's folder, signed; the public key is written, its fingerprint returned."""
    there = folder / REPOSITORY
    build(there, PACKAGES, CONTENTS)
    index = (there / "Packages").read_bytes()
    release = (
        "Origin: tests\nDate: Mon, 23 Nov 2026 00:00:00 UTC\nArchitectures: amd64 all\nSHA256:\n"
        f" {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
    )
    (there / "Release").write_text(release)
    (folder / "v2").mkdir()  # what a registry answers with: there is one
    (folder / "v2" / "index.html").write_text("{}")
    with TemporaryDirectory(prefix="gpg") as home:
        gpg = ["gpg", "--batch", "-q", "--homedir", home, "--passphrase", ""]
        environment = {**os.environ, "GNUPGHOME": home}

        def run(*arguments: str) -> bytes:
            done = subprocess.run(
                [*gpg, *arguments], env=environment, check=True, capture_output=True, timeout=240
            )
            return done.stdout

        run("--quick-generate-key", "mirror <mirror@lab.test>", "ed25519", "sign", "never")
        run("--clearsign", "--digest-algo", "SHA512", "-o", str(there / "InRelease"), str(there / "Release"))
        key.write_bytes(run("--armor", "--export"))
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False, timeout=60)
    return fingerprint_of(key.read_text())


@contextmanager
def served(site: Site, folder: Path) -> Iterator[None]:
    """The folder as a web server on the rack's bridge."""
    server = [sys.executable, "-m", "http.server", "--bind", BRIDGE, "--directory", str(folder), "8080"]
    command = network.inside(names.namespace(site.name), server)
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            yield
            assert process.poll() is None, "the mirror ended before the tests"
        finally:
            process.terminate()
