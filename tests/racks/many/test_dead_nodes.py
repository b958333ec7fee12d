"""Some of many nodes are dead: the others are configured, the dead ones are named and not waited for one by one.

RACKWRIGHT_TEST_NODES sets how many nodes the racks have (16; `make proof SUITE=nodes` has 40 and 100).
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ClusterShell.NodeSet import NodeSet

from rackwright.lab import names, network
from tests.racks.program import Running
from tests.racks.site import Site

pytestmark = pytest.mark.lab

SIZES = [int(size) for size in os.environ.get("RACKWRIGHT_TEST_NODES", "16").split()]
_DECLARED = """\
version: 1
cluster: {{name: "", domain: lab.test}}
defaults: {{os: debian-13, platform: container, sku: lab-node, lab: {{cpus: 1, memory_mib: 256}}}}
networks:
  management: {{purpose: management, cidr: 10.79.0.0/22, gateway: 10.79.0.1}}
ssh: {{user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts, connect_timeout_seconds: 60}}
nodes:
  - {{nodes: head1, roles: [head], addresses: {{management: 10.79.0.10}}}}
  - {{nodes: "worker[001-{last:03}]", roles: [worker], addresses: {{management: 10.79.0.11}}}}
roles:
  tuning: {{}}
"""


@pytest.fixture(scope="module", params=SIZES)
def many(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A rack of many small nodes."""
    count: int = request.param
    declared: dict[str, Any] = yaml.safe_load(_DECLARED.format(last=count - 1))
    site = Site(tmp_path_factory.mktemp("many"), f"many{count}x", declared)
    began = time.monotonic()
    with site.booted():
        print(f"{count} nodes are up after {time.monotonic() - began:.0f} s")
        yield site


def test_the_living_are_done_the_dead_are_named_and_come_back(many: Site):
    count = len(many.nodes)
    dead = [node for number, node in enumerate(many.nodes) if number % 5 == 3][:7]
    for node in dead:
        many.fault(node, "kill")
    left = str(NodeSet.fromlist(set(many.nodes) - set(dead)))

    applied = many.cli("apply", str(many.file), "--yes", expect=4)
    assert applied.out.rstrip().endswith(
        f"apply: {count - len(dead)} of {count} nodes are as declared; not: {NodeSet.fromlist(dead)}"
    )
    assert f"{NodeSet.fromlist(dead)}: unreachable: {dead[0]}: Cannot connect to {dead[0]} (" in applied.out
    living = many.cli("plan", str(many.file), "--limit", left)  # learns their digests
    living = many.cli("plan", str(many.file), "--limit", left)
    alive = count - len(dead)
    assert living.out.strip() == f"plan: nothing to change on {alive} of {alive} nodes"
    running = many.start("plan", str(many.file), "--json")
    waited_for = _most_waited_for(many, running)
    whole = running.wait()
    assert whole.status == 4, whole
    nodes = whole.json()["nodes"]
    assert {node["node"] for node in nodes if node["unreachable"]} == set(dead)
    assert {node["executions"] for node in nodes if not node["unreachable"]} == {1}
    assert waited_for == len(dead), "the program did not try all dead nodes at once"
    print(
        f"{count} nodes, {len(dead)} dead: apply {applied.seconds:.1f} s; plan of the living "
        f"{living.seconds:.1f} s, of all {whole.seconds:.1f} s"
    )

    for node in dead:
        many.heal(node)
    ran = many.apply(0)
    assert f"apply: {count} of {count} nodes are as declared" in ran.out
    assert all(f"{node}: " in ran.out for node in dead)


_SYN_SENT = "02"


def _most_waited_for(site: Site, running: Running) -> int:
    """How many nodes, at most, the program was connecting to at the same time without an answer."""
    look = network.inside(names.namespace(site.name), ("cat", "/proc/net/tcp"))
    most = 0
    while running.process.poll() is None:
        rows = [line.split() for line in subprocess.check_output(look, text=True).splitlines()[1:]]
        most = max(most, len({remote for _, _, remote, state, *_ in rows if state == _SYN_SENT}))
        time.sleep(0.1)
    return most
