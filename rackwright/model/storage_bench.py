"""How `rackwright storage bench` measures a filesystem, as declared in `storage.<name>.bench`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import UserName
from rackwright.model.text import mistake

ALIGNMENT_KIB = 4
"""O_DIRECT needs sizes and addresses in blocks of the underlying device; 4 KiB suits drives with 512 B and 4 KiB sectors
(open(2), section O_DIRECT, man-pages 6.03, read 2026-11-26)."""


class CheckpointBench(Frozen):
    """The checkpoint stage: PyTorch saves, one rank dies during a write, training resumes."""

    size_mib: int = Field(default=1024, ge=1, le=2**20, description="MiB of state that each rank saves.")
    ranks_per_node: int = Field(default=2, ge=1, le=64, description="Ranks on each node.")
    nodes: int = Field(default=2, ge=2, le=1024, description="Number of nodes; at least four ranks in all.")
    interval_seconds: float = Field(
        default=1800,
        gt=0,
        description="Seconds from the start of one save to the next in the site's training; the save time is reported "
        "as a share of it.",
    )
    most_percent: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Longest save time as a share of the interval; more fails. None: not checked.",
    )
    backend: Literal["gloo", "nccl"] = Field(
        default="gloo", description="torch.distributed backend: gloo keeps state in memory, nccl on the GPUs."
    )

    @model_validator(mode="after")
    def _has_four_ranks(self) -> CheckpointBench:
        if self.nodes * self.ranks_per_node < 4:
            raise mistake("The checkpoint stage needs at least four ranks.", "e.g. `ranks_per_node: 2`")
        return self


class StorageBench(Frozen):
    """What the storage bench writes, and how."""

    size_mib: int = Field(
        default=4096,
        ge=1,
        le=2**24,
        description="MiB that each job writes and reads. Exceed the server's cache to measure its drives.",
    )
    block_kib: int = Field(
        default=4096, ge=4, le=2**16, description="KiB per read or write; a multiple of 4."
    )
    jobs: int = Field(default=4, ge=1, le=256, description="Parallel jobs on each node, one file each.")
    engine: Literal["psync", "libaio", "io_uring"] = Field(
        default="psync", description="fio's ioengine for one node alone."
    )
    depth: int = Field(
        default=1,
        ge=1,
        le=1024,
        description="fio's iodepth: I/Os in flight per job; needs libaio or io_uring.",
    )
    direct: bool = Field(
        default=True,
        description="Use O_DIRECT, which bypasses the node's page cache. false where the filesystem does not support it: "
        "the page cache may then serve what a node alone reads.",
    )
    files: int = Field(
        default=1000, ge=1, le=10**6, description="Files that each job creates, looks up and removes."
    )
    alone_nodes: int = Field(
        default=4,
        ge=1,
        le=10**5,
        description="Number of nodes measured alone, one after the other; all nodes are then measured together.",
    )
    folder: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*)?$",
        description="Folder below the mount point in which the bench creates its folder, e.g. `bench` or a user's home.",
    )
    user: UserName | None = Field(
        default=None,
        description="User on the nodes that writes the files. None: root, which cannot write to an NFS export with "
        "root_squash.",
    )
    timeout_seconds: int = Field(
        default=900, ge=30, le=86400, description="Time limit of each bench job, in seconds."
    )
    checkpoint: CheckpointBench | None = Field(
        default=None,
        description="The checkpoint stage. None: default settings if the purpose is checkpoint, else none.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> StorageBench:
        if self.block_kib % ALIGNMENT_KIB:
            raise mistake(
                f"`block_kib` must be a multiple of 4, not {self.block_kib}.", "e.g. `block_kib: 4096`"
            )
        if self.size_mib * 1024 % self.block_kib:
            raise mistake(
                f"`size_mib` ({self.size_mib}) must be a whole number of blocks of {self.block_kib} KiB.",
                "e.g. `size_mib: 4096, block_kib: 4096`",
            )
        if self.depth > 1 and self.engine == "psync":
            raise mistake(
                "psync has one I/O in flight: `depth` above 1 has no effect.",
                "e.g. `engine: libaio`, or more `jobs`",
            )
        if ".." in self.folder.split("/"):
            raise mistake(f"`folder` ({self.folder}) points outside the filesystem.", "e.g. `folder: bench`")
        return self


class RunsStorageBench:
    """Options of the role that installs the storage bench's programs on a node."""

    port: int
    """TCP port on the first node that synchronizes the ranks of all nodes; PyTorch uses the next one."""
    python: str
    """Absolute path of the Python with PyTorch."""
