"""Simulated GPUs: what the tools print is what the probe reads, and each fault is one a check objects to."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from rackwright.catalog.read import catalogue
from rackwright.errors import LabError
from rackwright.health.judge import judge
from rackwright.health.probe.gpus import parse, parse_mig_list
from rackwright.health.probe.kernel_log import sort_out
from rackwright.lab import gpu_node, gpus, names
from rackwright.lab.spec import NodeSpec
from rackwright.status import Status
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import document

H100 = catalogue()["lab-h100-node"].gpus
ASKED = ("-q -x", "nvlink -s", "nvlink -e", "topo -m", "-L")
CAUGHT_BY = {
    "lost": "gpu-count",
    "ecc": "gpu-ecc-uncorrected",
    "throttle": "gpu-throttle",
    "pcie-width": "gpu-pcie-width",
    "mig-mismatch": "gpu-mig-mode",
    "nvlink-down": "nvlink-up",
    "driver-mismatch": "driver-mismatch-log",
    "xid:79": "xid-hardware",
    "xid:48": "xid-hardware",
}


def spec(**changes):
    told = json.dumps({"gpus": H100.model_dump(mode="json"), "mig": []})
    return NodeSpec(**{"name": "w1", "address": "10.0.0.2", "prefix_length": 24, "image": "debian-13", "cpus": 1,
                       "memory_mib": 512, "mtu": 1500, "gpus": told, **changes})  # fmt: skip


def test_every_fault_is_in_the_table():
    assert {kind.partition(":")[0] for kind in CAUGHT_BY} == {*gpus.KINDS, "xid"}


@pytest.mark.parametrize("kind", CAUGHT_BY)
def test_each_fault_is_failed_by_its_check_and_heals(kind):
    base = BASES["full"]

    def broken(node):
        tools = gpus.tools(base.sku.gpus, (), [kind])
        for arguments in ASKED:
            text = tools.documents.get(arguments)
            failed = (gpus.MISMATCH_EXIT, tools.fails, "")
            node.commands[f"nvidia-smi {arguments}"] = failed if tools.fails else text
        node.log(*gpus.kernel_lines(base.sku.gpus, kind))

    def verdict(node):
        return {one.check: one for one in judge(base.expected, document(node))}

    found = verdict(base.node.with_fault(broken))[CAUGHT_BY[kind]]
    assert found.status is Status.FAIL, found
    assert verdict(base.node)[CAUGHT_BY[kind]].status is Status.PASS


def test_seven_of_eight_are_told_alike_by_every_tool():
    tools = gpus.tools(H100, (), ["lost"])
    assert len(parse(tools.documents["-q -x"])["gpus"]) == parse(tools.documents["-q -x"])["attached"] == 7
    assert tools.documents["-L"].count("\n") == 7
    assert "GPU7" not in tools.documents["topo -m"]
    assert gpus.discovery(H100, tools.documents["-L"]).startswith("7 GPUs found.\n")


def test_the_lost_gpu_is_the_one_the_kernel_names():
    last = parse(gpus.documents(H100)["-q -x"])["gpus"][-1]
    entries = sort_out([(0.0, line) for line in gpus.kernel_lines(H100, "lost")])["entries"]
    assert {entry["device"] for entry in entries if entry["kind"] == "xid"} == {
        last["address"].rpartition(".")[0]
    }


def test_everything_says_that_it_is_simulated():
    told = gpus.documents(H100)
    for arguments in ("-q -x", "-L", "nvlink -s", "nvlink -e"):
        assert "imulated" in told[arguments]
    assert "simulated" in gpus.discovery(H100, told["-L"])
    assert "simulated" in gpus.BOOT


def test_mig_instances_are_listed():
    told = gpus.documents(H100, ("3g.40gb", "3g.40gb"))
    assert set(map(tuple, parse_mig_list(told["-L"]).values())) == {("3g.40gb", "3g.40gb")}


@pytest.mark.parametrize("kind", ["", "xid", "xid:0", "xid:x", "burnt", "xid:1000"])
def test_faults_that_do_not_exist_are_refused_with_those_that_do(kind):
    with pytest.raises(LabError) as refused:
        gpu_node.check(spec(), kind)
    assert "gpu:nvlink-down" in refused.value.hint


def test_a_node_without_gpus_has_none_that_break():
    with pytest.raises(LabError, match="node w1 has no GPUs to break"):
        gpu_node.check(spec(gpus=None), "lost")


def test_a_gpu_without_nvlink_has_no_link_that_goes_down(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "RUNTIME", tmp_path)
    told = json.dumps({"gpus": catalogue()["l40s-8x"].gpus.model_dump(mode="json"), "mig": []})
    with pytest.raises(LabError, match="cannot have the fault nvlink-down"):
        gpu_node.place("r", spec(gpus=told), ["nvlink-down"])


def tool(folder, name, *arguments):
    """Run a tool as a node has it, its documents where they are placed, installed programs below the folder."""
    text = (folder / name).read_text().replace(gpu_node.PRINTED, shlex.quote(str(folder / "replies")))
    text = text.replace("/usr/bin/", f"{folder}/installed/")
    return subprocess.run(["sh", "-c", text, name, *arguments], capture_output=True, text=True, check=False)


def test_the_tools_print_what_was_placed_word_for_word(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "RUNTIME", tmp_path)
    options = gpu_node.make("r", spec())
    folder = names.node_state("r", "w1") / "gpus"
    assert f"--bind={folder}/kmsg:/dev/kmsg" in options
    for arguments in ASKED:
        done = tool(folder, "nvidia-smi", *arguments.split())
        assert (done.returncode, done.stdout) == (0, gpus.documents(H100)[arguments])
    assert tool(folder, "dcgmi", "discovery", "-l").stdout.startswith("8 GPUs found.")
    strange = tool(folder, "nvidia-smi", "--query-gpu=name")
    assert (strange.returncode, strange.stdout) == (2, "")
    assert "knows only" in strange.stderr
    gpu_node.place("r", spec(), ["driver-mismatch"])
    failed = tool(folder, "nvidia-smi", "-q", "-x")
    assert (failed.returncode, failed.stdout.splitlines()[0]) == (
        18, "Failed to initialize NVML: Driver/library version mismatch",
    )  # fmt: skip
    gpu_node.place("r", spec())
    assert tool(folder, "nvidia-smi", "-L").stdout.count("UUID") == 8


def test_an_installed_tool_answers_what_was_not_placed(tmp_path, monkeypatch):
    """dcgmi of a package names its version, and finds the simulated GPUs all the same."""
    monkeypatch.setattr(names, "RUNTIME", tmp_path)
    gpu_node.make("r", spec())
    folder = names.node_state("r", "w1") / "gpus"
    program = folder / "installed" / "dcgmi"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "dcgmi version: 4.6.0 ($*)"\n')
    program.chmod(0o755)
    assert tool(folder, "dcgmi", "--version").stdout == "dcgmi version: 4.6.0 (--version)\n"
    assert tool(folder, "dcgmi", "discovery", "-l").stdout.startswith("8 GPUs found.")
    assert tool(folder, "nvidia-smi", "--version").returncode == 2


def test_what_leaves_a_line_in_the_kernels_log():
    assert {kind for kind in CAUGHT_BY if gpu_node.logs(spec(), kind)} == {
        "lost",
        "driver-mismatch",
        "xid:79",
        "xid:48",
    }
