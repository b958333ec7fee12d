"""A kernel module that DKMS builds on a node and signs with the site's key, as the nvidia_driver role has it do."""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

from rackwright.claims.check import CheckResult
from rackwright.model.gpu_stack import GpuStack
from rackwright.render import render
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions, Signing
from rackwright.roles.nvidia_driver.texts import DKMS_SIGNING
from rackwright.roles.nvidia_driver.verify import CHECKS
from rackwright.ssh import Pool
from rackwright.verify.backend import Hosts
from rackwright.verify.judge import Patience, ask
from rackwright.verify.selection import PlannedCheck
from tests.racks.provisioned.conftest import Machines

KEY, CERTIFICATE = "/root/site-mok.key", "/root/site-mok.der"
SIGNING = Signing(key=KEY, certificate=CERTIFICATE)
MODULE = "rwsite"
_APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0"
_SOURCE = f"""\
mkdir -p /usr/src/{MODULE}-1
cd /usr/src/{MODULE}-1
printf 'PACKAGE_NAME="{MODULE}"\\nPACKAGE_VERSION="1"\\nBUILT_MODULE_NAME[0]="{MODULE}"\\n' >dkms.conf
printf 'DEST_MODULE_LOCATION[0]="/updates"\\nAUTOINSTALL="yes"\\n' >>dkms.conf
printf 'obj-m := {MODULE}.o\\n' >Makefile
printf '#include <linux/module.h>\\nMODULE_LICENSE("GPL");\\nMODULE_DESCRIPTION("a test");\\n' >{MODULE}.c
"""
_STRIP = f"""\
f=$(modinfo -n {MODULE})
case $f in *.xz) xz -dc "$f" >/tmp/signed.ko;; *.zst) zstd -qdc "$f" >/tmp/signed.ko;; *) cp "$f" /tmp/signed.ko;; esac
python3 - <<'END'
data = open("/tmp/signed.ko", "rb").read()
marker = b"~Module signature appended~\\n"
assert data.endswith(marker)
size = int.from_bytes(data[-len(marker) - 4 : -len(marker)], "big")
open("/tmp/unsigned.ko", "wb").write(data[: -len(marker) - 12 - size])
END
"""
"""The signature's length stands before the marker (Documentation/admin-guide/module-signing.rst)."""


def make_key(folder: Path, name: str) -> tuple[Path, Path]:
    """A fresh private key and its certificate in DER."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.der"
    argv = ["openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]
    argv += [
        "-subj",
        f"/CN={name} modules/",
        "-outform",
        "DER",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    return key, certificate


def build(site: Machines, node: str, folder: Path, name: str) -> None:
    """DKMS, the headers of the running kernel and the key on the node, and the module built, signed and installed."""
    site.send(node, folder, f"{name}.key", f"{name}.der", to="/root/keys")
    packages = "dkms gcc make mokutil linux-headers-$(uname -r)"
    apt = f"{_APT} -o Acquire::http::Proxy={site.declared['mirrors']['apt_proxy']}"  # no apply has set it yet
    site.on(node, f"{apt} update && {apt} install --no-install-recommends {packages}", timeout=1800)
    signing = render("nvidia_driver/dkms-signing.conf.j2", signing=SIGNING)
    site.on(
        node,
        f"install -m 600 /root/keys/{name}.key {KEY}; install -m 644 /root/keys/{name}.der {CERTIFICATE}; "
        f"mkdir -p {Path(DKMS_SIGNING).parent}; printf %s '{signing}' >{DKMS_SIGNING}; {_SOURCE}"
        f"dkms install {MODULE}/1 -k $(uname -r)",
        timeout=1200,
    )


def load(site: Machines, node: str) -> str:
    """What comes of loading it, as modprobe puts it; `loaded` where it is."""
    return site.on(node, f"modprobe {MODULE} 2>&1 && lsmod | grep -q '^{MODULE} ' && echo loaded || true")


def load_unsigned(site: Machines, node: str) -> str:
    """The same of the same module without its signature."""
    return site.on(
        node,
        f"rmmod {MODULE} 2>/dev/null || true\n{_STRIP}insmod /tmp/unsigned.ko 2>&1 && echo loaded || true",
    )


def verified(site: Machines, node: str) -> CheckResult:
    """The nvidia_driver role's check of the enrolled key, made over ssh as verify makes it."""
    (check,) = (one for one in CHECKS if one.name == "the key that signs modules is enrolled")
    stack = GpuStack.model_construct(secure_boot=True)
    cluster = site.cluster.model_copy(update={"gpu_stack": stack})
    options = NvidiaDriverOptions(signing=SIGNING)
    planned = PlannedCheck(options.role, replace(check, settle_seconds=0), cluster.by_name[node], options, 0)
    with site.here(), Pool(cluster) as pool:
        return ask(planned, cluster, Hosts(cluster, pool), Patience(time.monotonic(), threading.Event()))
