"""Two lab nodes that are declared to have GPUs, a fake driver on them, and a repository beside the cluster file.

The program is a copy: somebody who edits a template meanwhile would be found as drift.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rackwright.catalog.read import catalogue
from rackwright.lab import smi_xml
from rackwright.lab.rack import Rack

REPO = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
NODES = {"gpu1": "dgx-h100", "gb1": "dgx-gb200"}
LAYOUT = {"3g.40gb": 2}
_FILE = """\
version: 1
cluster: {{name: {name}, domain: lab.test}}
defaults: {{os: debian-13, platform: container, lab: {{cpus: 2, memory_mib: 1024}}}}
networks:
  management: {{purpose: management, cidr: 10.118.0.0/24, gateway: 10.118.0.1}}
ssh: {{user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}}
gpu_stack: {{source: mirror, package_index: [repository/Packages], cuda: none, nccl: none}}
nodes:
  - nodes: gpu1
    roles: [head, worker]
    sku: dgx-h100
    addresses: {{management: 10.118.0.10}}
    mig: {mig}
  - nodes: gb1
    roles: [worker]
    sku: dgx-gb200
    rack: r1
    addresses: {{management: 10.118.0.11}}
roles:
  fabricmanager: {{log_level: warning}}
  imex: {{}}
  mig: {{}}
  dcgm: {{}}
  gdrcopy: {{}}
  gpudirect: {{}}
  nvidia_container_toolkit: {{}}
"""
_FAKE = "/var/lib/fake-gpus"


class Site:
    """What the tests need of the rack and of the folder beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"gpus{os.getpid()}"
        self.file = folder / "cluster.yaml"
        self.repository = folder / "repository"
        self.declare(LAYOUT)
        code = folder / "code"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPO / "rackwright", code / "rackwright", ignore=ignored)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PYTHONPATH": str(code),
            "COLUMNS": "200",
        }

    def declare(self, mig: dict[str, int]) -> None:
        """Write the cluster file with this layout."""
        self.file.write_text(_FILE.format(name=self.name, mig=json.dumps(mig)))

    @property
    def rack(self) -> Rack:
        return Rack.named(self.name)

    def cli(self, *arguments: str, expect: int | None = 0) -> str:
        """Run the program; AssertionError with all it said on another exit status."""
        done = subprocess.run(
            [sys.executable, "-m", "rackwright", arguments[0], str(self.file), *arguments[1:]],
            capture_output=True, text=True, timeout=400, check=False, cwd=self.folder, env=self.environment,
        )  # fmt: skip
        said = f"{done.stdout}\n{done.stderr}"
        assert expect is None or done.returncode == expect, f"{arguments}: {done.returncode}, {said[-6000:]}"
        return said if expect != 0 else done.stdout

    def lab(self, word: str) -> None:
        """`rackwright lab WORD FILE`."""
        subprocess.run(
            [sys.executable, "-m", "rackwright", "lab", word, str(self.file)],
            check=True, capture_output=True, timeout=400, cwd=self.folder, env=self.environment,
        )  # fmt: skip

    def verified(self) -> dict[tuple[str, str, str], tuple[str, str]]:
        """(node, role, check) -> (status, evidence)."""
        told = json.loads(self.cli("verify", "--json", expect=None).partition("\n\n")[0] or "{}")
        return {
            (one["node"], one["role"], one["check"]): (one["status"], one["evidence"])
            for one in told["results"]
        }

    def on(self, node: str, script: str) -> str:
        """Run a shell script as root on a node, past ssh."""
        return self.rack.run(node, ["bash", "-ec", script], 120)

    def send(self, node: str, folder: Path, to: str) -> None:
        """Put a folder of this machine in the place of one on a node."""
        packed = subprocess.run(
            ["tar", "c", "-C", str(folder), "."], capture_output=True, check=True, timeout=60
        )
        words = ("sudo", "sh", "-c", f"'rm -rf {to} && mkdir -p {to} && tar xo -C {to}'")
        done = subprocess.run(
            self.rack.ssh_command(node, words),
            input=packed.stdout,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def serve(self) -> None:
        """Give the nodes the repository as it is now, and nothing else."""
        for node in NODES:
            self.send(node, self.repository, "/srv/gpus")
            self.on(
                node,
                "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; "
                "echo 'deb [trusted=yes] file:/srv/gpus ./' >/etc/apt/sources.list.d/gpus.list; "
                "rm -f /var/lib/apt/rackwright-index-read; apt-get -q update >/dev/null",
            )

    def place_driver(self) -> None:
        """A fake nvidia-smi with the declared GPUs, MIG off, where the driver's would be."""
        for node, sku in NODES.items():
            gpus = catalogue()[sku].gpus
            assert gpus is not None
            here = self.folder / f"driver-{node}"
            here.mkdir()
            (here / "off.xml").write_text(smi_xml.document(gpus))
            layout = tuple(name for name, count in LAYOUT.items() for _ in range(count))
            (here / "on.xml").write_text(smi_xml.document(gpus, layout))
            (here / "state.json").write_text(json.dumps(_state(gpus.count)))
            (here / "nvidia-smi").write_text((HERE / "fake_nvidia_smi.py").read_text())
            self.send(node, here, _FAKE)
            self.on(
                node, f"install -m 755 {_FAKE}/nvidia-smi /usr/local/bin/nvidia-smi; nvidia-smi -L >/dev/null"
            )


def _state(count: int) -> dict[str, Any]:
    return {
        "apps": [],
        "needs_reset": False,
        "can_reset": True,
        "gpus": [
            {
                "index": index,
                "uuid": smi_xml.uuid(index),
                "mode": "Disabled",
                "pending": "Disabled",
                "instances": [],
            }
            for index in range(count)
        ],
    }
