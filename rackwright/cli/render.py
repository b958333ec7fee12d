"""rackwright render: every file a node would get, without a connection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say, say_exactly
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.model.selection import pick


def render_command(
    file: ClusterFile,
    node: Annotated[str, typer.Option(metavar="NODE", help="The node to render.")],
    path: Annotated[str | None, typer.Option(help="Print only the text of this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the files to this folder instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Print every file a node would get in full; secrets are placeholders."""
    from rackwright.engine.render import render_node  # it loads pyinfra, which --help does not need

    cluster = load_cluster(file)
    files = render_node(cluster, pick(cluster, node)[0])
    if path is not None:
        if path not in files:
            raise RackwrightError(f"{node} gets no file {path}.", hint=f"it gets {', '.join(sorted(files))}")
        say_exactly(files[path])
    elif out is not None:
        for name, text in files.items():
            target = out / name.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        say(f"{len(files)} files of {node} are below {out}")
    elif as_json:
        print_document("render", {"cluster": cluster.name, "node": node, "files": files})
    else:
        for name, text in files.items():
            say_exactly(f"==> {name} <==\n{text}\n")
