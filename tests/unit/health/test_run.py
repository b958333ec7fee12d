"""The fleet: one execution per node, judged here; and the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rackwright.cli import run as cli
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed, ExitCode, RackwrightError
from rackwright.health.run import health, judge_saved
from rackwright.node_programs import PROBE, one_text
from rackwright.status import Status
from tests.factories import make_cluster, make_node
from tests.unit.health.bases import SKUS
from tests.unit.health.fake_node import document
from tests.unit.health.faults import drop_gpu


class Shell:
    """Answers with a document, or with what each node is told to say."""

    def __init__(self, says):
        self.says, self.asked = says, []

    def run(self, node, command, *, stdin=None, timeout):
        self.asked.append((node, command, stdin))
        said = self.says[node]
        if isinstance(said, Exception):
            raise said
        return CommandResult(command, 0 if said else 1, said, "bash: python3: command not found")


@pytest.fixture
def fleet():
    sku = SKUS["dgx-h100"].sku
    return make_cluster(
        *[make_node(f"gpu{n}", n, sku=sku, platform="bare-metal", primary=n == 1) for n in (1, 2, 3)]
    )


def told(name, mutate=None):
    node = SKUS["dgx-h100"].node.with_fault(mutate or (lambda node: None))
    return json.dumps({**document(node), "node": name})


def test_each_node_is_asked_once_and_judged(fleet, tmp_path):
    lost = ConnectionFailed("Cannot connect to gpu3.")
    shell = Shell({"gpu1": told("gpu1"), "gpu2": told("gpu2", drop_gpu(3)), "gpu3": lost})
    found = health(fleet, shell=shell, save=tmp_path / "saved")
    assert sorted(node for node, _, _ in shell.asked) == ["gpu1", "gpu2", "gpu3"]
    assert all(stdin == one_text(PROBE) for _, _, stdin in shell.asked)
    second, third = found.nodes[1], found.nodes[2]
    assert (second.status, second.action.value) == (Status.FAIL, "reboot")
    assert (third.status, third.why) == (Status.UNKNOWN, "Cannot connect to gpu3.")
    assert found.exit_code is ExitCode.CHECK_FAILED
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == ["gpu1.json", "gpu2.json"]


def test_a_node_without_python_is_unknown(fleet):
    found = health(fleet, shell=Shell({"gpu2": ""}), limit="gpu2")
    assert found.exit_code is ExitCode.UNKNOWN
    assert {one.evidence for one in found.results if one.status is Status.UNKNOWN} == {
        "the probe exited 1: bash: python3: command not found"
    }


def test_a_node_nobody_knows_is_refused(fleet):
    with pytest.raises(RackwrightError):
        health(fleet, shell=Shell({}), limit="gpu9")


def test_a_saved_document_is_judged_offline(tmp_path, capsys):
    path = tmp_path / "gpu001.json"
    path.write_text(told("gpu001"))
    assert cli(["health", "--document", str(path), "--sku", "dgx-h100"]) == 0
    assert "1 nodes of a saved document: 1 PASS" in capsys.readouterr().out
    path.write_text(told("gpu001", drop_gpu(0)))
    assert cli(["health", "--document", str(path), "--sku", "dgx-h100"]) == 3
    out = capsys.readouterr().out
    assert "nvidia-smi lists 7 of 8 declared GPUs" in out
    assert "do: reboot: " in out
    assert cli(["health", "--document", str(path), "--sku", "dgx-h100", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["nodes"][0]["action"] == "reboot"
    path.write_text("half a docu")
    assert cli(["health", "--document", str(path), "--sku", "dgx-h100"]) == 1
    assert "known captures: nvidia-smi -q -x, " in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a cluster file"),
        (["--document", "/no/such.json", "--sku", "dgx-h100"], "cannot be read"),
        (["--document", __file__], "There is nothing to judge the document by."),
        (["--document", __file__, "--sku", "dgx-h101"], "did you mean `dgx-h100`?"),
    ],
)
def test_the_command_line_says_what_is_missing(arguments, words, capsys):
    assert cli(["health", *arguments]) in (1, 64)
    assert words in capsys.readouterr().err


def test_a_document_judged_by_another_sku_fails():
    assert judge_saved(SKUS["dgx-h200"].expected, told("x")).status is Status.FAIL


def test_the_page_and_the_probe_are_commands():
    for words in (["rackwright.health.docs"], ["rackwright.node_programs", PROBE]):
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=True)
        assert len(done.stdout) > 10000
