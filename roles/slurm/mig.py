"""What Slurm requires of nodes whose GPUs are partitioned with MIG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster
from rackwright.model.types import Platform
from rackwright.osfamily.names import names
from rackwright.roles.slurm import placement

if TYPE_CHECKING:
    from rackwright.roles.slurm.options import SlurmOptions


def mig_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[tuple[str, str, str | None]]:
    """(path below the section, a sentence, a hint) of each mistake."""
    partitioned = [
        node for node in placement.workers(cluster) if node.mig and node.platform is not Platform.CONTAINER
    ]
    if partitioned and options.gres_autodetect not in (None, "nvml"):
        yield (
            "gres_autodetect",
            f"{partitioned[0].name} has MIG instances, which Slurm finds only through NVML.",
            "leave gres_autodetect out or set it to nvml",
        )
    for node in partitioned:
        if options.packages.source == "distribution" and not names(node.family, "slurm-nvml").packages:
            yield (
                "packages.source",
                f"{node.name} has MIG instances; Slurm of {node.os} has no NVML plugin to find them.",
                "take packages from SchedMD: `packages: {source: schedmd, release: '26.05'}`",
            )
            return
    for node in placement.workers(cluster):
        both = [profile for profile in node.mig if f"{profile}+me" in node.mig]
        if both:
            yield (
                "",
                f"{node.name} has {both[0]} and {both[0]}+me, which Slurm confuses, since it compares parts of names.",
                "declare one of the two in `mig`",
            )
            return
