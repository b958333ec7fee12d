"""The checkpoint stage: three runs recorded from torch 2.13 with four ranks, and what is wrong with others."""

import json
from dataclasses import replace
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.status import Status
from rackwright.storage.checkpoint import KILLED, MODES, judge, run_of
from rackwright.storage.programs import checkpoint
from rackwright.storage.programs.children import MARK
from rackwright.storage.report import CheckpointResult
from rackwright.workload.protocol import Output
from tests.unit.answers import is_harmless
from tests.unit.storage.sites import line, recorded

STAGE = CheckpointResult(
    nodes=("w1", "w2"), ranks=4, rank_bytes=8 * 2**20, backend="gloo", interval_seconds=60.0, killed_rank=3
)
TEXTS = {mode: recorded(f"checkpoint-2.13-{mode}.txt") for mode in MODES}


def judged(most_percent=None, **texts):
    runs = {
        mode: run_of(Output(text, 0, "the step"))
        for mode, text in (TEXTS | texts).items()
        if text is not None
    }
    return judge(STAGE, runs, most_percent)


def edited(mode, change):
    """A recorded run whose results were changed."""
    lines = []
    for text in TEXTS[mode].splitlines():
        if text.startswith(MARK):
            document = json.loads(text.removeprefix(MARK))
            change(document)
            text = MARK + json.dumps(document)
        lines.append(text)
    return "\n".join(lines)


def facts(**changes):
    def change(document):
        if "facts" in document and "digests" in document["facts"]:
            document["facts"].update(changes)

    return change


def test_the_recorded_runs_pass():
    result, findings = judged()
    assert findings == ()
    assert (result.loaded, result.torch, len(result.save_seconds)) == ("step-4", "2.13.0+cpu", 3)
    assert 16 * 2**20 < result.partial_bytes < 4 * 8.1 * 2**20, "what the rank that died left"
    assert result.seconds == max(result.save_seconds)
    assert result.percent == 100 * result.seconds / 60
    assert result.save_gbs == 4 * 8 * 2**20 / result.seconds / 1e9


def test_the_rank_died_in_mid_write():
    run = run_of(Output(TEXTS["break"], 0))
    assert run.exits == {0: 1, 1: 1, 2: 1, 3: KILLED}
    assert [one.saved for one in run.facts] == ["step-4"]


def test_runs_on_a_real_h100_pass():
    """One rank with 8 GiB on the GPU, NCCL, torch 2.11, a local disk; recorded 2026-11-26."""
    stage = replace(STAGE, nodes=("gpu1",), ranks=1, rank_bytes=2**33, backend="nccl", killed_rank=0)
    runs = {mode: run_of(Output(recorded(f"checkpoint-2.11-h100-{mode}.txt"), 0)) for mode in MODES}
    result, findings = judge(stage, runs, None)
    assert findings == ()
    assert (result.loaded, result.torch, result.partial_bytes) == ("step-4", "2.11.0+cu130", 2**32)
    assert 0.4 < result.save_gbs < 0.45


def test_more_ranks_than_gpus_are_named():
    """The error is that of the same machine: two ranks, one GPU."""
    wrong = "AcceleratorError: CUDA error: invalid device ordinal GPU device may be out of range"
    text = line({"rank": 1, "error": wrong}) + line({"exits": {"0": None, "1": 1}})
    _, findings = judged(reference=text)
    assert [(one.status, wrong in one.text) for one in findings] == [(Status.UNKNOWN, True)]


@pytest.mark.parametrize(
    ("backend", "calls"), [("nccl", ["init_process_group", "all_reduce"]), ("gloo", ["init_process_group"])]
)
def test_the_gpu_of_barriers_is_the_rank_s_own(backend, calls, monkeypatch):
    """NCCL guessed it from the rank among all nodes, where a barrier came first (seen with torch 2.11)."""
    torch, modules = MagicMock(), {"torch.distributed": MagicMock()}
    monkeypatch.setattr(
        checkpoint.importlib,
        "import_module",
        lambda name: modules.get(name) or modules.setdefault(name, MagicMock()),
    )
    asked = {
        "nodes": ["w1", "w2"],
        "addresses": ["10.0.0.1", "10.0.0.2"],
        "ranks_per_node": 2,
        "backend": backend,
        "folder": "/shared",
        "size": 4096,
        "port": 1,
        "seconds": 9,
    }
    checkpoint.Training(asked, rank=3, local=1, torch=torch)
    assert [name for name, *_ in modules["torch.distributed"].method_calls] == calls
    if backend == "nccl":
        torch.zeros.assert_called_once_with(1, device="cuda:1")


@pytest.mark.parametrize(
    ("texts", "status", "text"),
    [
        ({"resume": edited("resume", facts(matches=False))}, "FAIL", "the checksums of step-4 differ from those that were saved"),
        ({"resume": edited("resume", facts(digests=["0" * 64] * 4))}, "FAIL", "ends in a different state from uninterrupted training"),
        ({"resume": edited("resume", facts(loaded="step-8"))}, "FAIL", "step-8 was loaded, but step-4 was the last complete save"),
        ({"resume": line({"rank": 0, "error": "CheckpointException: missing"})}, "FAIL", "the run `resume` failed: rank 0: CheckpointException"),
        ({"resume": line({"rank": 0, "error": "RuntimeError: Connection closed"})}, "UNKNOWN", "the run `resume` failed: rank 0: RuntimeError"),
        ({"resume": line({"exits": {"0": None, "1": 0}})}, "UNKNOWN", "ranks 0 did not end in time"),
        ({"resume": edited("resume", facts(partial={}))}, "UNKNOWN", "it is unknown whether the rank died in mid-write"),
        ({"resume": None}, "UNKNOWN", "the run `resume` did not run"),
        ({"break": edited("break", lambda d: d.get("exits", {}).update({"3": 0}) if "3" in d.get("exits", {}) else None)}, "UNKNOWN",
         "rank 3 was not killed while it wrote (it ended with 0)"),
        ({"break": line({"exits": {"3": -9}})}, "UNKNOWN", "the first save did not end"),
        ({"reference": line({"missing": "torch cannot be loaded: No module named 'torch'"})}, "UNKNOWN",
         "torch cannot be loaded: No module named 'torch'; see `storage_bench.torch`"),
        ({"reference": ""}, "UNKNOWN", "the run `reference` failed: no answer (nothing)"),
        ({"reference": f"{MARK}{{\n"}, "UNKNOWN", "unusable answer"),
    ],
)  # fmt: skip
def test_what_is_against_it(texts, status, text):
    _, findings = judged(**texts)
    assert any(found.status == status and text in found.text for found in findings), findings


def test_the_share_of_the_interval_is_judged_where_it_is_declared():
    result, _ = judged()
    assert judged(most_percent=result.percent + 1)[1] == ()
    [found] = judged(most_percent=result.percent / 2)[1]
    assert found.status is Status.FAIL
    assert "% of the 60 s between two saves; the declared maximum" in found.text


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_whatever_a_node_prints_is_unknown_and_printable(text):
    _, findings = judged(reference=f"{MARK}{text}\n")
    assert all(found.status is Status.UNKNOWN and is_harmless(found.text) for found in findings)
    assert findings
