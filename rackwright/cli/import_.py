"""rackwright import: a cluster file from what a site has already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.atomic_write import write_atomically
from rackwright.cli.lines import say, say_exactly
from rackwright.errors import RackwrightError
from rackwright.importers.ansible import read_ansible
from rackwright.importers.csv_list import read_csv
from rackwright.importers.netbox import read_netbox
from rackwright.importers.records import Source
from rackwright.importers.run import Choices, Imported, import_source
from rackwright.importers.words import role_names

import_app = typer.Typer(
    help="Write a cluster file from an Ansible inventory, a list of nodes (CSV) or an export of NetBox.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="Where the cluster file goes; must not exist. Default: stdout."
    ),
]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the cluster.")]
Domain = Annotated[str | None, typer.Option(metavar="DOMAIN", help="DNS domain of the nodes.")]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="NAME=ROLE",
        help="What a group or role of the source is: head, worker, login, storage or ignore; several times.",
    ),
]
_EXIT = "Exit status: 0 written, 1 the source has mistakes: nothing is written."


@import_app.command("ansible", epilog=_EXIT)
def ansible_command(
    inventory: Annotated[Path, typer.Argument(help="Inventory, INI or YAML, or a folder of them.")],
    out: Out = None,
    name: Name = None,
    domain: Domain = None,
    role: Roles = None,
) -> None:
    """Read a static inventory, with the group_vars and host_vars beside it; nothing in it is run or decrypted."""
    _run(read_ansible(inventory, role_names(role or ())), out, name, domain, role)


@import_app.command("csv", epilog=_EXIT)
def csv_command(
    file: Annotated[Path, typer.Argument(help="List with a header and one row for each node.")],
    out: Out = None,
    name: Name = None,
    domain: Domain = None,
    role: Roles = None,
) -> None:
    """Read a list of nodes, e.g. name, role, ip, mac, serial, bmc, rack, unit, switch, model and os."""
    _run(read_csv(file), out, name, domain, role)


@import_app.command("netbox", epilog=_EXIT)
def netbox_command(
    devices: Annotated[
        Path, typer.Argument(help="What NetBox answers at /api/dcim/devices/?limit=0, as a file.")
    ],
    interfaces: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="As from /api/dcim/interfaces/?limit=0: MACs, and leaves by cable."
        ),
    ] = None,
    cables: Annotated[
        Path | None, typer.Option(metavar="FILE", help="As from /api/dcim/cables/?limit=0: leaves by cable.")
    ] = None,
    out: Out = None,
    name: Name = None,
    domain: Domain = None,
    role: Roles = None,
) -> None:
    """Read the devices of NetBox 3.6 or later from its REST API's JSON; asks no server."""
    _run(read_netbox(devices, interfaces=interfaces, cables=cables), out, name, domain, role)


def _run(
    source: Source, out: Path | None, name: str | None, domain: str | None, role: list[str] | None
) -> None:
    made = import_source(source, Choices(role_names(role or ()), name, domain))
    if out is None:
        say_exactly(made.text)
    else:
        try:
            write_atomically(out, made.text, mode=0o644, exclusive=True)
        except FileExistsError:
            raise RackwrightError(
                f"{out} exists already.", hint="name another file, or move this one away"
            ) from None
        except OSError as error:
            raise RackwrightError(f"{out} cannot be written: {error.strerror}.") from None
    say(_summary(source.what, made, out), err=True)


def _summary(what: str, made: Imported, out: Path | None) -> str:
    lines = [f"read: {what}: {', '.join(made.files)}"]
    lines += [f"ignored: {line}" for line in made.ignored]
    lines.append(
        f"{_count(made.nodes, 'node')} in {_count(made.groups, 'group')}" + (f": {out}" if out else "")
    )
    if made.missing:
        what = f"{_count(made.missing, 'value')} missing, marked `# MISSING:`"
        lines.append(f"{what}; fill them in, then `rackwright validate {out or 'FILE'}`")
    return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
