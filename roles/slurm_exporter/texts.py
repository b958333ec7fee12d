"""The files of slurm_exporter, whole. Pure: what is applied is what is verified."""

from __future__ import annotations

from functools import cache

from rackwright.model.cluster import Cluster, Node
from rackwright.node_programs import package_files
from rackwright.render import render
from rackwright.roles.slurm_exporter.options import COLLECTOR, UNITS, SlurmExporterOptions

MODULES = "/usr/libexec/rackwright/slurm-metrics"
COLLECTOR_PROGRAM = "/usr/libexec/rackwright/slurm-collector"
RUNTIME = "rackwright-slurm-metrics"
SNAPSHOT = f"/run/{RUNTIME}/metrics"
_ROOM = "rackwright.workload.slurm.metrics"
_STALE_INTERVALS = 3


@cache
def modules() -> dict[str, str]:
    """Text of each module of both programs, by its path below MODULES."""
    return {**package_files(f"{_ROOM}.collector"), **package_files(f"{_ROOM}.server")}


def stale_seconds(options: SlurmExporterOptions) -> int:
    """From what age on figures are left out."""
    return _STALE_INTERVALS * options.interval_seconds + options.timeout_seconds


def arguments(cluster: Cluster, node: Node, options: SlurmExporterOptions) -> tuple[str, ...]:
    """The server's flags besides address and users."""
    return (f"--snapshot={SNAPSHOT}", f"--stale-seconds={stale_seconds(options)}")


def collector_arguments(options: SlurmExporterOptions) -> tuple[str, ...]:
    """The collector's flags."""
    return (
        f"--output={SNAPSHOT}",
        f"--interval={options.interval_seconds}",
        f"--timeout={options.timeout_seconds}",
        f"--accounting-interval={options.accounting_seconds}",
        f"--max-jobs={options.max_jobs}",
        f"--max-accounts={options.max_accounts}",
    )


def programs(node: Node, options: SlurmExporterOptions) -> dict[str, str]:
    """What the units start, by path."""
    return {
        options.names(node).paths["program"]: _program("server"),
        COLLECTOR_PROGRAM: _program("collector"),
    }


def units(node: Node, options: SlurmExporterOptions) -> dict[str, str]:
    """Both units, by path."""
    users = options.names(node).settings
    return {
        f"{UNITS}/{options.unit(node)}": render("slurm_exporter/server.service.j2", user=users["user"]),
        f"{UNITS}/{COLLECTOR}": render(
            "slurm_exporter/collector.service.j2",
            user=users["manager"],
            group=users["user"],
            program=COLLECTOR_PROGRAM,
            arguments=collector_arguments(options),
            runtime=RUNTIME,
        ),
    }


def _program(module: str) -> str:
    return render("slurm_exporter/program.py.j2", folder=MODULES, module=f"{_ROOM}.{module}")
