"""The dcgm_exporter role: its fields, its version beside DCGM's, which job has which GPU, and its checks."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from rackwright.errors import RackwrightError
from rackwright.exporters import drop_in
from rackwright.facts.packages import Packages
from rackwright.model.cluster import LabSize
from rackwright.model.monitoring import Scrape
from rackwright.model.types import Platform
from rackwright.osfamily.known import RELEASES
from rackwright.roles.dcgm.options import DcgmOptions
from rackwright.roles.dcgm_exporter import texts
from rackwright.roles.dcgm_exporter.counters import COUNTERS
from rackwright.roles.dcgm_exporter.options import DcgmExporterOptions
from rackwright.roles.dcgm_exporter.verify import CHECKS
from rackwright.roles.dcgm_exporter.versions import pair_of
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.factories import RunsSlurm
from tests.unit.roles.fake_facts import asked, file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, site, worker

OPTIONS = DcgmExporterOptions(version="4.8.3-1")
ROLES = {
    "slurm": RunsSlurm(),
    "dcgm": DcgmOptions(),
    "dcgm_exporter": OPTIONS,
    "site_ca": SiteCaOptions(),
}
SITE = site(ROLES)
NODE = worker(SITE)
FIELDS = "/etc/rackwright-exporters/dcgm_exporter/counters.csv"
HELD, REPORTS, JOBS = (
    "dcgm_exporter matches DCGM's version and is held",
    "dcgm_exporter reports the declared fields",
    "jobs report their GPUs to dcgm_exporter",
)


def lab(*without):
    """A site of containers with simulated GPUs: no DCGM, and no lock."""
    roles = {role: given for role, given in ROLES.items() if role not in ("dcgm", *without)}
    roles["dcgm_exporter"] = DcgmExporterOptions()
    there = site(roles, platform=Platform.CONTAINER)
    simulated = LabSize(cpus=2, memory_mib=1024, gpus="simulated")
    nodes = tuple(
        node.model_copy(update={"lab": simulated, "options": {}}).with_options(roles) for node in there.nodes
    )
    return there.model_copy(update={"nodes": nodes})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"version": "new one"}, "String should match pattern '^[0-9][A-Za-z0-9.+~:-]{0,60}$'"),
        ({"fields": {"GPU_TEMP": "gauge"}}, "String should match pattern '^DCGM_(FI|EXP)_[A-Z0-9_]{1,80}$'"),
        ({"fields": {"DCGM_FI_DEV_GPU_TEMP": "label"}}, "Input should be 'counter', 'gauge' or 'off'"),
        ({"interval_seconds": 0}, "Input should be greater than or equal to 1"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(DcgmExporterOptions, given) == [sentence]


def test_it_runs_where_gpus_are_declared():
    assert [node.name for node in SITE.running("dcgm_exporter")] == ["gpu1", "gpu2"]


def test_without_dcgm_there_is_nothing_to_ask():
    roles = {role: given for role, given in ROLES.items() if role != "dcgm"}
    assert list(OPTIONS.problems(site(roles))) == [
        (
            "",
            "gpu1 has no role that runs DCGM, which dcgm-exporter needs.",
            "add the role dcgm, or leave dcgm_exporter out there",
        )
    ]
    assert list(OPTIONS.problems(SITE)) == []
    assert list(DcgmExporterOptions().problems(lab())) == []


@pytest.mark.parametrize(
    ("dcgm", "exporter"),
    [("1:4.6.0-*", "4.8.3"), ("4.5.3-1", "4.8.2"), ("1:4.4.2-1", "4.7.1"), ("4.9.0-1", None), ("", None)],
)
def test_pairs(dcgm, exporter):
    assert pair_of(dcgm) == exporter


def test_its_package(monkeypatch):
    unset = DcgmExporterOptions()
    assert OPTIONS.package(SITE, NODE) == ("datacenter-gpu-manager-exporter=4.8.3-1",)
    assert unset.package(lab(), worker(lab())) == ()

    def locked(version):
        lock = type("Group", (), {"packages": {"datacenter-gpu-manager-4-core": version}})
        monkeypatch.setattr("rackwright.roles.dcgm_exporter.options.group_of", lambda cluster, node: lock)

    locked("1:4.5.3-1")
    assert unset.package(SITE, NODE) == ("datacenter-gpu-manager-exporter=4.8.2-*",)
    locked("1:4.9.9-1")
    with pytest.raises(
        RackwrightError, match=r"No dcgm-exporter version is known for DCGM 1:4\.9\.9-1 of gpu1\."
    ):
        unset.package(SITE, NODE)
    monkeypatch.setattr("rackwright.roles.dcgm_exporter.options.lock_problems", lambda cluster, role: [])
    there = site({**ROLES, "dcgm_exporter": unset})
    assert list(unset.lock_problems(there)) == [
        (
            "version",
            "No dcgm-exporter version is known for DCGM 1:4.9.9-1 of gpu1.",
            "set `version` of the role dcgm_exporter, e.g. `4.8.3-1`",
        )
    ]
    assert list(OPTIONS.lock_problems(SITE)) == []


def test_without_a_lock_its_version_is_not_known():
    unset = DcgmExporterOptions()
    there = site({**ROLES, "dcgm_exporter": unset})
    assert list(unset.lock_problems(there)) == [
        (
            "",
            "The role dcgm_exporter installs locked versions, but the cluster file has no section gpu_stack.",
            None,
        )
    ]
    assert list(unset.lock_problems(lab())) == []


def test_what_it_serves():
    assert OPTIONS.scrapes(SITE, NODE) == (Scrape("dcgm", 9400),)
    container = site(ROLES, platform=Platform.CONTAINER)
    assert OPTIONS.scrapes(container, worker(container)) == ()
    assert DcgmExporterOptions().scrapes(lab(), worker(lab())) == (Scrape("dcgm", 9400),)
    assert OPTIONS.held_packages(NODE) == ("datacenter-gpu-manager-exporter",)
    assert DcgmExporterOptions().held_packages(worker(lab())) == ()


def test_whole_files():
    text = drop_in(SITE, NODE, OPTIONS, texts.arguments(SITE, NODE, OPTIONS))
    assert text == expected("dcgm_exporter/unit.conf")
    assert texts.fields(OPTIONS) == expected("dcgm_exporter/counters.csv")


def test_without_jobs_nothing_is_mapped():
    off = DcgmExporterOptions(version="1", job_mapping=False)
    assert not [one for one in texts.arguments(SITE, NODE, off) if "hpc" in one]
    assert set(texts.hooks(NODE, off).values()) == {None}
    bare = site({role: given for role, given in ROLES.items() if role != "slurm"})
    assert texts.hooks(worker(bare), OPTIONS) == {}
    assert not [one for one in texts.arguments(bare, worker(bare), OPTIONS) if "hpc" in one]


def test_fields_are_chosen():
    chosen = DcgmExporterOptions.model_validate(
        {
            "fields": {
                "DCGM_FI_DEV_GPU_TEMP": "off",
                "DCGM_FI_DEV_FAN_SPEED": "gauge",
                "DCGM_FI_DEV_GPU_UTIL": "counter",
            }
        }
    )
    lines = texts.fields(chosen).splitlines()
    assert not [line for line in lines if line.startswith("DCGM_FI_DEV_GPU_TEMP,")]
    assert "DCGM_FI_DEV_FAN_SPEED, gauge, Declared by the site" in lines
    assert "DCGM_FI_DEV_GPU_UTIL, counter, Share of time in % in which a kernel ran" in lines


def test_each_field_is_one_record():
    rows = list(csv.reader(line for line in texts.fields(OPTIONS).splitlines() if not line.startswith("#")))
    assert [[cell.strip() for cell in row[:2]] for row in rows] == [
        [one.field, one.kind] for one in COUNTERS.values()
    ]
    assert {len(row) for row in rows} == {3}


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    there = site({role: given for role, given in ROLES.items() if role not in ("dcgm", "slurm")}, os=os)
    plan = planned(there, worker(there))
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "dcgm_exporter"]
    assert "Install dcgm_exporter" in names
    assert names[-2:] == ["Write the list of DCGM fields", "Run dcgm_exporter"]
    assert "datacenter-gpu-manager-exporter" in commands(plan, "Install dcgm_exporter")[0]
    assert content(plan, FIELDS) == texts.fields(OPTIONS)


def test_a_simulated_gpu_s_program_is_the_lab_s():
    there = lab("slurm")  # the stand-in for Slurm's role has no deploy
    plan = planned(there, worker(there))
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "dcgm_exporter"]
    assert "Install dcgm_exporter" not in names
    assert "Run dcgm_exporter" in names


def test_a_container_without_gpus_has_nothing():
    there = site(ROLES, platform=Platform.CONTAINER)
    plan = planned(there, worker(there))
    assert [entry for entry in plan.operations if entry.role == "dcgm_exporter"] == []
    for check in CHECKS:
        found = judged("dcgm_exporter", CHECKS, check.name, there, worker(there), FakeHost({}))
        assert (found.status, found.evidence) == (
            "OUT OF SCOPE",
            "a container has no GPU unless the lab simulates one",
        )


def test_what_jobs_write(tmp_path):
    """Two jobs in turn on one GPU: the file names the one that has it, and none when both have ended."""
    scripts = {
        Path(path).parent.name.removesuffix(".d"): (text or "").replace(texts.JOBS, str(tmp_path))
        for path, text in texts.hooks(NODE, OPTIONS).items()
    }

    def run(stage, job, gpus=""):
        line = [
            "env",
            "-i",
            "PATH=/usr/bin:/bin",
            f"SLURM_JOB_ID={job}",
            f"SLURM_JOB_GPUS={gpus}",
            "sh",
            "-c",
        ]
        assert subprocess.run([*line, scripts[stage]], check=False).returncode == 0

    run("prolog", 41, "0,3")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "41\n", "3": "41\n"}
    run("epilog", 41)
    run("prolog", 42, "3")
    assert {path.name: path.read_text().strip() for path in tmp_path.iterdir()} == {"0": "", "3": "42"}


HOOKS = {path: text for path, text in texts.hooks(NODE, OPTIONS).items() if text is not None}


def scripts(texts_by_path):
    return {
        line: reported
        for path, text in texts_by_path.items()
        for line, reported in file(path, text, "755").items()
    }


@pytest.mark.parametrize(
    ("name", "answers", "status"),
    [
        (REPORTS, files({FIELDS: texts.fields(OPTIONS)}), "PASS"),
        (REPORTS, files({FIELDS: texts.fields(OPTIONS) + "DCGM_FI_X, gauge, x\n"}), "FAIL"),
        (REPORTS, {}, "UNKNOWN"),
        (JOBS, scripts(HOOKS), "PASS"),
        (JOBS, scripts({path: text + "exit 1\n" for path, text in HOOKS.items()}), "FAIL"),
        (JOBS, files(HOOKS), "FAIL"),  # nothing may run them
        (JOBS, {}, "UNKNOWN"),
        (HELD, {}, "UNKNOWN"),
        ("dcgm_exporter runs", unit("nvidia-dcgm-exporter.service"), "PASS"),
        ("dcgm_exporter runs", unit("nvidia-dcgm-exporter.service", "failed"), "FAIL"),
    ],
)
def test_check(name, answers, status):
    assert judged("dcgm_exporter", CHECKS, name, SITE, NODE, FakeHost(answers)).status == status


def test_its_package_is_compared():
    name = "datacenter-gpu-manager-exporter"
    question = asked(Packages().command(NODE.family.name, (name,)))

    def found(*lines):
        answers = {question: "".join(f"{line}\n" for line in lines), NODE.family.query_self: "dpkg\t1.22\n"}
        return judged("dcgm_exporter", CHECKS, HELD, SITE, NODE, FakeHost(answers))

    assert found(f"have {name} 4.8.3-1 hi", f"held {name}").status == "PASS"
    assert found(f"have {name} 4.8.1-1 hi", f"held {name}").evidence == f"{name} is 4.8.1-1, not 4.8.3-1"
    assert found(f"have {name} 4.8.3-1 ii").evidence == f"{name} is not held"
    assert found().evidence == f"{name} is not installed"


def test_what_a_lab_node_claims():
    assert HELD not in claimed("dcgm_exporter", CHECKS, worker(lab()))
    assert JOBS in claimed("dcgm_exporter", CHECKS, worker(lab()))


def test_every_field_is_one_that_the_lab_simulates():
    recorded = (Path(__file__).parents[1] / "alerts/recorded/dcgm_lab.prom").read_text()
    simulated = {line.split()[2] for line in recorded.splitlines() if line.startswith("# TYPE")}
    assert set(COUNTERS) == simulated
