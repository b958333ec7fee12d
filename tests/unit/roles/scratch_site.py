"""A head and two workers whose drives are scratch, for the tests of scratch and dataset_cache."""

from __future__ import annotations

from typing import Any

from rackwright.model.cluster import Cluster
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem, FilesystemKind, FilesystemPurpose
from rackwright.model.types import NodeRole, Platform
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from tests.factories import make_cluster, make_node

SCRATCH = Filesystem(
    name="fast",
    kind=FilesystemKind.LOCAL,
    purpose=FilesystemPurpose.SCRATCH,
    path="/scratch",
    nodes=("gpu1", "gpu2"),
)
SLURM = SlurmOptions(private_tmp_dir="/scratch/job_tmp")


def layout(**filesystem: Any) -> StorageLayoutOptions:
    """A drive with a filesystem on /scratch."""
    return StorageLayoutOptions.model_validate(
        {
            "disks": {"a": {"slot": "0000:00:05.0"}},
            "filesystems": {"/scratch": {"on": "a", "mount_options": ["noatime", "prjquota"], **filesystem}},
        }
    )


def scratch_site(
    *,
    filesystems: tuple[Filesystem, ...] = (SCRATCH,),
    layout_of: StorageLayoutOptions | None = None,
    without: tuple[str, ...] = (),
    **options: RoleOptions,
) -> Cluster:
    """Roles by name run where they apply; `without`: workers without such a filesystem."""
    given = {"slurm": SLURM, **options}
    nodes = [make_node("head1", 10, NodeRole.HEAD, platform=Platform.VM, options=given)]
    for number in (1, 2):
        name = f"gpu{number}"
        has = name not in without
        nodes.append(
            make_node(
                name,
                10 + number,
                NodeRole.WORKER,
                platform=Platform.VM,
                filesystems=filesystems if has else (),
                options={**given, **({"storage_layout": layout_of or layout()} if has else {})},
            )
        )
    return make_cluster(*nodes, storage={one.name: one for one in filesystems})
