"""Checks of the slurm_exporter role."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import TypeAdapter

from rackwright.boundary import Refused, printable, read_json_as
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered, has_access, holds_only
from rackwright.claims.units import runs
from rackwright.roles.slurm_exporter import texts
from rackwright.roles.slurm_exporter.options import COLLECTOR, SlurmExporterOptions

_ASK = f"cat /proc/uptime && head -c 4096 {texts.SNAPSHOT} 2>/dev/null | head -n 1"
_UPTIME = re.compile(r"([0-9]{1,12}\.[0-9]{1,3}) ", re.ASCII)
_MARK = "# rackwright-slurm-metrics "
"""Before the JSON in the first line of what the collector writes (rackwright.workload.slurm.metrics.snapshot)."""


@dataclass(frozen=True)
class Head:
    """That line; times are seconds since the node has booted."""

    attempted: float
    collected: float | None
    error: str | None


_HEAD = TypeAdapter(Head)


def parse_head(output: str) -> tuple[float, Head | None]:
    """Uptime and what the collector wrote last; None where it has written nothing. Undetermined for anything else."""
    first, _, rest = output.partition("\n")
    uptime = _UPTIME.match(first)
    if uptime is None:
        raise Undetermined(f"/proc/uptime contains {printable(first, 80)}")
    line = rest.strip()
    if not line:
        return float(uptime[1]), None
    if not line.startswith(_MARK):
        raise Undetermined(f"{texts.SNAPSHOT} begins with {printable(line, 80)}")
    try:
        return float(uptime[1]), read_json_as(_HEAD, line[len(_MARK) :])
    except Refused as error:
        raise Undetermined(f"{texts.SNAPSHOT} cannot be read: {error}") from None


def _files(context: CheckContext[SlurmExporterOptions]) -> str:
    programs = texts.programs(context.node, context.options)
    units = texts.units(context.node, context.options)
    as_rendered(context, {**programs, **units}, dict.fromkeys(programs, "755"))
    return holds_only(context, texts.MODULES, texts.modules())


def _collector_runs(context: CheckContext[SlurmExporterOptions]) -> str:
    return runs(context, COLLECTOR)


def _answered(context: CheckContext[SlurmExporterOptions]) -> str:
    uptime, head = parse_head(context.output("sh -c %s", _ASK))
    if head is None:
        fail(f"the collector has not written {texts.SNAPSHOT}")
    if head.error is not None:
        fail(f"Slurm does not answer the collector: {printable(head.error, 200)}")
    if head.collected is None:
        raise Undetermined(f"{texts.SNAPSHOT} has neither metrics nor an error")
    age = uptime - head.collected
    if age > texts.stale_seconds(context.options):
        fail(
            f"the collector last ran {age:.0f} s ago, but should run every {context.options.interval_seconds} s"
        )
    return f"Slurm answered {max(0.0, age):.0f} s ago"


def _kept_from_users(context: CheckContext[SlurmExporterOptions]) -> str:
    users = context.options.names(context.node).settings
    return has_access(
        context, str(PurePosixPath(texts.SNAPSHOT).parent), "750", users["manager"], users["user"]
    )


CHECKS = (
    *exporter_checks("slurm_exporter", texts.arguments),
    Check("slurm_exporter's programs and units are those of this rackwright version", _files),
    Check("the slurm_exporter collector is running", _collector_runs, settle_seconds=20),
    Check("Slurm answers the slurm_exporter collector", _answered, settle_seconds=60),
    Check("users cannot read Slurm's data about other users' jobs", _kept_from_users, settle_seconds=20),
)
