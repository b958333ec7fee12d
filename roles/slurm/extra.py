"""Extra lines of Slurm's files, and the keys that they cannot set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from rackwright.extra_lines import SLURM, ExtraFile, ExtraLines, Problem
from rackwright.model.options import Frozen

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm.options import SlurmOptions


class SlurmExtra(Frozen):
    """Lines at the end of Slurm's files, `Key=Value`; Slurm checks them, rackwright checks only that none sets a managed key."""

    slurm_conf: ExtraLines = Field(
        default=(),
        description="Of slurm.conf: what `scontrol reconfigure` takes over, e.g. [KeepAliveTime=30].",
    )
    slurm_restart_conf: ExtraLines = Field(
        default=(), description="Of slurm.conf, in the included file whose change restarts the daemons."
    )
    slurmdbd_conf: ExtraLines = Field(default=(), description="Of slurmdbd.conf.")
    cgroup_conf: ExtraLines = Field(default=(), description="Of cgroup.conf.")

    def __bool__(self) -> bool:
        """Whether there is any line."""
        return any((self.slurm_conf, self.slurm_restart_conf, self.slurmdbd_conf, self.cgroup_conf))


def extra_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """Lines that are not Slurm's, or set what rackwright sets."""
    from rackwright.roles.slurm import texts  # it reads the options' module

    if not options.extra:
        return
    plain = options.model_copy(update={"extra": SlurmExtra()})
    templates = ("slurm/slurm.conf.j2", "slurm/slurm-restart.conf.j2")
    both = (texts.slurm_conf(cluster, plain), texts.slurm_restart_conf(cluster, plain))
    files = (
        ExtraFile("slurm_conf", "slurm.conf", SLURM, templates, both),
        ExtraFile("slurm_restart_conf", "slurm.conf", SLURM, templates, both),
        ExtraFile(
            "slurmdbd_conf",
            "slurmdbd.conf",
            SLURM,
            ("slurm/slurmdbd.conf.j2",),
            (texts.slurmdbd_conf(cluster, plain, password=""),),
        ),
        ExtraFile(
            "cgroup_conf",
            "cgroup.conf",
            SLURM,
            ("slurm/cgroup.conf.j2",),
            (texts.cgroup_conf(cluster, plain),),
        ),
    )
    for file in files:
        yield from file.problems(getattr(options.extra, file.option), type(options))
