"""The file between the collector and the server."""

from __future__ import annotations

import json
import os

import pytest

from rackwright.workload.slurm.metrics.snapshot import Snapshot, Unreadable, read, write


@pytest.mark.parametrize(
    "snapshot",
    [
        Snapshot(12.5, 12.5, None, b"slurm_nodes 3.0\n"),
        Snapshot(43.0, 12.5, "`squeue` gave no answer\nwithin 8 s", b"slurm_nodes 3.0\n"),
        Snapshot(1.0),
    ],
)
def test_what_is_written_is_read(tmp_path, snapshot):
    path = str(tmp_path / "metrics")
    write(path, Snapshot(0.0))
    write(path, snapshot)
    assert read(path) == snapshot
    assert os.listdir(tmp_path) == ["metrics"]
    assert oct(os.stat(path).st_mode & 0o777) == "0o640", "its group reads it, users do not"


def test_nothing_is_there(tmp_path):
    with pytest.raises(Unreadable, match=r"No such file or directory$"):
        read(str(tmp_path / "metrics"))


HEAD = {"format": 1, "attempted": 1.0, "collected": 1.0, "error": None}
MARK = "# rackwright-slurm-metrics "


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slurm_nodes 3.0\n",
        json.dumps(HEAD),
        f"{MARK}{json.dumps(HEAD)[:-3]}",
        f"{MARK}{json.dumps({**HEAD, 'format': 2})}\n",
        f"{MARK}{json.dumps({**HEAD, 'attempted': None})}\n",
        f"{MARK}{json.dumps({**HEAD, 'collected': float('nan')})}\n",
        f"{MARK}{json.dumps({**HEAD, 'collected': 'x'})}\n",
        f"{MARK}[]\n",
        f"{MARK}" + json.dumps({"format": 1}) + "\n",
    ],
)
def test_what_is_no_snapshot(tmp_path, text):
    path = tmp_path / "metrics"
    path.write_text(text)
    with pytest.raises(Unreadable, match=r"is not a snapshot of this version$"):
        read(str(path))
