"""All rules in evaluation order: rules that others depend on come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackwright.alerts import (
    clocks,
    devices,
    fabric,
    fabric_errors,
    filesystems,
    gpu_clocks,
    gpu_links,
    gpu_memory,
    gpus,
    health,
    jobs,
    logs,
    memory,
    monitoring,
    mounts,
    network,
    nodes,
    power,
    prometheus,
    recording,
    services,
    slurm,
    slurm_nodes,
    units,
    upkeep,
)
from rackwright.alerts.overrides import Override
from rackwright.alerts.rule import Alert, Recording, RuleGroup
from rackwright.documents.nearest import nearest, suggest

_SUBJECTS = (
    *(nodes, memory, clocks, network, fabric, fabric_errors, filesystems, mounts, units, services),
    *(
        gpus,
        gpu_memory,
        gpu_clocks,
        gpu_links,
        slurm,
        slurm_nodes,
        jobs,
        health,
        upkeep,
        logs,
        power,
        prometheus,
        devices,
        monitoring,
    ),
)
GROUPS: tuple[RuleGroup, ...] = (*recording.GROUPS, *(subject.GROUP for subject in _SUBJECTS))
ALERTS: dict[str, Alert] = {
    rule.name: rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)
}
"""By name."""
RECORDINGS: dict[str, Recording] = {
    rule.record: rule for group in GROUPS for rule in group.rules if isinstance(rule, Recording)
}
"""By the name of the series."""


def mistakes(changes: Mapping[str, Override]) -> Iterator[tuple[str, str]]:
    """Problems in a site's changes: unknown alerts and thresholds, each with a hint."""
    for name, change in changes.items():
        alert = ALERTS.get(name)
        if alert is None:
            yield f"There is no alert {name}.", nearest(name, ALERTS) or "docs/alerts.md lists them"
            continue
        for threshold in change.thresholds:
            if threshold not in alert.thresholds:
                yield (
                    f"The alert {name} has no threshold {threshold}.",
                    suggest(threshold, alert.thresholds) or "it has no thresholds",
                )
