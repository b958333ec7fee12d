"""A head and two workers with Slurm and nothing else, and two operators with separate state folders."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import Site

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 1024}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.77.0.10}}
  - {nodes: "worker[1-2]", roles: [worker], addresses: {management: 10.77.0.11}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  munge: {}
  mariadb: {}
  time: {}
  slurm:
    partitions: {main: {nodes: "worker[1-2]", default: true}}
"""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


class Operator(Site):
    """Another user's sight of a rack: the same cluster file and keys, other state and configuration."""

    def __init__(self, first: Site, name: str) -> None:
        folder = first.folder / name
        folder.mkdir(exist_ok=True)
        super().__init__(folder, "unused", copy.deepcopy(first.declared))
        self.folder, self.file, self.name = first.folder, first.file, first.name
        # the identity that opens the secrets is the team's: each operator has a copy
        age = first.config / "rackwright"
        if age.is_dir() and not (self.config / "rackwright").exists():
            (self.config / "rackwright").symlink_to(age)
        # an operator who has planned before: otherwise every node is evaluated in full, which takes minutes
        for facts in first.state.glob("rackwright/*/facts"):
            shutil.copytree(facts, self.state / facts.relative_to(first.state), dirs_exist_ok=True)


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once by the first operator."""
    site = Site(tmp_path_factory.mktemp("operators"), "operators", declared())
    with site.booted():
        site.apply()
        yield site


@pytest.fixture(scope="session")
def second(rack: Site) -> Site:
    """The second operator."""
    return Operator(rack, "second")


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, as the first operator sees it."""
    put_right(rack)
    return rack
