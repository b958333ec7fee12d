"""What every node of the example files would get, without a node and without leaving a secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from tests.examples import cluster_files, copied

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


_COUNT_FILES = """
import sys; from pathlib import Path
from rackwright.engine.render import render_node; from rackwright.clusterfile.load import load_cluster
cluster = load_cluster(Path(sys.argv[1]))
for node in cluster.nodes: print(node.name, len(render_node(cluster, node)))
"""


@each
def test_every_node_renders(example: Path):
    before = sorted(example.parent.iterdir())  # a lab that was brought up leaves its secrets here
    counted = subprocess.check_output(
        [sys.executable, "-c", _COUNT_FILES, str(example)], text=True, timeout=240
    )
    files = dict(line.split() for line in counted.splitlines())
    assert set(files) == set(load_cluster(example).by_name)
    assert min(map(int, files.values())) > 30
    assert sorted(example.parent.iterdir()) == before


@each
def test_every_kind_of_node_renders_whole(tmp_path: Path, example: Path):
    """Through the program: one node of each role and SKU."""
    file = copied(example, tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    cluster = load_cluster(file)
    kinds = {(node.roles, node.sku.name): node.name for node in cluster.nodes}
    for name in kinds.values():
        files = json.loads(_rackwright(tmp_path, "render", str(file), "--node", name, "--json"))
        assert {"/etc/hosts", "/etc/slurm/slurm.conf", "/etc/munge/munge.key"} <= set(files)
        assert all(node.name in files["/etc/hosts"] for node in cluster.nodes)
        assert all(text.strip() for text in files.values())
        assert not [path for path, text in files.items() if "{{" in text and not path.endswith(".py")]
        assert "secret" in files["/etc/munge/munge.key"]
    shown = _rackwright(tmp_path, "render", str(file), "--node", name, "--path", "/etc/hosts")
    assert shown == files["/etc/hosts"]
    assert {path.name for path in tmp_path.iterdir()} - {"state"} == before
    assert not [path for path in tmp_path.rglob("*") if "secrets" in path.name or "identity" in path.name]
