"""rackwright discover: what is in machines that have no operating system, beside what is declared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rackwright.cli.arguments import ClusterFile, Limit
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.machines_view import Steps, exit_code, show_outcomes, show_survey
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ExitCode, RackwrightError
from rackwright.install.states import State
from rackwright.model.cluster import Cluster, Node
from rackwright.model.selection import pick

if TYPE_CHECKING:
    from rackwright.install.inventory import Inventory

_LIST, _FRAGMENT = _WRITTEN = ("machines.csv", "cluster.yaml")


def discover_command(
    file: ClusterFile,
    limit: Limit = None,
    adopt: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the machine list and a fragment of the cluster file that are true of what was found, into a folder "
            "that has neither.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the inventories.")] = False,
) -> None:
    """Power machines on into an agent that only looks, and off again; compare what it finds with the declaration.

    Nothing is written to any disk. A machine that is on is left alone.

    Exit status: 0 everything is as declared, 3 something differs or a machine was left alone, 1 one could not be
    discovered.
    """
    cluster = load_cluster(file, locked=False)
    nodes = [node for node in pick(cluster, limit) if node.bmc is not None]
    if not nodes:
        raise RackwrightError("No node has a BMC.", hint="e.g. `bmc: {address: 10.20.0.11}` in its group")
    raise typer.Exit(int(_discover(cluster, nodes, adopt, as_json=as_json)))


def _discover(cluster: Cluster, nodes: list[Node], adopt: Path | None, *, as_json: bool) -> ExitCode:
    if adopt is not None:
        _refuse_to_overwrite(adopt)
    from rackwright.bmc.open import opener  # loads the client of the BMCs
    from rackwright.install.inventory import Inventory
    from rackwright.install.record import read
    from rackwright.install.run import Asked, Installation
    from rackwright.install.survey import compare

    console = Console(stderr=True)
    run = Installation(cluster, Asked("discover", tuple(nodes)), opener(cluster), Steps(console))
    run.prepare(lambda text: say(text, err=True))
    outcomes = run.run()
    show_outcomes(console, outcomes)
    seen = {one.node for one in outcomes if one.state is State.SURVEYED and not one.refused}
    found = [
        (node, Inventory.model_validate(read(cluster.name, node.name).inventory))
        for node in nodes
        if node.name in seen
    ]
    surveys = {node.name: compare(node, inventory) for node, inventory in found}
    if as_json:
        documents = {node.name: inventory.model_dump(mode="json", by_alias=True) for node, inventory in found}
        print_document("discover", {"cluster": cluster.name, "machines": documents})
    else:
        for name, lines in surveys.items():
            show_survey(Console(), name, lines)
    if adopt is not None:
        _adopt(adopt, found)
    code = exit_code(outcomes, State.SURVEYED)
    differs = any(line.agrees is False for lines in surveys.values() for line in lines)
    return ExitCode.CHECK_FAILED if code is ExitCode.CLEAN and differs else code


def _refuse_to_overwrite(adopt: Path) -> None:
    """Before any BMC is asked: what was declared there by hand is not to be lost."""
    if adopt.exists() and not adopt.is_dir():
        raise RackwrightError(f"{adopt} is not a folder.", hint="e.g. --adopt found/")
    if there := [name for name in _WRITTEN if (adopt / name).exists()]:
        raise RackwrightError(
            f"{adopt} already has {' and '.join(there)}, which --adopt would overwrite; nothing was done.",
            hint="name a new folder, e.g. --adopt found/",
        )


def _adopt(adopt: Path, found: Sequence[tuple[Node, Inventory]]) -> None:
    from rackwright.install.survey import fragment, machine_list

    if not found:
        say(f"no machine was discovered: nothing is written to {adopt}", err=True)
        return
    adopt.mkdir(parents=True, exist_ok=True)
    texts = (machine_list(found), fragment(found, _LIST, datetime.now(UTC).date()))
    for name, text in zip(_WRITTEN, texts, strict=True):
        try:
            with (adopt / name).open("x") as file:  # a discovery takes minutes: it may be there now
                file.write(text)
        except FileExistsError:
            raise RackwrightError(
                f"{adopt / name} was made in the meantime and is left as it is.",
                hint="run again with a new folder",
            ) from None
    say(f"{adopt / _LIST} and {adopt / _FRAGMENT} are true of {len(found)} machines", err=True)
