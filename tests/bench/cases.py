"""The contestants: how each gets its list of nodes, and the command that runs the job once."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.lab.rack import Rack
from rackwright.model.cluster import Cluster
from tests.bench.job.playbook import playbook

HERE = Path(__file__).resolve().parent
JOB = HERE / "job" / "rackwright_job.py"
STOCK_JOB = HERE / "job" / "pyinfra_job.py"
STOCK_API = HERE / "job" / "pyinfra_api.py"
_PEER_PACKAGES = ("ansible-core==2.19.*", "mitogen==0.3.54", "pyinfra>=3.10,<4")


@dataclass(frozen=True)
class Case:
    """One contestant."""

    name: str
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    nodes_max: int = 100
    """Beyond this it would take over five minutes here."""


def peers_python(folder: Path) -> Path:
    """A virtual environment with the peers, made once."""
    python = folder / "bin" / "python"
    if not (folder / "bin" / "ansible-playbook").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "-q", "install", *_PEER_PACKAGES], check=True)
    return python


def cases(cluster: Cluster, work: Path, peers: Path) -> list[Case]:
    """Every contestant for this cluster; files they need are written below `work`."""
    namespace = ["ip", "netns", "exec", f"rw-{cluster.name}"]
    ours = [sys.executable, str(HERE / "ours.py"), str(cluster.path)]
    _ansible_files(cluster, work)
    _stock_inventory(cluster, work)
    ansible = [*namespace, str(peers.parent / "ansible-playbook"), "-i", str(work / "hosts.json")]
    ansible += [str(work / "playbook.json")]
    mitogen = peers.parent.parent / "lib"
    strategy = next(mitogen.glob("python*/site-packages/ansible_mitogen/plugins/strategy"), mitogen)
    configured = {"ANSIBLE_CONFIG": str(work / "ansible.cfg")}
    pyinfra = [
        *namespace,
        str(peers.parent / "pyinfra"),
        "-y",
        str(work / "stock_inventory.py"),
        str(STOCK_JOB),
    ]
    api = [*namespace, str(peers), str(STOCK_API), str(work / "stock_inventory.py"), str(STOCK_JOB)]
    return [
        Case("rackwright drift (digest)", [*ours, "digest"]),
        Case("rackwright plan --full", [*ours, "full"]),
        Case("pyinfra CLI --dry", [*pyinfra[:-3], "--dry", *pyinfra[-2:]]),
        Case("pyinfra CLI -y", pyinfra),
        Case("pyinfra API", api, nodes_max=10),
        Case("ansible + mitogen", ansible, {**configured, "ANSIBLE_STRATEGY_PLUGINS": str(strategy),
             "ANSIBLE_STRATEGY": "mitogen_linear"}, nodes_max=10),
        Case("ansible-core", ansible, configured, nodes_max=10),
    ]  # fmt: skip


def _ansible_files(cluster: Cluster, work: Path) -> None:
    playbook(work / "playbook.json")
    hosts = {node.name: {"ansible_host": str(cluster.management_address(node))} for node in cluster.nodes}
    shared = {
        "ansible_user": cluster.ssh.user,
        "ansible_ssh_private_key_file": str(cluster.ssh.key),
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={cluster.ssh.known_hosts}",
    }
    (work / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": shared}}))
    (work / "ansible.cfg").write_text(
        "[defaults]\nforks = 50\nhost_key_checking = True\n"
        "[ssh_connection]\npipelining = True\n"
        "ssh_args = -o ControlMaster=auto -o ControlPersist=60s\n"
    )


def _stock_inventory(cluster: Cluster, work: Path) -> None:
    data = {
        "ssh_user": cluster.ssh.user,
        "ssh_key": str(cluster.ssh.key),
        "ssh_known_hosts_file": str(cluster.ssh.known_hosts),
        "ssh_strict_host_key_checking": "yes",
        "_sudo": True,
    }
    hosts = [(node.name, {"ssh_hostname": str(cluster.management_address(node))}) for node in cluster.nodes]
    (work / "stock_inventory.py").write_text(f"nodes = ({hosts!r}, {data!r})\n")


def executions(rack: Rack, node: str) -> float:
    """How often sudo ran something on a node, by its own log."""
    text = rack.run(node, ["sh", "-c", "journalctl -q -o cat _COMM=sudo --grep COMMAND= | wc -l"], timeout=60)
    return float(text.strip() or 0)
