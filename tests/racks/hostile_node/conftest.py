"""A small rack on which one node gives scripted answers to all of rackwright's commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from tests.racks.site import Site

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 768}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.77.0.10}}
  - {nodes: "worker[1-2]", roles: [worker], addresses: {management: 10.77.0.11}}
roles:
  base: {}
  access:
    users:
      - {name: bob, uid: 3001, sudo: true}
  tuning: {}
  time: {}
"""
HOSTILE = "worker1"
"""The node that answers garbage."""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("hostile"), "hostile", declared())
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared."""
    put_right(rack)
    return rack


@contextmanager
def answering(
    site: Site, answer: bytes, *, node: str = HOSTILE, status: int = 0, then: str = ""
) -> Iterator[None]:
    """Within the block, every command that rackwright runs on the node as root prints this and nothing else.

    Its sudo is replaced, which is what root on a compromised node would do; ssh and host keys stay as they are.
    `then` is shell that it runs after that, e.g. `sleep 600`.
    """
    folder = site.folder / "answering"
    folder.mkdir(exist_ok=True)
    (folder / "answer").write_bytes(answer)
    (folder / "sudo").write_text(
        f"#!/bin/sh\ncat >/dev/null\ncat /run/answering/answer\n{then}\nexit {status}\n"
    )
    (folder / "sudo").chmod(0o755)
    site.send(node, folder, "answer", "sudo", to="/run/answering")
    site.on(node, "chmod 755 /run/answering; mount --bind /run/answering/sudo /usr/bin/sudo")
    try:
        yield
    finally:
        site.on(node, "umount -l /usr/bin/sudo; rm -r /run/answering")  # what it runs may go on
