"""What every node of the example files would get, without a node and without leaving a secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from tests.examples import INVENTORY, cluster_files, copied

pytestmark = pytest.mark.slow

each = pytest.mark.parametrize("example", cluster_files("example-*.yaml"), ids=lambda file: file.stem)


def _rackwright(folder: Path, *arguments: str) -> str:
    """Run the program where no address can be reached and nothing was configured before."""
    environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_CONFIG_HOME": f"{folder}/config"}
    done = subprocess.run(
        [sys.executable, "-m", "rackwright", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_RENDER_ALL = """
import json, sys; from pathlib import Path
from rackwright.engine.render import render_node; from rackwright.clusterfile.load import load_cluster
cluster = load_cluster(Path(sys.argv[1]))
for node in cluster.nodes: print(json.dumps([node.name, render_node(cluster, node)]))
"""


@each
def test_every_node_renders_whole(example: Path):
    before = sorted(example.parent.iterdir())  # a lab that was brought up leaves its secrets here
    rendered = subprocess.check_output(
        [sys.executable, "-c", _RENDER_ALL, str(example)], text=True, timeout=240
    )
    nodes = dict(json.loads(line) for line in rendered.splitlines())
    assert set(nodes) == set(load_cluster(example).by_name)
    for files in nodes.values():
        assert len(files) > 30
        assert {"/etc/hosts", "/etc/slurm/slurm.conf", "/etc/munge/munge.key"} <= set(files)
        assert all(name in files["/etc/hosts"] for name in nodes)
        assert all(text.strip() for text in files.values())
        assert not [path for path, text in files.items() if "{{" in text and not path.endswith(".py")]
        assert "secret" in files["/etc/munge/munge.key"]
    assert sorted(example.parent.iterdir()) == before


def test_the_program_renders_a_node_and_leaves_nothing(tmp_path: Path):
    file = copied(INVENTORY / "example-dgx-h100.yaml", tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    name = load_cluster(file).nodes[-1].name
    files = json.loads(_rackwright(tmp_path, "render", str(file), "--node", name, "--json"))
    assert {"/etc/hosts", "/etc/slurm/slurm.conf", "/etc/munge/munge.key"} <= set(files)
    shown = _rackwright(tmp_path, "render", str(file), "--node", name, "--path", "/etc/hosts")
    assert shown == files["/etc/hosts"]
    assert {path.name for path in tmp_path.iterdir()} - {"state"} == before
    assert not [path for path in tmp_path.rglob("*") if "secrets" in path.name or "identity" in path.name]
