"""Brings a node to what the nccl role declares."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.roles.nccl import texts
from rackwright.roles.nccl.options import NcclOptions


@deploy("nccl")
def nccl(options: NcclOptions) -> None:
    """NCCL's settings; jobs that run have read theirs."""
    site = site_of()
    files.file(
        name=f"Write {texts.CONFIGURATION}",
        path=texts.CONFIGURATION,
        content=texts.configuration(site.cluster, site.node, options),
    )
