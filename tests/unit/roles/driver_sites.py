"""Clusters for the roles of the driver: Debian's own archive and NVIDIA's repository, with their locks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rackwright.lock.content import Lock
from rackwright.lock.index import Index
from rackwright.lock.lock_file import requested_stack
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import solve
from rackwright.model.cluster import Cluster
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole, Platform
from rackwright.osfamily.known import os_release
from tests.factories import make_cluster, make_node
from tests.unit.roles.stack_sites import text_of, worker

KERNEL = "6.1.0-50-amd64"
VERSION = "535.261.03"
SKU = "t4-4x"
KEY = """\
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawIMCRYJKwYBBAHaRw8BAQdAMaHVURqRi7RC1kt4HXKFxicnkquCLSIFqT4i
ESwzKl+0KHJhY2t3cmlnaHQgdGVzdHMgPHRlc3RzQGV4YW1wbGUuaW52YWxpZD6I
kAQTFggAOBYhBDNK1PCMbX8X3IyBxZiSP08vCUHGBQJrAgwJAhsDBQsJCAcCBhUK
CQgLAgQWAgMBAh4BAheAAAoJEJiSP08vCUHGKswA/01RhAtozNSGYks7CNHFsyT+
cUgYrBwVdMJeTowaMWs6AQDZbHfWLw6mI8vlbbq6YssbUeELYk/gRGHopVffmWxa
BQ==
=DAN7
-----END PGP PUBLIC KEY BLOCK-----
"""
FINGERPRINT = "334AD4F08C6D7F17DC8C81C598923F4F2F0941C6"
"""As `gpg --show-keys` prints it (GnuPG 2.2.40)."""


def debian(
    folder: Path,
    options: dict[str, RoleOptions],
    *,
    platform: Platform = Platform.BARE_METAL,
    edit: tuple[str, str] | None = None,
    **stack: Any,
) -> Cluster:
    """gpu1 takes Debian's own driver; cpu1 has no GPU. `edit` replaces a text in the lock."""
    node = worker("gpu1", 11, SKU, os=os_release("debian-12"), platform=platform, options=options)
    plain = worker("cpu1", 12, "cpu-16c-64g", options=options)
    cluster = make_cluster(
        make_node("head1", 10, NodeRole.HEAD),
        node,
        plain,
        path=folder / "demo.yaml",
        gpu_stack=GpuStack(source="distribution", **stack),
    )
    solution = solve(cluster, shipped_tables(), Index())
    assert not solution.refused, solution.refused
    write_lock(cluster, solution.lock, edit)
    return cluster


def write_lock(cluster: Cluster, lock: Lock, edit: tuple[str, str] | None = None) -> None:
    """The lock beside a cluster file that is not there."""
    text = text_of(lock, cluster.path.name)
    if edit is not None:
        assert edit[0] in text, edit[0]
        text = text.replace(*edit)
    cluster.lock_path.write_text(text)


def bad_pair(folder: Path, options: dict[str, RoleOptions]) -> Cluster:
    """Debian 13's own driver and kernel, which do not build together: a lock written by hand."""
    good = debian(folder, options)
    group = solve(good, shipped_tables(), Index()).lock.groups[0]
    release, kernel, revision = "6.12.107+deb13-amd64", "6.12.107-1", "550.163.01-2"
    packages = {
        **{name: revision for part in ("modules", "driver") for name in group.components[part]},
        f"linux-headers-{release}": kernel,
    }
    components = {**group.components, "kernel": (f"linux-headers-{release}",), "persistenced": ()}
    bad = group.model_copy(
        update={
            "os": os_release("debian-13"),
            "kernel": release,
            "driver_branch": "550",
            "driver_version": "550.163.01",
            "packages": packages,
            "components": components,
        }
    )
    nodes = [
        node.model_copy(update={"os": os_release("debian-13")}) if node.name == "gpu1" else node
        for node in good.nodes
    ]
    cluster = good.model_copy(update={"nodes": tuple(nodes)})
    stack, index = requested_stack(cluster)
    tables = shipped_tables().dates()
    write_lock(cluster, Lock(cluster="test", tables=tables, index=index, gpu_stack=stack, groups=(bad,)))
    return cluster
