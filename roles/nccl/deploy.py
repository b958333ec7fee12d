"""Applies the nccl role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.roles.nccl import texts
from rackwright.roles.nccl.derived import TOPOLOGY
from rackwright.roles.nccl.options import NcclOptions


@deploy("nccl")
def nccl(options: NcclOptions) -> None:
    """NCCL's settings; jobs that run have read theirs."""
    site = site_of()
    for path, text in host.loop(tuple(texts.files(site.cluster, site.node, options).items())):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
    if not options.topology_file:
        files.absent(name=f"Remove {TOPOLOGY}", path=TOPOLOGY)
