"""`rackwright lab`: the rack on a laptop."""

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rackwright.cli.groups import offer
from rackwright.cli.json_output import print_document
from rackwright.cli.progress import Waiting
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.durations import Durations
from rackwright.errors import LabError
from rackwright.lab import faults, names, power
from rackwright.lab.artefact import serve
from rackwright.lab.artefact.mirror_list import PodImageFile, write_mirror_lists
from rackwright.lab.from_cluster import load_rack_spec, rack_spec
from rackwright.lab.process import require
from rackwright.lab.rack import Rack
from rackwright.lab.spec import RackSpec
from rackwright.lab.status import RackStatus
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.types import Platform

lab_app = typer.Typer(
    help="A rack of containers and virtual machines on this host: boot it, break it, heal it.",
)

_FILES = (Path("inventory/lab.yaml"), Path("cluster.yaml"))
DEFAULT_FILE = next((path for path in _FILES if path.is_file()), _FILES[0])
"""A checkout's lab rack, or the cluster file of the site folder in which the command runs."""

File = Annotated[Path, typer.Argument(help="The cluster file.", show_default=True)]
FileOption = Annotated[Path, typer.Option("--file", "-f", help="The cluster file.")]
Node = Annotated[str, typer.Argument(help="The node's name.")]
_FAULTS = (*faults.FAULTS, *faults.GPU_FAULTS)
_COMMAND = {"allow_extra_args": True, "ignore_unknown_options": True}

# data goes to stdout, progress to stderr
_log = Console(stderr=True, highlight=False)


@lab_app.command()
def up(file: File = DEFAULT_FILE) -> None:
    """Bring the rack up; what already runs is left alone."""
    cluster = load_cluster(file, locked=False)
    spec = rack_spec(cluster)
    with Waiting(_log, Durations(cluster.name, "lab-up")) as waiting:
        images = _boot_images(cluster, waiting.step)
        waiting.end("")
        rack = Rack(spec, waiting.print)
        on = {one.name for one in rack.status().nodes if one.state != "off"}
        # a node with a BMC is switched on by it, later
        if missing := [one.name for one in spec.nodes if one.bmc is None and one.name not in on]:
            waiting.begin("all", f"rack {rack.name}: {fold(missing)} to boot", f"{len(missing)} nodes")
        rack.up(images)
        write_mirror_lists(cluster, _pod_images(cluster, spec, waiting.print))
    _log.print(f"rack {rack.name}: {_counts(rack.status())}")


@lab_app.command()
def down(
    file: Annotated[Path | None, typer.Argument(help=f"The cluster file; {DEFAULT_FILE} by default.")] = None,
    name: Annotated[str | None, typer.Option(help="The rack with this name, without its file.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every rack on this host.")] = False,
) -> None:
    """Remove the rack with all its files, in any state."""
    if (file is not None) + (name is not None) + every > 1:
        raise LabError("down takes one of FILE, --name and --all")
    if every:
        names: Iterable[str] = Rack.names()
    else:
        names = [name if name is not None else _rack(file or DEFAULT_FILE).name]
    for one in names:
        Rack.named(one, _log.print).down()


@lab_app.command()
def status(
    file: File = DEFAULT_FILE,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Show the rack's nodes, their limits and their faults."""
    result = _rack(file).status()
    if as_json:
        print_document("lab.status", result.to_json())
    else:
        _show(result)


@lab_app.command("exec", context_settings=_COMMAND)
def execute(context: typer.Context, node: Node, file: FileOption = DEFAULT_FILE) -> None:
    """Run a command as root on a node; works without its sshd."""
    if not context.args:
        raise LabError(
            "no command to run", hint=f"rackwright lab exec {node} -- COMMAND, or lab console {node}"
        )
    raise typer.Exit(_rack(file).exec(node, context.args))


@lab_app.command()
def console(node: Node, file: FileOption = DEFAULT_FILE) -> None:
    """Open a root shell on a node; works without its sshd."""
    raise typer.Exit(_rack(file).console(node))


@lab_app.command(context_settings=_COMMAND)
def ssh(context: typer.Context, node: Node, file: FileOption = DEFAULT_FILE) -> None:
    """Log in to a node as its administrator, with strict host keys."""
    raise typer.Exit(_rack(file).ssh(node, context.args))


@lab_app.command(context_settings={"ignore_unknown_options": True})
def fault(
    node: Node,
    kind: Annotated[
        str, typer.Argument(help=f"One of: {', '.join(_FAULTS)}.", autocompletion=offer(_FAULTS))
    ],
    args: Annotated[
        list[str] | None,
        typer.Argument(
            help="For slow: milliseconds and percent lost; for clock:jump and bmc:slow: seconds; for disk:fail and "
            "link:down: which one, counted from 0; for bmc:error: the status; for bmc:swap: the other node."
        ),
    ] = None,
    file: FileOption = DEFAULT_FILE,
) -> None:
    """Break a node on purpose."""
    _rack(file).fault(node, kind, *(args or []))
    _log.print(f"{node}: {' '.join([kind, *(args or [])])}")


@lab_app.command()
def reboot(node: Node, file: FileOption = DEFAULT_FILE) -> None:
    """Reboot a node in good order and wait until it is ready."""
    _rack(file).reboot(node)
    _log.print(f"{node}: ready")


@lab_app.command("power")
def switch(
    node: Node,
    action: Annotated[
        str, typer.Argument(help=f"One of: {', '.join(power.ACTIONS)}.", autocompletion=offer(power.ACTIONS))
    ],
    file: FileOption = DEFAULT_FILE,
) -> None:
    """Switch a node on or off as its BMC would; `off` is the plug, `soft` the power button."""
    _rack(file).power(node, action)
    _log.print(f"{node}: power {action}")


Snapshot = Annotated[str, typer.Argument(help="Name of the snapshot.")]


@lab_app.command()
def snapshot(node: Node, name: Snapshot = "default", file: FileOption = DEFAULT_FILE) -> None:
    """Keep the state of a virtual machine's disks; it goes on running."""
    _rack(file).snapshot(node, name)
    _log.print(f"{node}: snapshot {name}")


@lab_app.command()
def restore(node: Node, name: Snapshot = "default", file: FileOption = DEFAULT_FILE) -> None:
    """Boot a virtual machine from a snapshot of its disks."""
    _rack(file).restore(node, name)
    _log.print(f"{node}: ready")


@lab_app.command()
def heal(node: Node, file: FileOption = DEFAULT_FILE) -> None:
    """Undo every fault of a node and wait until it is ready."""
    _rack(file).heal(node)
    _log.print(f"{node}: healed")


class Artefact(StrEnum):
    """What `lab artefact` makes."""

    KUBERNETES = "kubernetes"


@lab_app.command()
def artefact(
    what: Annotated[
        Artefact, typer.Argument(help="kubernetes: packages and images, built from Debian's source.")
    ],
) -> None:
    """Build what `lab up` serves to nodes inside the rack, and print its folder; what is there is left alone."""
    from rackwright.lab.artefact import store  # only this command and `up` need it

    require(store.PROGRAMS, "building Kubernetes")
    with store.held(_log.print) as folder:
        Console(highlight=False, soft_wrap=True).print(str(folder))


def _boot_images(cluster: Cluster, log: Callable[[str], None]) -> dict[str, Path]:
    if not any(node.platform is Platform.VM for node in cluster.nodes):
        return {}
    from rackwright.image.for_lab import ensure  # it loads pyinfra, which containers do without

    return ensure(cluster, log)


def _pod_images(cluster: Cluster, spec: RackSpec, log: Callable[[str], None]) -> list[PodImageFile]:
    """What roles build for their pods, built and served to the nodes."""
    from rackwright.image import pods  # only clusters with such roles need it

    folder = names.lab_dir() / "pod-images"
    made = pods.build_all(cluster, folder, log)
    if made:
        serve.open_pod_images(spec, folder, [one.name for one in made])
    return [PodImageFile(one.reference, one.name, one.sha256) for one in made]


def _rack(file: Path) -> Rack:
    return Rack(load_rack_spec(file), _log.print)


def _show(result: RackStatus) -> None:
    out = Console(highlight=False)
    if not result.nodes:
        out.print(f"rack {result.name} is not up")
        return
    columns = ["node", "address", "image", "kind", "state", "faults", "limits", "MiB"]
    racked = any(one.bmc for one in result.nodes)
    table = Table(*columns, *(("BMC",) if racked else ()), box=None, pad_edge=False)
    for one in result.nodes:
        broken = ", ".join(" ".join([kind, *args]) for kind, args in one.faults.items())
        memory = "" if one.memory_mib is None else str(one.memory_mib)
        cells = (one.name, one.address, one.image, one.kind, one.state, broken, one.limits, memory)
        table.add_row(*cells, *((one.bmc,) if racked else ()))
    out.print(table)
    out.print(f"rack {result.name}: {_counts(result)}; mirror: {result.mirror}")


def _counts(result: RackStatus) -> str:
    states = Counter(node.state for node in result.nodes)
    return ", ".join(
        f"{states[state]} {state}" for state in ("ready", "not ready", "on", "off") if states[state]
    )
