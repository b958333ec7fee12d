"""100 nodes behind one jump host whose sshd has its stock limits: none is lost.

The nodes are 100 addresses of one lab node; the jump host and its sshd are real.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.racks.control_side.conftest import program
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

COUNT = 100
PROCESSES = 64
"""Workers of a control node with as many cores, or of several operators."""
_DECLARED = f"""\
version: 1
cluster: {{name: behind, domain: lab.test}}
defaults: {{os: debian-13, platform: container, sku: lab-node, lab: {{cpus: 1, memory_mib: 256}}}}
networks:
  management: {{purpose: management, cidr: 10.77.0.0/22, gateway: 10.77.0.1}}
ssh:
  {{user: rack, key: ../.lab/id_ed25519, known_hosts: known_hosts, jump_host: rack@10.77.0.10,
   connect_timeout_seconds: 60}}
nodes:
  - {{nodes: t001, roles: [head], addresses: {{management: 10.77.2.1}}}}
  - {{nodes: "t[002-{COUNT}]", roles: [worker], addresses: {{management: 10.77.2.2}}}}
roles: {{tuning: {{}}}}
"""
_OURS = "/etc/ssh/sshd_config.d/00-rackwright.conf"

# Each process connects by itself, all at the same moment.
_STORM = """\
import os, sys, time
from pathlib import Path
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ConnectionFailed
from rackwright.ssh import connect
cluster, count = load_cluster(Path(sys.argv[1])), int(sys.argv[2])
start, children = time.time() + 3, []
for number in range(count):
    child = os.fork()
    if child == 0:
        time.sleep(max(0, start - time.time()))
        try:
            connect(cluster, cluster.nodes[number]).close()
        except ConnectionFailed as error:
            print(error.message, flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


@pytest.fixture
def behind(site: Site) -> Iterator[Path]:
    """The cluster file of nodes behind head1."""
    folder = site.folder / "behind"
    folder.mkdir(exist_ok=True)
    known = (site.folder / ".lab" / "known_hosts").read_text()
    key = next(line.partition(" ")[2] for line in known.splitlines() if "10.77.0.11" in line)
    lines = [f"10.77.2.{number} {key}\n" for number in range(1, COUNT + 1)]
    (folder / "known_hosts").write_text(known + "".join(lines))
    (folder / "cluster.yaml").write_text(_DECLARED)
    addresses = f"for i in $(seq 1 {COUNT}); do ip address %s 10.77.2.$i/22 dev eth0; done"
    site.on("worker1", addresses % "add")
    site.on("head1", f"mount --bind /dev/null {_OURS}; systemctl restart ssh")
    assert "maxstartups 10:30:100\n" in site.on("head1", "sshd -T"), "the jump host's sshd is not stock"
    yield folder / "cluster.yaml"
    site.on("head1", f"umount {_OURS}; systemctl restart ssh")
    site.on("worker1", addresses % "del")


def logins(site: Site) -> int:
    return int(site.on("head1", "journalctl -u ssh -o cat | grep -c 'Accepted publickey for rack' || :"))


def test_three_plans_lose_no_node_and_log_in_once_per_process(site: Site, behind: Path):
    for _ in range(3):
        before = logins(site)
        ran = program(site, "plan", str(behind), "--json")
        nodes = ran.json()["nodes"]
        assert len(nodes) == COUNT
        assert not [node["error"] for node in nodes if node["error"]], ran
        assert 1 <= logins(site) - before <= (os.cpu_count() or 1) + 1, "more than a login for each process"


@pytest.mark.smoke
def test_many_processes_at_once_all_get_in(site: Site, behind: Path):
    script = site.folder / "storm.py"
    script.write_text(_STORM)
    began = site.on("head1", "date +%s").strip()
    for _ in range(3):
        ran = site.tool(
            sys.executable, str(script), str(behind), str(PROCESSES), name="storm", inside=True, timeout=300
        )
        assert ran.status == 0, f"{ran.status} of {PROCESSES} did not get in: {ran.out[-2000:]}"
    log = site.on("head1", f"journalctl -u ssh -o cat --since @{began}")
    assert "MaxStartups" in log, "the jump host dropped none: the test has shown nothing"
