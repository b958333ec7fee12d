"""rackwright storage: what is declared, and what is refused before anything runs."""

from __future__ import annotations

import json

import pytest

from tests.unit.clusterfile.base_file import BASE, change, problems_of

LAYOUT = """\
roles:
  storage_layout:
    disks: {d1: {slot: "0000:01:00.0"}}
    filesystems: {/scratch: {on: d1}}
  munge: {}
"""
SCRATCH = """\
storage:
  scratch:
    kind: local
    purpose: scratch
    path: /scratch
    roles: [worker]
    floor: {read_gbs: 4, write_gbs: 2, source: {text: the vendor's data sheet, read: 2026-11-26}}
    bench: {size_mib: 1024}

ssh:
"""


def text_of(section=SCRATCH):
    return change(("ssh:\n", section), ("roles:\n  munge: {}\n", LAYOUT))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(text_of())
    return path


def lines_of(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_declared_filesystems(rackwright, file):
    result = rackwright("storage", "show", file)
    assert (result.status, result.err) == (0, "")
    assert lines_of(result.out) == [
        "NAME KIND PURPOSE PATH SERVERS MOUNTED BY FLOORS",
        "scratch local scratch /scratch - w[1-4] read_gbs 4, write_gbs 2",
        "scratch is not measured: no node that runs jobs uses it",
    ]


def test_the_document(rackwright, file):
    document = json.loads(rackwright("storage", "show", file, "--json").out)
    [one] = document["filesystems"]
    assert (document["kind"], document["version"]) == ("rackwright.storage.show", 1)
    assert (one["name"], one["bench"]["size_mib"], one["floor"]["read_gbs"]) == ("scratch", 1024, 4.0)
    assert one["not_measured"] == "no node that runs jobs uses it"


@pytest.mark.parametrize("command", ["show", "bench", "checkpoint"])
def test_a_name_that_does_not_exist(rackwright, file, command):
    result = rackwright("storage", command, file, "--fs", "scrach")
    assert result.status == 1
    assert (
        result.err == "error: There is no filesystem scrach in cluster demo.\nhint: did you mean `scratch`?\n"
    )


def test_a_file_without_storage(rackwright, tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(BASE)
    result = rackwright("storage", "bench", path)
    assert result.status == 1
    assert result.err.startswith("error: Cluster demo declares no filesystem.\n")


def test_local_drives_have_no_checkpoint_stage(rackwright, file):
    result = rackwright("storage", "checkpoint", file)
    assert result.err.startswith(
        "error: No filesystem has a checkpoint stage.\nhint: declare `purpose: checkpoint`"
    )


def test_a_cluster_without_a_workload_manager(rackwright, file):
    result = rackwright("storage", "bench", file)
    assert result.status == 1
    assert "no role of cluster demo runs one" in result.err


@pytest.mark.parametrize(
    ("bench", "message", "hint"),
    [
        ("{block_kib: 6}", "`block_kib` must be a multiple of 4, not 6.", "e.g. `block_kib: 4096`"),
        (
            "{size_mib: 6, block_kib: 4096}",
            "`size_mib` (6) must be a whole number of blocks of 4096 KiB.",
            "e.g. `size_mib: 4096, block_kib: 4096`",
        ),
        (
            "{depth: 8}",
            "psync has one I/O in flight: `depth` above 1 has no effect.",
            "e.g. `engine: libaio`, or more `jobs`",
        ),
        ("{folder: ../etc}", "`folder` (../etc) points outside the filesystem.", "e.g. `folder: bench`"),
        (
            "{checkpoint: {ranks_per_node: 1}}",
            "The checkpoint stage needs at least four ranks.",
            "e.g. `ranks_per_node: 2`",
        ),
    ],
)
def test_mistakes(tmp_path, bench, message, hint):
    text = text_of(SCRATCH.replace("{size_mib: 1024}", bench))
    [problem] = problems_of(tmp_path, text)
    assert (problem.message, problem.hint) == (message, hint)
    assert text.splitlines()[problem.line - 1].strip().startswith("bench:")
