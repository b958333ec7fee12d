"""The base file with BMCs, machines and installations, for the tests of those."""

from __future__ import annotations

from pathlib import Path

from rackwright.clusterfile.load import load_cluster
from rackwright.model.cluster import Cluster
from tests.unit.clusterfile.base_file import change

MACS = ", ".join(f"'02:00:00:00:00:0{number}'" for number in range(1, 5))
INSTALL = "    install: {image: images/worker, disk: {by_path: [pci-0000:00:17.0-ata-1]}}\n"
BMC = "    bmc: {address: 10.9.0.11}\n"
MACHINES = change(
    ("  store:\n", "  oob: {purpose: bmc, cidr: 10.9.0.0/24}\n  store:\n"),
    ("ssh:\n", "boot_network: {server: 10.1.0.5}\n\nssh:\n"),
    (
        "    switch: s[1-2]\n",
        f"    switch: s[1-2]\n    macs: [{MACS}]\n{BMC}{INSTALL}",
    ),
)
HEADER = "node,mac,serial,disk,bmc,bmc_certificate\n"


def machines(*edits: tuple[str, str]) -> str:
    """The file, each old text in it replaced once."""
    text = MACHINES
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the file"
        text = text.replace(old, new)
    return text


def load(folder: Path, text: str) -> Cluster:
    """The cluster of a correct file."""
    file = folder / "demo.yaml"
    file.write_text(text)
    return load_cluster(file)
