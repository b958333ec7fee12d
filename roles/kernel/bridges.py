"""Kernel arguments, and the ACS control bits of PCI bridges. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.claims.check import Undetermined
from rackwright.health.probe.pci import ACS_REDIRECT_BITS
from rackwright.model.cluster import Node

# Every bridge (class 0604) with what setpci reports of its ACS control register: four digits, or why not.
READ = """\
lspci -Dn | awk '$2 == "0604:" { print $1 }' | while read -r bridge; do
  echo "$bridge $(setpci -s "$bridge" ECAP_ACS+6.w 2>&1)"
done"""


def kernel_arguments(node: Node) -> tuple[str, ...]:
    """An IOMMU that maps one to one. AMD's is on by default, Intel's and Arm's need the argument."""
    if node.sku.cpu_architecture == "aarch64":
        return ("iommu.passthrough=1",)
    amd = node.sku.cpu_model is not None and "AMD" in node.sku.cpu_model.upper()
    return ("iommu=pt",) if amd else ("intel_iommu=on", "iommu=pt")


@dataclass(frozen=True)
class Bridges:
    """Bridges whose ACS is off or that have none, and those that redirect, with their bits."""

    quiet: int
    redirecting: dict[str, str]


def parse(text: str) -> Bridges:
    """What READ prints; Undetermined where a register could not be read."""
    quiet, redirecting = 0, {}
    for line in text.splitlines():
        bridge, _, found = line.partition(" ")
        if re.fullmatch(r"[0-9a-f]{4}", found):
            if int(found, 16) & ACS_REDIRECT_BITS:
                redirecting[bridge] = found
            else:
                quiet += 1
        elif re.search(r"capabilit", found, re.IGNORECASE) and "not found" in found:
            quiet += 1  # a bridge without ACS
        else:
            raise Undetermined(f"setpci cannot read the ACS control of {bridge}: {found or 'no output'}")
    if quiet + len(redirecting) == 0:
        raise Undetermined("lspci lists no PCI bridge")
    return Bridges(quiet, redirecting)
