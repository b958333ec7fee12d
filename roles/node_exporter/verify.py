"""Checks of the node_exporter role."""

from __future__ import annotations

from pathlib import PurePosixPath

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import has_access
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.node_exporter.texts import arguments
from rackwright.textfiles import TEXTFILES

_END = "read"
_READ = (
    'runuser -u %s -- sh -c \'for file in "$0"/*.prom; do [ ! -e "$file" ] && [ ! -L "$file" ] || '
    'cat "$file" >/dev/null 2>&1 || echo "$file"; done; echo read\' %s'
)


def _root_alone(context: CheckContext[NodeExporterOptions]) -> str:
    has_access(context, str(PurePosixPath(TEXTFILES).parent), "755", "root", "root")
    return has_access(context, TEXTFILES, "755", "root", "root")


def _readable(context: CheckContext[NodeExporterOptions]) -> str:
    """Links in the folder lead to where other roles keep their figures; the exporter's user has to get there."""
    user = context.options.names(context.node).settings["user"]
    found = context.output(_READ, user, TEXTFILES)
    lines = found.splitlines()
    if not lines or lines[-1] != _END:
        raise Undetermined(f"{TEXTFILES} was not read to its end")
    if lines[:-1]:
        fail(f"{user} cannot read {', '.join(lines[:-1])}")
    return f"{user} can read every file in {TEXTFILES}"


CHECKS = (
    *exporter_checks("node_exporter", arguments),
    Check("node_exporter can read every textfile", _readable),
    Check("only root writes textfiles for node_exporter", _root_alone),
)
