"""A thousand endpoints on one machine: what the control node spends on a large site.

One lab node plays them all. It owns a whole network of addresses, and a separate sshd
answers on each: real connections, key exchanges and logins, one execution each, while the answer is
always that of a node in sync (a forced command prints it). So control CPU, memory and the number of
executions are those of a real site; node CPU and thereby wall time are not.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path
from typing import Any

from rackwright.clusterfile.load import load_cluster
from rackwright.factcache.cache import FactCache, version_key
from rackwright.factcache.host_classes import host_class
from rackwright.lab.from_cluster import load_rack_spec
from rackwright.lab.rack import Rack
from tests.bench.cases import HERE, JOB
from tests.bench.measure import measure

_PORT = 2222
_LOG = "/var/log/endpoints.log"
_HEAD = """\
version: 1
cluster: {name: benchscale, domain: bench.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
"""
_ONE = (
    _HEAD
    + """\
networks:
  management: {purpose: management, cidr: 10.78.0.0/24, gateway: 10.78.0.1}
ssh: {user: rack, key: id_ed25519, known_hosts: known_hosts}
mirrors: {apt_proxy: "http://10.78.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.78.0.10}}
roles: {}
"""
)
_MANY = (
    _HEAD
    + """\
networks:
  management: {purpose: management, cidr: 10.79.0.0/20, gateway: 10.79.0.1}
ssh: {user: rack, key: id_ed25519, known_hosts: endpoints_known_hosts, port: PORT, become: none}
nodes:
  - {nodes: "head1", roles: [head], addresses: {management: 10.79.0.10}}
  - {nodes: "worker[1-LAST]", roles: [worker], addresses: {management: 10.79.0.11}}
roles: {}
"""
)
_SSHD = f"""\
Port {_PORT}
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile /run/endpoints.pid
UsePAM no
PasswordAuthentication no
MaxStartups 2000
LogLevel VERBOSE
PerSourcePenalties no
ForceCommand cat >/dev/null; cat /etc/endpoint-answer
"""


def scale(count: int, rounds: int, work: Path, env: dict[str, str]) -> list[dict[str, Any]]:
    """`rounds` drift checks of `count` endpoints; the first of the list is of the first round."""
    one, many = work / "bench.yaml", work / "endpoints.yaml"
    one.write_text(_ONE)
    rack = Rack(load_rack_spec(one), print)
    rack.up()
    try:
        ours = [sys.executable, str(HERE / "ours.py")]
        for mode in ("apply", "full", "full"):
            subprocess.run([*ours, str(one), mode], check=True, env=env, cwd=work)
        many.write_text(_MANY.replace("PORT", str(_PORT)).replace("LAST", str(count - 1)))
        _play(rack, work)
        _vouch(many, work)
        _learn(one, many, Path(env["XDG_STATE_HOME"]))
        run = partial(
            measure, [*ours, str(many), "digest"], "benchscale", partial(_begun, rack), env=env, cwd=work,
            timeout=600.0, log=work / "scale.log",
        )  # fmt: skip
        return [run().to_json() for _ in range(rounds)]
    finally:
        rack.down()


def _play(rack: Rack, work: Path) -> None:
    answer = base64.b64encode(zlib.compress(b'{"same": true}', 1)).decode()
    rack.run("head1", ["sh", "-c", f"printf %s {answer} >/etc/endpoint-answer"], timeout=60)
    rack.run("head1", ["sh", "-c", f"cat >/etc/ssh/endpoints <<'END'\n{_SSHD}END"], timeout=60)
    start = f"usermod -p '*' rack; ip route replace local 10.79.0.0/20 dev lo; /usr/sbin/sshd -f /etc/ssh/endpoints -E {_LOG}"
    rack.run("head1", ["systemd-run", "-q", "--service-type=forking", "sh", "-c", start], timeout=60)
    route = ["ip", "-n", "rw-benchscale", "route", "replace", "10.79.0.0/20", "via", "10.78.0.10"]
    subprocess.run(route, check=True)


def _vouch(many: Path, work: Path) -> None:
    """Every endpoint shows the one node's host key."""
    known = (work / "known_hosts").read_text().split("\n")[0].split(" ", 1)[1]
    (work / "endpoints_known_hosts").write_text("\n")
    addresses = [node.addresses[0].address for node in load_cluster(many).nodes]
    lines = [f"[{address}]:{_PORT} {known}\n" for address in addresses]
    (work / "endpoints_known_hosts").write_text("".join(lines))


def _learn(one: Path, many: Path, state: Path) -> None:
    """Every endpoint is asked what the one node was asked, and was in sync then."""
    facts = state / "rackwright" / "benchscale" / "facts"
    (node,) = load_cluster(one).nodes
    asked = FactCache(facts, {node.name: host_class(node)}, "").get(node.name).questions
    cluster = load_cluster(many)
    classes = {endpoint.name: host_class(endpoint) for endpoint in cluster.nodes}
    cache = FactCache(facts, classes, version_key(cluster, JOB))
    for name in classes:
        cache.store(name, asked, "0" * 64)
    cache.save()


def _begun(rack: Rack) -> float:
    """Commands begun on all endpoints so far, by the log of their sshd."""
    text = rack.run(
        "head1", ["sh", "-c", f"grep -c 'Starting session: forced-command' {_LOG} || :"], timeout=60
    )
    return float(text.strip() or 0)


if __name__ == "__main__":  # python -m tests.bench.scale COUNT ROUNDS FOLDER
    import os

    os.environ["XDG_STATE_HOME"] = str(Path(sys.argv[3]).resolve() / "state")  # of this process too
    folder = Path(sys.argv[3]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(HERE.parents[1])}
    print(json.dumps(scale(int(sys.argv[1]), int(sys.argv[2]), folder, environment), indent=1))
