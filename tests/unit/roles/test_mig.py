"""The mig role: texts whole, the program run against a fake nvidia-smi, and its checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from rackwright.lab import smi_xml
from rackwright.roles.mig import partitions
from rackwright.roles.mig.deploy import program
from rackwright.roles.mig.options import MigOptions
from rackwright.roles.mig.verify import CHECKS
from tests.gpu_repository import MIG_PARTED
from tests.unit.roles.fake_facts import unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.stack_sites import site, worker
from tests.unit.roles.stack_tools import installed, xml

FAKE = Path(__file__).resolve().parents[2] / "racks" / "gpu_companions" / "fake_nvidia_smi.py"
MIXED = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
SEVEN = {"1g.10gb": 7}


def node(mig=None, sku="dgx-h100", number=11):
    return worker("gpu1", number, sku, mig=mig or {})


class Gpus:
    """A folder with the fake nvidia-smi and its GPUs."""

    def __init__(self, folder, count=1, **state):
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "nvidia-smi").write_text(
            f'#!/bin/sh\nFAKE_GPUS={folder} exec {sys.executable} -ISB {FAKE} "$@"\n'
        )
        (self.bin / "systemctl").write_text(f'#!/bin/sh\necho "$@" >>{folder}/systemctl\n')
        for tool in self.bin.iterdir():
            tool.chmod(0o755)
        self.folder = folder
        self.path = folder / "state.json"
        gpus = [
            {
                "index": index,
                "uuid": smi_xml.uuid(index),
                "mode": "Disabled",
                "pending": "Disabled",
                "instances": [],
            }
            for index in range(count)
        ]
        self.path.write_text(
            json.dumps({"apps": [], "needs_reset": False, "can_reset": True, "gpus": gpus, **state})
        )

    def change(self, **state):
        self.path.write_text(json.dumps({**json.loads(self.path.read_text()), **state}))

    def run(self, script):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, timeout=240, check=False, env=environment
        )

    def layout(self):
        return self.run(partitions.READ).stdout.strip()


def partitioning(mig, count=1):
    """The program for a node of fewer GPUs, to keep the test short."""
    declared = node(mig)
    gpus = declared.sku.gpus.model_copy(update={"count": count})
    small = declared.model_copy(update={"sku": declared.sku.model_copy(update={"gpus": gpus})})
    return program(small, MigOptions()), partitions.wanted(small)


def test_gpus_are_partitioned_once_and_restored(tmp_path):
    gpus = Gpus(tmp_path, count=2)
    assert gpus.layout() == "0: Disabled\n1: Disabled"
    assert gpus.run(partitions.SUMMARY).stdout == "2 GPUs: Disabled\n"
    for layout in (MIXED, {}):
        script, wanted = partitioning(layout, count=2)
        done = gpus.run(script)
        assert done.returncode == 0, done.stderr
        assert gpus.layout() == wanted
        again = gpus.run(script)
        assert again.stdout == "the GPUs are cut as declared\n"
    calls = (tmp_path / "systemctl").read_text().splitlines()
    assert calls.count("--no-block try-restart nvidia-cdi-refresh.service") == 2  # once for each change
    assert calls.count("stop nvidia-dcgm.service") == calls.count(
        "--no-block start nvidia-dcgm.service nvidia-dcgm-exporter.service"
    )


def test_an_ampere_board_takes_its_mode_with_a_reset(tmp_path):
    gpus = Gpus(tmp_path, needs_reset=True)
    script, wanted = partitioning(SEVEN)
    assert gpus.run(script).returncode == 0
    assert gpus.layout() == wanted


def test_a_board_that_cannot_be_reset_says_what_is_left_to_do(tmp_path):
    gpus = Gpus(tmp_path, needs_reset=True, can_reset=False)
    done = gpus.run(partitioning(SEVEN)[0])
    assert done.returncode == 1
    assert "GPU 0 takes its MIG mode at the next reboot" in done.stderr
    assert "--no-block start nvidia-dcgm.service" in (tmp_path / "systemctl").read_text()  # in any case


def test_gpus_in_use_are_left_alone(tmp_path):
    gpus = Gpus(tmp_path, apps=[4711, 4712])
    done = gpus.run(partitioning(SEVEN)[0])
    assert (done.returncode, done.stderr) == (
        1,
        "GPUs are in use by process 4711 4712: drain the node first\n",
    )
    assert gpus.layout() == "0: Disabled"


def test_where_instances_go_is_written_out():
    assert partitions.creation(node(MIXED)) == "3g.40gb:4,2g.20gb:0,1g.10gb:2,1g.10gb:3"
    assert partitions.creation(node(SEVEN)) == ",".join(f"1g.10gb:{start}" for start in range(7))
    assert partitions.creation(node()) == ""


def test_what_a_node_gets(tmp_path):
    made = site(tmp_path, {"mig": MigOptions()}, node(SEVEN), worker("l40s", 12, "l40s-8x"))
    plan = planned(made, made.by_name["gpu1"])
    assert content(plan, "/etc/systemd/system/rackwright-mig.service") == (
        "# Written by rackwright; changes made here are undone.\n"
        "[Unit]\n"
        "Description=Cut GPUs by MIG as declared\n"
        "After=nvidia-persistenced.service nvidia-fabricmanager.service\n"
        "Before=nvidia-dcgm.service nvidia-cdi-refresh.service slurmd.service\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        "RemainAfterExit=yes\n"
        "TimeoutStartSec=600\n"
        "ExecStart=/usr/local/sbin/rackwright-mig\n"
        "\n"
        "[Install]\n"
        "WantedBy=multi-user.target\n"
    )
    (operation,) = [op for op in plan.operations if op.name == "Partition the GPUs as declared"]
    (change,) = operation.changes
    assert change.disruptive  # so a worker is drained first
    assert change.after == f"8 GPUs: Enabled {' '.join(['1g.10gb'] * 7)}"
    assert operation.commands[0].startswith("systemctl restart rackwright-mig.service || ")
    assert [op.name for op in planned(made, made.by_name["l40s"]).operations if op.role == "mig"] == []
    assert claimed("mig", CHECKS, made.by_name["l40s"]) == ()


def test_mig_parted(tmp_path):
    options = MigOptions(tool="mig-parted", version=MIG_PARTED)
    made = site(tmp_path, {"mig": options}, node(MIXED))
    plan = planned(made, made.by_name["gpu1"])
    assert content(plan, "/etc/rackwright/mig.yaml") == (
        "# Written by rackwright; changes made here are undone.\n"
        "version: v1\n"
        "mig-configs:\n"
        "  declared:\n"
        "    - devices: all\n"
        "      mig-enabled: true\n"
        "      mig-devices:\n"
        '        "1g.10gb": 2\n'
        '        "2g.20gb": 1\n'
        '        "3g.40gb": 1\n'
    )
    (command,) = commands(plan, "Install mig-parted")
    assert f"install nvidia-mig-manager={MIG_PARTED}\n" in command
    assert "apt-mark hold nvidia-mig-manager" in command
    assert "nvidia-mig-parted apply -f /etc/rackwright/mig.yaml -c declared" in program(node(MIXED), options)
    assert "-cgi" not in program(node(MIXED), options)


@pytest.mark.parametrize(
    ("options", "sku", "problems"),
    [
        ({}, "dgx-h100", []),
        (
            {},
            "l40s-8x",
            [("", "No node of the role mig has GPUs whose MIG profiles are known.", "remove the section")],
        ),
        (
            {"tool": "mig-parted"},
            "dgx-h100",
            [("version", "mig-parted is installed at an exact version only.", "e.g. `version: 0.12.1-1`")],
        ),
        (
            {"version": "0.12.1-1"},
            "dgx-h100",
            [("version", "A version is of nvidia-mig-manager.", "set `tool: mig-parted` or leave it out")],
        ),
    ],
)
def test_problems(tmp_path, options, sku, problems):
    given = MigOptions(**options)
    assert list(given.problems(site(tmp_path, {"mig": given}, node(sku=sku)))) == problems


def test_a_node_with_a_display_gpu_is_left_alone(tmp_path):
    other = node({"3g.40gb": 2})
    station = worker("gpu2", 12, "dgx-station-a100", mig={"3g.40gb": 2})
    cluster = site(tmp_path, {"mig": MigOptions()}, other, station)
    assert [one.name for one in cluster.running("mig")] == [other.name]
    [(path, sentence, hint)] = MigOptions().problems(cluster)
    assert (path, hint) == ("", "take `mig:` from these nodes")
    assert sentence == (
        f"{station.name} declares MIG profiles and has a GPU for screens, which the role cannot pass over."
    )


def test_units_are_units():
    with pytest.raises(ValidationError, match="is not a service unit"):
        MigOptions(stop_services=("nvidia-dcgm",))


LAYOUT = "every GPU is partitioned as declared"
BOOT = "the GPUs are partitioned again at boot"
UNIT = "rackwright-mig.service"
ASKED = "mig-parted is installed as declared and held"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (LAYOUT, xml("dgx-h100", mig=("3g.40gb", "3g.40gb")), "PASS", "8 GPUs: 3g.40gb 3g.40gb"),
        (LAYOUT, xml("dgx-h100"), "FAIL", None),
        (LAYOUT, xml("dgx-h100", mig=("3g.40gb",)), "FAIL", None),
        (LAYOUT, xml("dgx-h100", ("<pending_mig>Enabled", "<pending_mig>Disabled"), mig=("3g.40gb", "3g.40gb")), "FAIL", None),
        (LAYOUT, xml("dgx-h100", ("<current_mig>Enabled", "<current_mig>[Unknown]"), mig=("3g.40gb", "3g.40gb")), "UNKNOWN",
         "nvidia-smi does not report the MIG mode of GPU 0"),
        (LAYOUT, {}, "UNKNOWN", None),
        (BOOT, unit(UNIT, active="inactive"), "PASS", "rackwright-mig.service is enabled"),
        (BOOT, unit(UNIT, state="disabled"), "FAIL",
         "rackwright-mig.service is disabled: the instances are gone after a reboot"),
        (BOOT, {}, "UNKNOWN", None),
        (BOOT, dict.fromkeys(unit(UNIT), ""), "UNKNOWN", "Unit of rackwright-mig.service: the node printed nothing"),
        (ASKED, installed({"nvidia-mig-manager": MIG_PARTED}), "PASS", f"nvidia-mig-manager {MIG_PARTED}, held"),
        (ASKED, installed({"nvidia-mig-manager": "0.10.0-1"}), "FAIL", f"nvidia-mig-manager is 0.10.0-1, not {MIG_PARTED}"),
        (ASKED, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(tmp_path, name, answers, status, evidence):
    options = MigOptions(tool="mig-parted", version=MIG_PARTED)
    made = site(tmp_path, {"mig": options}, node({"3g.40gb": 2}))
    found = judged("mig", CHECKS, name, made, made.by_name["gpu1"], FakeHost(answers))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_the_program_whole():
    text = program(node(SEVEN), MigOptions())
    assert text.startswith("#!/bin/sh\n# Written by rackwright; changes made here are undone.\n")
    assert "for unit in nvidia-dcgm.service nvidia-dcgm-exporter.service; do" in text
    assert "{{" not in text
    assert "{%" not in text
    off = program(node(), MigOptions())
    assert 'set_mode "$gpu" 0 Disabled' in off
    assert "-cgi" not in off
