"""Folders that Slurm writes on nodes, files of its units, and how long its hooks may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rackwright.model.interfaces import BoundsHooks, WritesUnitFiles
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import WritesBelow, WrittenFolder
from rackwright.roles.slurm.sections import STANDBY_UNIT_FILES, STATE_UNIT_FILES

if TYPE_CHECKING:
    from rackwright.model.cluster import Node
    from rackwright.roles.slurm.sections import Timeouts


class SlurmFolders(BoundsHooks, WritesBelow, WritesUnitFiles):
    """Base of the options of Slurm."""

    daemons: Literal["nodes", "pods"]
    private_tmp: bool
    private_tmp_dir: str
    spool_dir: str
    timeouts: Timeouts

    @property
    def hook_seconds(self) -> int:
        """PrologEpilogTimeout."""
        return self.timeouts.prolog_epilog

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """slurmd's spool, and /tmp of jobs."""
        if not node.holds(NodeRole.WORKER) or self.daemons == "pods":
            return ()
        slurmd = ("slurmd.service",)
        tmp = WrittenFolder(self.private_tmp_dir, "/tmp of jobs", "slurm.private_tmp_dir", slurmd)
        spool = WrittenFolder(self.spool_dir, "slurmd's spool", "slurm.spool_dir", slurmd, large=False)
        return (tmp, spool) if self.private_tmp else (spool,)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The guard of the mount of its state, what starts slurmctld once that is there, and what keeps a standby able."""
        return (*STATE_UNIT_FILES, *STANDBY_UNIT_FILES)
