"""What a node prints about NCCL's settings and its topology, as values. Pure."""

from __future__ import annotations

import re

from rackwright.claims.check import Undetermined

END = "rackwright-end"
"""Printed last: without it, the output is not whole."""
SHADOWS = (
    "/etc/environment",
    "/etc/environment.d/*",
    "/etc/profile",
    "/etc/profile.d/*",
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/security/pam_env.conf",
    "/etc/systemd/system.conf",
    "/etc/systemd/system.conf.d/*",
    "/etc/skel/.nccl.conf",
    "/root/.nccl.conf",
)
"""Files whose settings every user, every service, or root gets."""
READ_SHADOWS = (
    f'for f in {" ".join(SHADOWS)}; do [ -f "$f" ] || continue; '
    'grep -HnE "NCCL_[A-Z0-9_]+[[:space:]]*=" "$f"; [ $? -le 1 ] || exit 1; done; '
    f"echo {END}"
)
READ_DEVICES = f"ls /sys/class/infiniband 2>/dev/null; echo {END}"
READ_ADDRESSES = "nvidia-smi --query-gpu=index,pci.bus_id --format=csv,noheader"
_ADDRESS = re.compile(r"([0-9]+), 0000([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_SETTING = re.compile(r"\b(NCCL_[A-Z0-9_]+)\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s;\"']*)")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def whole(text: str) -> list[str]:
    """The lines before END; Undetermined where it is missing."""
    lines = text.splitlines()
    if not lines or lines[-1] != END:
        raise Undetermined("the node did not print all of it")
    return lines[:-1]


def parse_shadows(text: str) -> list[tuple[str, str, str]]:
    """What READ_SHADOWS prints: file, name and value of each setting; comments are none."""
    found = []
    for line in whole(text):
        path, _, rest = line.partition(":")
        number, _, content = rest.partition(":")
        if not path.startswith("/") or not number.isdecimal():
            raise Undetermined(f"grep printed a line that cannot be read: {line[:80]!r}")
        if content.lstrip().startswith("#"):
            continue
        found += [(path, name, value.strip("\"'")) for name, value in _SETTING.findall(content)]
    return found


def parse_topology(text: str) -> dict[tuple[str, int], str]:
    """`nvidia-smi topo -m`: how a NIC (by the name of its RDMA device) and a GPU are connected, e.g. `PIX`."""
    lines = [_ANSI.sub("", line) for line in text.splitlines()]
    header = next((line.split() for line in lines if line.split()[:1] == ["GPU0"] and "CPU" in line), None)
    legend = dict(re.findall(r"^\s*(NIC[0-9]+):\s+(\S+)\s*$", "\n".join(lines), re.MULTILINE))
    if header is None or not legend:
        raise Undetermined("nvidia-smi topo -m prints no table of GPUs and NICs")
    columns = header[: header.index("CPU")]
    found = {}
    for line in lines:
        words = line.split()
        if not words or not re.fullmatch(r"GPU[0-9]+", words[0]) or words == header or words[1:2] == ["GPU1"]:
            continue
        if len(words) <= len(columns):
            raise Undetermined(f"nvidia-smi topo -m: a row is too short: {line[:80]!r}")
        for column, link in zip(columns, words[1:], strict=False):
            if column in legend:
                found[legend[column], int(words[0][3:])] = link
    if not found:
        raise Undetermined("nvidia-smi topo -m prints no row of a GPU")
    return found


def parse_addresses(text: str) -> dict[int, str]:
    """What READ_ADDRESSES prints, `0, 00000000:1B:00.0`: the address of each GPU as sysfs has it."""
    found = {}
    for line in text.splitlines():
        match = _ADDRESS.fullmatch(line.strip())
        if match is None:
            raise Undetermined(f"nvidia-smi printed no PCI address: {line[:60]!r}")
        found[int(match[1])] = match[2].lower()
    if not found:
        raise Undetermined("nvidia-smi printed nothing")
    return found
