"""The files of dcgm_exporter.

Flags: pkg/cmd/app.go of NVIDIA/dcgm-exporter 4.8.2 (read 2026-11-27).
"""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsDcgm
from rackwright.render import render
from rackwright.roles.dcgm_exporter import counters
from rackwright.roles.dcgm_exporter.options import DcgmExporterOptions
from rackwright.workload.lookup import declared_on, runs_jobs

JOBS = "/run/rackwright-dcgm-jobs"
"""A file for each GPU with the jobs that have it; empty after a boot, as no job outlives one."""
STAGES = ("prolog", "epilog")


def fields_path(options: DcgmExporterOptions) -> str:
    """Which fields are reported."""
    return f"{options.folder}/counters.csv"


def arguments(cluster: Cluster, node: Node, options: DcgmExporterOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    dcgm = node.offers(RunsDcgm)
    return (
        f"--collectors={fields_path(options)}",
        f"--collect-interval={options.interval_seconds * 1000}",
        # the node's name is a label of the target; and the exporter calls it Hostname, or hostname from 4.8.3 on
        "--no-hostname",
        *(() if dcgm is None else (f"--remote-hostengine-info={dcgm.dcgm_host}",)),
        *((f"--hpc-job-mapping-dir={JOBS}",) if maps_jobs(node, options) else ()),
    )


def fields(options: DcgmExporterOptions) -> str:
    """counters.csv."""
    return counters.text(dict(options.fields))


def maps_jobs(node: Node, options: DcgmExporterOptions) -> bool:
    """Whether jobs start on this node, and metrics are to name them."""
    return options.job_mapping and runs_jobs(node)


def hooks(node: Node, options: DcgmExporterOptions) -> dict[str, str | None]:
    """Scripts among those that the workload manager runs before and after each job; None: not wanted."""
    manager = declared_on(node)
    if manager is None:
        return {}
    wanted = maps_jobs(node, options)
    return {
        f"{folder}/30-rackwright-gpu-jobs": (
            render(f"dcgm_exporter/job-mapping-{stage}.j2", folder=JOBS) if wanted else None
        )
        for stage in STAGES
        if (folder := manager.hooks.get(stage)) is not None
    }
