"""`rackwright image`: a group's packages installed once, as a disk, a root file system or an OCI image."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.lines import say_exactly
from rackwright.cli.progress import Waiting
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.durations import Durations
from rackwright.model.ranges import fold
from rackwright.model.selection import pick

image_app = typer.Typer(
    help="Images with a group's packages installed, and the image of the agent that installs them.",
)


class Format(StrEnum):
    """What an image is written as."""

    DISK = "disk"
    OCI = "oci"
    ROOT = "root"


# data goes to stdout, progress to stderr
_log = Console(stderr=True, highlight=False)


@image_app.callback()
def _group() -> None:
    """Images with a group's packages installed, and the image of the agent that installs them."""


@image_app.command("build")
def build_command(
    file: ClusterFile,
    group: Annotated[
        str,
        typer.Option(
            metavar="NODESET", help="One node, for all nodes like it; or the group, e.g. worker[1-2]."
        ),
    ],
    format: Annotated[
        Format,
        typer.Option(
            help="A UEFI disk (qcow2), a tar file of an OCI image, or a root file system for `install`."
        ),
    ] = (Format.DISK),
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the image; images/CLUSTER-NODE by default.")
    ] = None,
    size: Annotated[int, typer.Option(metavar="GIB", min=4, max=2048, help="Size of the disk in GiB.")] = 16,
) -> None:
    """Build the image of a group of nodes; their first run then only configures. Needs root."""
    from rackwright.image.build import build, order  # they load pyinfra, which --help does not need
    from rackwright.image.choice import alike

    cluster = load_cluster(file)
    nodes = alike(cluster, pick(cluster, group))
    target = out or Path("images", f"{cluster.name}-{nodes[0].name}")
    wanted = order(cluster, nodes, format.value, size)
    with Waiting(_log, Durations(cluster.name, f"image-{format}")) as waiting:
        waiting.begin("all", f"image of {fold(node.name for node in nodes)}", "all")
        made = build(wanted, target.absolute(), waiting.step)
    left = sum(map(len, made.left.values()))
    for one in made.files:
        say_exactly(f"{target / one.name}\n")
    _log.print(
        f"{fold(node.name for node in nodes)}: {len(made.packages)} packages, {len(made.installed)} operations "
        f"carried out, {left} left to the first run (see {target / 'manifest.json'})",
        soft_wrap=True,
    )


@image_app.command("pods")
def pods_command(
    file: ClusterFile,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the images, one tar file each.")],
) -> None:
    """Build the images of pods that roles declare, of distribution packages, without systemd. Needs root."""
    from rackwright.image.pods import build_all  # the lab's modules, which --help does not need

    with Waiting(_log) as waiting:
        made = build_all(load_cluster(file, locked=False), out.absolute(), waiting.step)
    for one in made:
        say_exactly(f"{out / one.name}\n")
        _log.print(f"{one.reference}: {one.bytes // 2**20} MiB, sha256 {one.sha256}", soft_wrap=True)
    if not made:
        _log.print("no role of this cluster declares an image of pods")


@image_app.command("seed")
def seed_command(
    file: ClusterFile,
    images: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder of the boot images, each named after a node or a role."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the seeds, one NODE.tar each.")],
) -> None:
    """Write the disks that give virtual machines their identity, and their host keys to known_hosts."""
    from rackwright.image.seeds import write_seeds  # the lab's modules, which --help does not need

    written = write_seeds(load_cluster(file, locked=False), images, out)
    for name in written:
        _log.print(f"{name}: {out / name}.tar")
    if not written:
        _log.print("every virtual machine has its seed")


@image_app.command("agent")
def agent_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the agent image.")],
) -> None:
    """Build the image of the agent, which `rackwright install` boots on machines. Needs root.

    `install` makes it by itself where it runs as root on a Debian host; this is for control nodes that do not.
    """
    from rackwright.install.agent_image import build  # the lab's modules, which --help does not need

    with Waiting(_log) as waiting:
        made = build(out.absolute(), waiting.step)
    for one in made.files:
        say_exactly(f"{out / one.name}\n")
    _log.print(f"kernel {made.kernel}, {len(made.packages)} packages", soft_wrap=True)
