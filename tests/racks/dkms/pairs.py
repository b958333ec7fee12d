"""A node whose driver builds, a node whose driver does not, and cluster files that ask for either."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import yaml

from rackwright.claims.check import CheckResult
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ExitCode
from rackwright.lock.index import Index
from rackwright.lock.lock_file import lock_text
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import solve
from rackwright.verify import verify
from tests.racks.site import Site

GOOD, BAD = "gpu12", "gpu13"
"""Debian 12, whose driver builds for kernel 6.1.0-50; Debian 13, whose driver does not build for any of its kernels."""
BAD_KERNEL = "6.12.107+deb13-amd64"
BUILD_SECONDS = 3000
"""For an apply with a build, which takes two minutes on a quiet machine; this one may not be quiet."""
DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {platform: container, sku: lab-gpu, lab: {cpus: 2, memory_mib: 3072}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts, command_timeout_seconds: 3000}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
skus:
  lab-gpu:
    vendor: rackwright
    description: a lab container that is declared to have one T4
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 3072
    gpus: {model: T4, gres_type: t4, count: 1, memory_mib: 15360, architecture: turing, nvswitch: none}
    sources: [{text: made up for the lab, read: 2026-11-21}]
nodes:
  - {nodes: gpu12, roles: [head, worker], os: debian-12, addresses: {management: 10.77.0.12}}
  - {nodes: gpu13, roles: [worker], os: debian-13, addresses: {management: 10.77.0.13}}
gpu_stack: {source: distribution, cuda: none}
roles:
  base: {}
  kernel: {}
  nvidia_driver: {}
  persistence: {}
"""


def both_nodes() -> dict[str, Any]:
    """The content of a cluster file with both nodes."""
    content: dict[str, Any] = yaml.safe_load(DECLARED)
    return content


def asking_for(site: Site, stem: str, change: Callable[[dict[str, Any]], None]) -> Site:
    """The same rack with a separate cluster file and lock."""
    other = copy(site)
    other.file = site.folder / f"{stem}.yaml"
    other.outputs = site.outputs / stem
    other.outputs.mkdir(exist_ok=True)
    other.declared = deepcopy(site.declared)
    other.declare(change)
    return other


def good_alone(content: dict[str, Any]) -> None:
    """The Debian 12 node is the whole cluster."""
    del content["nodes"][1]


def bad_alone(content: dict[str, Any]) -> None:
    """The Debian 13 node is the whole cluster, and its kernel is chosen."""
    del content["nodes"][0]
    content["nodes"][0]["roles"] = ["head", "worker"]
    content["gpu_stack"]["kernel"] = BAD_KERNEL


def lock_by_hand(site: Site) -> None:
    """A lock as a person would write it who knows of no bad pairs."""
    cluster = load_cluster(site.file, locked=False)
    tables = shipped_tables()
    innocent = replace(tables, pairs=tables.pairs.model_copy(update={"rows": ()}))
    solution = solve(cluster, innocent, Index())
    assert not solution.refused, solution.refused
    cluster.lock_path.write_text(lock_text(solution.lock, site.file.name))


def checks(site: Site, *roles: str, expect: ExitCode = ExitCode.CLEAN) -> dict[str, CheckResult]:
    """Results of these roles' checks, by name."""
    with site.here():
        report = verify(site.cluster, roles=frozenset(roles))
    assert report.exit_code == expect, report.results
    return {result.check: result for result in report.results}
