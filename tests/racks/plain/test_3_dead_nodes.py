"""Some nodes of many are dead: the others are done, the dead are named, and nobody waits for them.

RACKWRIGHT_TEST_NODES sets how many nodes there are (40; `make bench` has 100).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ClusterShell.NodeSet import NodeSet

from rackwright.lab.rack import Rack
from tests.racks.slurm.site import Site

pytestmark = pytest.mark.lab

COUNT = int(os.environ.get("RACKWRIGHT_TEST_NODES", "40"))
DEAD = 7
CONNECT_SECONDS = 10
"""What the dead may cost: nobody answers for their addresses, which is known after some seconds."""
_DECLARED = f"""\
version: 1
cluster: {{name: "", domain: lab.test}}
defaults: {{os: debian-13, platform: container, sku: lab-node, lab: {{cpus: 1, memory_mib: 256}}}}
networks:
  management: {{purpose: management, cidr: 10.79.0.0/22, gateway: 10.79.0.1}}
ssh: {{user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts, connect_timeout_seconds: 60}}
nodes:
  - {{nodes: head1, roles: [head], addresses: {{management: 10.79.0.10}}}}
  - {{nodes: "worker[001-{COUNT - 1:03}]", roles: [worker], addresses: {{management: 10.79.0.11}}}}
roles:
  tuning: {{}}
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A rack of many small nodes."""
    declared: dict[str, Any] = yaml.safe_load(_DECLARED)
    site = Site(tmp_path_factory.mktemp("many"), f"many{os.getpid()}", declared)
    try:
        began = time.monotonic()
        site.cli("lab", "up", str(site.file), timeout=600)
        print(f"{COUNT} nodes are up after {time.monotonic() - began:.0f} s")
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()


def test_the_living_are_done_and_the_dead_are_named(many: Site):
    dead = [f"worker{number:03}" for number in range(3, 3 + 5 * DEAD, 5)]
    for node in dead:
        many.rack.fault(node, "kill")
    left = str(NodeSet.fromlist(set(many.nodes) - set(dead)))

    applied = many.cli("apply", str(many.file), "--yes", expect=4, timeout=600)
    assert applied.out.rstrip().endswith(
        f"apply: {COUNT - DEAD} of {COUNT} nodes are as declared; not: {NodeSet.fromlist(dead)}"
    )
    for node in dead:
        assert f"{node}: unreachable: Cannot connect to {node} (" in applied.out
    living = many.cli("plan", str(many.file), "--limit", left, expect=0, timeout=300)  # learns their digests
    living = many.cli("plan", str(many.file), "--limit", left, expect=0, timeout=300)
    assert living.out.strip() == f"plan: nothing to change on {COUNT - DEAD} of {COUNT - DEAD} nodes"
    every = [many.cli("plan", str(many.file), "--json", expect=4, timeout=300) for _ in range(2)]
    for ran in every:
        assert {node["node"] for node in ran.json()["nodes"] if node["unreachable"]} == set(dead)
    whole = min(every, key=lambda ran: ran.seconds)  # other racks are at work beside this one
    print(
        f"{COUNT} nodes, {DEAD} dead: apply {applied.seconds:.1f} s; plan of the living {living.seconds:.1f} s, "
        f"of all {whole.seconds:.1f} s"
    )
    # The dead are waited for once, all together and beside the work on the living.
    assert whole.seconds < 2 * living.seconds + CONNECT_SECONDS + 5


def test_and_come_back(many: Site):
    dead = [node["node"] for node in many.plan(4)["nodes"] if node["unreachable"]]
    assert len(dead) == DEAD
    for node in dead:
        many.rack.heal(node)
    ran = many.apply(0)
    assert f"apply: {COUNT} of {COUNT} nodes are as declared" in ran.out
    assert all(f"{node}: " in ran.out for node in dead)
