"""A head of Debian 12 and a worker of Debian 13, and a control node that may be the rack's own.

The worker has memory for the sessions of 100 nodes: test_jump_host gives it as many addresses.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.program import Ran
from tests.racks.site import REPO, Site

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 768}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/22, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], os: debian-12, addresses: {management: 10.77.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.77.0.11}, lab: {cpus: 2, memory_mib: 6144}}
roles:
  base: {packages: [jq, tree]}
  access: {users: [{name: ada, uid: 3000}]}
  tuning: {}
"""


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    declared: dict[str, Any] = yaml.safe_load(_DECLARED)
    site = Site(tmp_path_factory.mktemp("control"), "control", declared)
    site.environment["PYTHONPATH"] = str(REPO)  # programs of the tests run in other folders
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared."""
    put_right(rack)
    return rack


def program(site: Site, *arguments: str, mounts: str = ":", timeout: float = 900) -> Ran:
    """The program inside the rack's network, in a separate mount namespace in which `mounts` was run."""
    command = shlex.join([sys.executable, "-m", "rackwright", *arguments])
    script = f"mount --make-rprivate /\n{mounts}\nexec {command}"
    return site.tool(
        "unshare", "--mount", "sh", "-ec", script, name=arguments[0], inside=True, timeout=timeout
    )
