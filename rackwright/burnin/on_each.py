"""Programs that every node runs separately in one job; each output line begins with the node's name."""

from __future__ import annotations

from rackwright.boundary import printable
from rackwright.model.cluster import Node
from rackwright.model.interfaces import ProvidesCollectives
from rackwright.model.settings import Burnin
from rackwright.model.sku import Architecture
from rackwright.workload.protocol import JobStep, gpus_of

_FIXED_PLACES = ("/usr/local/bin", "/opt/nccl-tests/build", "/usr/local/nccl-tests/build")


def search_path(node: Node) -> str:
    """PATH of the programs: the folders of the role that provides them, the node's own, then the usual places."""
    role = node.offers(ProvidesCollectives)
    folders = role.program_folders if role is not None else ()
    return ":".join((*folders, "$PATH", *_FIXED_PLACES))


def no_nvidia(node: Node) -> str | None:
    """Why the programs for NVIDIA's GPUs cannot run on a node like this one, or None."""
    gpus = node.sku.gpus
    if gpus is None:
        return f"SKU {node.sku.name} has no GPUs"
    if node.simulates_gpus:
        return "the GPUs are simulated by the lab"
    if gpus.architecture is Architecture.CDNA3:
        return f"{gpus.model} is an AMD GPU, and the program is NVIDIA's"
    return None


def step_on_each(
    settings: Burnin, members: tuple[Node, ...], program: str, seconds: int, output_filter: str | None = None
) -> JobStep:
    """One task on each node with all of its GPUs."""
    script = f'PATH="{search_path(members[0])}"; {{ {program}; }} 2>&1 | sed "s/^/$(hostname -s) /"'
    return JobStep(
        nodes=tuple(node.name for node in members),
        tasks_per_node=1,
        command=("sh", "-c", script),
        timeout_seconds=seconds,
        queue=settings.partition,
        gpus=gpus_of(members[0]),
        output_filter=output_filter,
        start="each",
    )


def by_node(text: str) -> dict[str, str]:
    """The output of each node by the name its lines begin with."""
    lines: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        lines.setdefault(name, []).append(rest)
    return {name: "\n".join(rest) for name, rest in lines.items()}


def last_output_line(text: str) -> str:
    """The last line of a program's output, for messages."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return printable(lines[-1], 120) if lines else "no output"
