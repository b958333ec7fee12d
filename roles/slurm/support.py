"""Slurm releases that get no more fixes from SchedMD."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.roles.slurm import placement
from rackwright.roles.slurm.in_pods import view
from rackwright.roles.slurm.state_problems import Problem, state_warnings

if TYPE_CHECKING:
    from rackwright.roles.slurm.options import SlurmOptions

SUPPORTED_UNTIL: dict[tuple[int, int], tuple[int, int]] = {
    (22, 5): (2023, 12),  # its last release, 22.05.11 (CHANGELOG/slurm-22.05.md)
    (23, 2): (2024, 11),
    (23, 11): (2025, 5),
    (24, 5): (2025, 11),
    (24, 11): (2026, 5),
    (25, 5): (2026, 11),
    (25, 11): (2027, 5),
    # The page prints 2028-11 beside "18 months"; 18 months after May 2026 is the earlier of the two.
    (26, 5): (2027, 11),
}
"""Year and month of the end: slurm.schedmd.com/upgrades.html, 23.02 from its version of 2024; read 2026-11-23."""
_NEVER_FIXED = {(22, 5): "CVE-2025-43904", (23, 2): "CVE-2025-43904"}
"""Coordinators could make administrators; fixed in 23.11.11, 24.05.8, 24.11.5 (CHANGELOG/, read 2026-11-23)."""
_ADVISED = "26.05"


def warnings_of(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """Everything that `validate` warns of."""
    if options.in_pods:
        seen, there = view(cluster, options)
        yield from support_warnings(there, seen)
        return
    yield from support_warnings(options, cluster)
    yield from state_warnings(options, cluster)


def support_warnings(options: SlurmOptions, cluster: Cluster, today: date | None = None) -> Iterator[Problem]:
    """One for each release that is past its end. Racks of containers are not warned about."""
    if not placement.confined(cluster):
        return
    now = today or date.today()
    running: dict[tuple[int, int], list[str]] = {}
    for node in placement.slurm_nodes(cluster):
        if options.packages.release is not None or node.os.slurm is not None:
            running.setdefault(placement.release_on(node, options), []).append(node.name)
    for release, names in sorted(running.items()):
        end = SUPPORTED_UNTIL.get(release)
        if end is None or (now.year, now.month) <= end:
            continue
        unfixed = f", without a fix for {_NEVER_FIXED[release]}" if release in _NEVER_FIXED else ""
        yield (
            "packages.release",
            (
                f"SchedMD's support of Slurm {release[0]}.{release[1]:02} ended in {end[0]}-{end[1]:02}{unfixed}; "
                f"{fold(names)} would run it with what the packager fixes."
            ),
            f"take packages from SchedMD: `packages: {{source: schedmd, release: '{_ADVISED}'}}`",
        )
