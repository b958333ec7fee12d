"""The kernel's command line: what is declared of it, and the shell that compares it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from rackwright.lock.for_roles import has_stack
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, has
from rackwright.roles.kernel.options import KernelOptions
from rackwright.roles.kernel.pages import at_boot

NONE = "no managed arguments"
"""What the shell prints where nothing is declared, and nothing is there that should not be."""


def passes_through(node: Node, options: KernelOptions) -> bool:
    """Whether the IOMMU is declared to map one to one."""
    return has_stack(node) if options.iommu is None else options.iommu == "passthrough"


def iommu(node: Node) -> dict[str, str | None]:
    """An IOMMU that maps one to one. AMD's is on by default, Intel's and Arm's need the argument."""
    if node.sku.cpu_architecture == "aarch64":
        return {"iommu.passthrough": "1"}
    amd = node.sku.cpu_model is not None and "AMD" in node.sku.cpu_model.upper()
    return {"iommu": "pt"} if amd else {"intel_iommu": "on", "iommu": "pt"}


def declared(node: Node, options: KernelOptions) -> tuple[str, ...]:
    """Every argument that the node's kernel is to be started with, each `name` or `name=value`."""
    found: dict[str, str | None] = {}
    # a guest's IOMMU, if it has one, is what its host emulates
    if passes_through(node, options) and has(node.platform, Capability.HARDWARE):
        found |= iommu(node)
    found |= at_boot(options.hugepages)
    if options.mitigations != "default":
        found["mitigations"] = options.mitigations
    found |= {name: None if value is True else str(value) for name, value in options.arguments.items()}
    return tuple(name if value is None else f"{name}={value}" for name, value in found.items())


def read(source: str, arguments: Sequence[str], remove: Sequence[str], left: str = ":") -> str:
    """Shell that prints, in one line, those arguments that `source` prints, and each that is not to be there.

    Of an argument given twice the last counts, as for the kernel.
    """
    return (
        f"line=$({source}) && set -f\n"
        f'last() {{ found=; for one in $line; do case $one in "$1" | "$1"=*) found=$one ;; esac; done; }}\n'
        f"found_all=$(\n"
        f"for want in {' '.join(map(quote, arguments))}; do "
        'last "${want%%=*}"; [ "$found" != "$want" ] || echo "$want"; done\n'
        f"for name in {' '.join(map(quote, remove))}; do "
        'last "$name"; [ -z "$found" ] || echo "unwanted: $found"; done\n'
        f"{left}\n)\n"
        f'[ -n "$line" ] && echo ${{found_all:-{NONE}}}'
    )


def wanted(arguments: Sequence[str]) -> str:
    """What `read` prints where all is as declared."""
    return " ".join(arguments) or NONE


def differences(line: str, arguments: Sequence[str], remove: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of a command line: arguments that are missing or have another value, and those that should not be there."""
    there: Mapping[str, str] = {one.partition("=")[0]: one for one in line.split()}
    missing = [one for one in arguments if there.get(one.partition("=")[0]) != one]
    return missing, [there[name] for name in remove if name in there]
