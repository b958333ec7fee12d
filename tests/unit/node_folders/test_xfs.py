"""Projects on a real XFS, on a loop device in a mount namespace of the test's own. The kernel here need not have quotas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = r"""
set -e
truncate -s 320M "$1/image"
mkfs.xfs -q "$1/image"
mkdir "$1/scratch"
mount -o loop,noatime "$1/image" "$1/scratch"
exec "$2" -c "$3" "$1/scratch"
"""
PROGRAM = r"""
import json, os, sys
from rackwright.node_folders.mounted import mounted, opened, own
from rackwright.node_folders.quota import project_of, set_project
from rackwright.node_folders.removal import clear, move_away
found = []
with mounted(sys.argv[1]) as root, own(root, "jobs", 0o755) as jobs, own(root, ".bin", 0o700) as bin_folder:
    for job, project in (("12", 1073741836), ("13", 1073741837)):
        os.mkdir(job, 0o700, dir_fd=jobs)
        with opened(job, jobs) as folder:
            set_project(folder, project)
            os.mkdir("sub", dir_fd=folder)
            with opened("sub", folder) as sub:
                found.append((project_of(folder), project_of(sub)))
                os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=sub))
        move_away(job, jobs, bin_folder)
    removed = clear(bin_folder, 20)
    found.append((removed.is_complete, os.listdir(bin_folder)))
print(json.dumps(found))
"""


@pytest.mark.slow
def test_what_is_made_in_a_folder_counts_to_its_project_and_is_removed(tmp_path):
    """A rename out of a project must not fail with EXDEV, as one into a project does."""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT, "sh", str(tmp_path), sys.executable, PROGRAM],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout) == [
        [1073741836, 1073741836],
        [1073741837, 1073741837],
        [True, []],
    ]


LATER = r"""
import json, os, sys
from rackwright.node_folders.quota import project_of
from rackwright.roles.dataset_cache import node_cache, node_copy
from rackwright.node_folders.mounted import FOLDER
from rackwright.roles.dataset_cache.node_fetch import fetch
top = sys.argv[1]
limits = {}
node_cache.usage = lambda mount: {project: (0, gib << 20) for project, gib in limits.items()}
node_cache.set_limit = lambda mount, project, gib: limits.update({project: gib})
node_copy.mounted_folder = lambda path: os.open(path, FOLDER)
os.makedirs(top + "/data/a")
open(top + "/data/a/file", "w").write("x")
declared = {"mount": top + "/data", "from": top + "/data/a", "gib": 1, "keep": True, "checksums": None}
settings = {"root": top, "folder": "datasets", "limit_gib": 3, "project": 0, "group": None, "fetch_seconds": 20}
settings["datasets"] = {"a": declared, "b": declared}
state = top + "/run"
with node_cache.opened_cache(settings, state) as cache:
    fetch(cache, "a")
    os.makedirs(cache.incoming("b") + "/sub")
with node_cache.opened_cache({**settings, "project": 7}, state) as cache:
    path = fetch(cache, "b")
    print(json.dumps([os.listdir(path), project_of(os.open(path, FOLDER)), cache.names(), limits]))
    cache.drop("a")
    cache.drop("b")
"""


@pytest.mark.slow
def test_a_cache_that_gets_a_project_later_goes_on_fetching(tmp_path):
    """With a copy that broke off before; limits are not the kernel's here."""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT, "sh", str(tmp_path), sys.executable, LATER],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout) == [["file"], 7, ["a", "b"], {"7": 3}]
