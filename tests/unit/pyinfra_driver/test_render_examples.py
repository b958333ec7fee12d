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


_RENDER_ALL = """
import json, sys; from pathlib import Path
from rackwright.engine.render import render_node; from rackwright.clusterfile.load import load_cluster
cluster = load_cluster(Path(sys.argv[1]))
for node in cluster.nodes: print(json.dumps([node.name, render_node(cluster, node)]))
"""


def _python(folder: Path, *arguments: str) -> str:
    """Run Python where no address can be reached and nothing was configured before; it leaves nothing but its state."""
    before = {path.name for path in folder.iterdir()}
    environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_CONFIG_HOME": f"{folder}/config"}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} - {"state"} == before - {"state"}
    assert not [path for path in folder.rglob("*") if "secrets" in path.name or "identity" in path.name]
    return done.stdout


@each
def test_every_node_renders_whole(tmp_path: Path, example: Path):
    file = copied(example, tmp_path)
    rendered = _python(tmp_path, "-c", _RENDER_ALL, str(file))
    nodes = dict(json.loads(line) for line in rendered.splitlines())
    assert set(nodes) == set(load_cluster(file).by_name)
    for files in nodes.values():
        assert len(files) > 30
        assert {"/etc/hosts", "/etc/slurm/slurm.conf", "/etc/munge/munge.key"} <= set(files)
        assert all(name in files["/etc/hosts"] for name in nodes)
        assert all(text.strip() for text in files.values())
        assert not [path for path, text in files.items() if "{{" in text and not path.endswith(".py")]
        assert "secret" in files["/etc/munge/munge.key"]


def test_the_program_renders_a_node(tmp_path: Path):
    file = copied(INVENTORY / "example-dgx-h100.yaml", tmp_path)
    render = ("-m", "rackwright", "render", str(file), "--node", load_cluster(file).nodes[-1].name)
    files = json.loads(_python(tmp_path, *render, "--json"))["files"]
    assert {"/etc/hosts", "/etc/slurm/slurm.conf", "/etc/munge/munge.key"} <= set(files)
    assert _python(tmp_path, *render, "--path", "/etc/hosts") == files["/etc/hosts"]
