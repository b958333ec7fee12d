"""Guarded changes on a container with its own systemd, over real ssh connections, by the stock pyinfra CLI."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.racks.program import Ran
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

NODE = "head1"
_DECLARED = """\
version: 1
cluster: {name: "", domain: guard.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 1, memory_mib: 512}}
networks:
  management: {purpose: management, cidr: 10.87.0.0/24}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.87.0.10}}
roles:
  base: {}
"""
_CUT_OFF = "grep -q good /etc/demo/conf && ip addr replace 10.87.0.10/24 dev eth0 || ip addr flush dev eth0"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("guard"), "guard", yaml.safe_load(_DECLARED))
    with made.booted():
        yield made


def _change(site: Site, **options: object) -> Ran:
    given = {"key": "demo", "activate": "true", **options}
    deploy = site.folder / "change.py"
    deploy.write_text(
        f"from rackwright.operations import guarded\nguarded.change(name='Change it', **{given!r})\n"
    )
    pyinfra = str(Path(sys.executable).with_name("pyinfra"))
    return site.tool(pyinfra, f"@rackwright/{site.file}", str(deploy), "-y", name="pyinfra", timeout=300)


def test_a_change_that_takes_the_address_away_is_undone_by_the_node(site: Site):
    assert _change(site, files={"/etc/demo/conf": "good\n"}, seconds=30).status == 0
    ran = _change(site, files={"/etc/demo/conf": "bad\n"}, activate=_CUT_OFF, seconds=8)
    assert ran.status != 0
    found = re.search(r"the node restored itself after (\d+) s", ran.out + ran.err)
    assert found, ran
    assert 8 <= int(found[1]) < 60
    assert site.on(NODE, "cat /etc/demo/conf; ip -br -4 addr show eth0").split()[:1] == ["good"]
    assert "10.87.0.10/24" in site.on(NODE, "ip -br -4 addr show eth0")


def test_a_node_that_goes_down_with_an_unconfirmed_change_comes_up_as_it_was(site: Site):
    assert _change(site, files={"/etc/demo/conf": "good\n"}, seconds=30).status == 0
    site.on(
        NODE,
        "printf 'file 644 /etc/demo/conf %s\\nactivate %s\\nend\\n' $(echo halfway | base64) $(echo true | base64)"
        " | rackwright-rollback change demo 600",
    )
    site.on(NODE, "for n in $(seq 60); do grep -q halfway /etc/demo/conf && exit; sleep 1; done; exit 1")
    site.fault(NODE, "kill")
    site.heal(NODE)
    assert site.on(NODE, "cat /etc/demo/conf") == "good\n"
    assert "why boot" in site.on(NODE, "rackwright-rollback state demo")
