"""Applies the storage_bench role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import packages
from rackwright.roles.storage_bench.options import StorageBenchOptions


@deploy("storage_bench")
def storage_bench(options: StorageBenchOptions) -> None:
    """The programs; they run in jobs alone."""
    packages.installed(name="Install the storage benchmark tools", packages=options.packages(site_of().node))
