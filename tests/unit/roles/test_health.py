"""The health role: options, what an empty node gets, the seam to Slurm, and its checks."""

from __future__ import annotations

import json
import subprocess
from pathlib import PurePosixPath

import pytest

from rackwright.catalog.read import catalogue
from rackwright.facts.files import AtPath, declared_tree
from rackwright.health.declare import expected_of
from rackwright.health.expected import Expected
from rackwright.health.guard import places
from rackwright.health.guard.memory import Policy
from rackwright.model.cluster import LabSize
from rackwright.model.types import NodeRole, Platform
from rackwright.osfamily.known import os_release
from rackwright.roles.health import texts
from rackwright.roles.health.options import HealthRoleOptions
from rackwright.roles.health.verify import CHECKS
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.texts import slurm_conf
from rackwright.status import Status
from tests.factories import make_cluster, make_node
from tests.unit.roles.fake_facts import asked, file, tree
from tests.unit.roles.fake_host import FakeHost, claimed, commands, errors_in, judged, planned

H100 = catalogue()["lab-h100-node"]
SIMULATED = {"platform": Platform.CONTAINER, "lab": LabSize(cpus=2, memory_mib=2048, gpus="simulated")}


def site(options=None, slurm=None, **changes):
    roles = {"health": options or HealthRoleOptions(), "slurm": slurm or SlurmOptions()}
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=roles, primary=True),
        make_node("gpu1", 11, NodeRole.WORKER, sku=H100, options=roles, **{**SIMULATED, **changes}),
    )


SITE = site()
HEAD, WORKER = SITE.primary, SITE.by_name["gpu1"]
MODULES = {f"{texts.modules_folder()}/{name}": text for name, text in texts.modules().items()}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"drain": {"percent": 0}}, "Input should be greater than 0"),
        ({"drain": {"clean_passes": 0}}, "Input should be greater than or equal to 1"),
        ({"drain": {"reboots_a_day": 4}}, "Input should be less than or equal to 3"),
        ({"drain": {"unknown": "resume"}}, "Input should be 'alert' or 'drain'"),
        ({"drain": {"unknown": "keep"}}, "Input should be 'alert' or 'drain'"),
        ({"probe_seconds": 60}, "Input should be less than or equal to 30"),
        ({"prolog_seconds": 60}, "Input should be less than or equal to 30"),
        ({"busy_query_hours": 25}, "Input should be less than or equal to 24"),
        (
            {"textfile_dir": "there"},
            "Not a valid absolute path: letters, digits, `.`, `_` and `-` between slashes.",
        ),
        ({"disabled": {"gpu-cout": "the eighth is away"}}, "There is no health check gpu-cout."),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(HealthRoleOptions, given) == [sentence]


def test_the_defaults_are_those_of_the_program():
    ours = HealthRoleOptions().policy
    assert ours == Policy(textfile_dir=places.TEXTFILES)


def changes(cluster, node):
    plan = planned(cluster, node)
    assert plan.error is None
    return {
        change.target: change for one in plan.operations if one.role == "health" for change in one.changes
    }


def test_what_a_worker_gets():
    found = changes(SITE, WORKER)
    assert {path for path in found if path.startswith("/") and found[path].kind == "file"} == {
        places.PROGRAM, places.EXPECTED, places.POLICY,
        "/etc/slurm/prolog.d/20-rackwright-health", "/etc/slurm/epilog.d/20-rackwright-health", *MODULES,
    }  # fmt: skip
    assert found[texts.modules_folder()].after == f"directory with {len(MODULES)} files, 644 root:root"
    assert all(found[path].content == text for path, text in MODULES.items())
    assert f'MODULES = "{texts.modules_folder()}"\n' in found[places.PROGRAM].content
    assert found[places.PROGRAM].after == "file 755 root:root"
    assert found[places.EXPECTED].after == "file 644 root:root"
    assert Expected.from_json(json.loads(found[places.EXPECTED].content)) == expected_of(SITE, WORKER)
    assert json.loads(found[places.POLICY].content)["clean_passes"] == 3
    assert "the node's first verdict" in found


@pytest.mark.parametrize(
    ("stage", "status", "passed_on"),
    [
        ("prolog", 0, 0),
        ("prolog", 3, 1),
        ("prolog", 1, 0),
        ("prolog", 127, 0),
        ("epilog", 0, 0),
        ("epilog", 1, 0),
    ],
)
def test_only_a_deliberate_refusal_keeps_a_job_away(stage, status, passed_on, tmp_path):
    """Slurm drains a node whose prolog or epilog fails: a health check that breaks must not do that."""
    program = tmp_path / "health-check"
    program.write_text(f'#!/bin/sh\ntest "$*" = {stage} || exit 99\nexit {status}\n')
    program.chmod(0o755)
    text = changes(SITE, WORKER)[f"/etc/slurm/{stage}.d/20-rackwright-health"].content
    ran = subprocess.run(["sh", "-c", text.replace(places.PROGRAM, str(program))], check=False)
    assert ran.returncode == passed_on


def test_modules_of_other_versions_go_after_the_program_that_used_them():
    names = [one.name for one in planned(SITE, WORKER).operations if one.role == "health"]
    order = (
        "Write the modules of the health check",
        f"Write {places.PROGRAM}",
        "Remove modules of other versions",
    )
    assert [name for name in names if name in order] == list(order)


def test_modules_of_other_versions_are_removed_and_no_others(tmp_path):
    own = tmp_path / texts.modules_folder().rpartition("/")[2]
    for name in (own.name, "0123456789abcdef", f".{own.name}.rackwright-99"):
        (tmp_path / name / "rackwright").mkdir(parents=True)
    (command,) = commands(planned(SITE, WORKER), "Remove modules of other versions")
    here = command.replace(places.MODULES, str(tmp_path)).replace("sleep 2;", "")
    assert here.count(str(tmp_path)) == 1
    subprocess.run(["sh", "-c", here], check=True)
    assert [path.name for path in tmp_path.iterdir()] == [own.name]
    assert (own / "rackwright").is_dir()


@pytest.mark.parametrize("family", ["debian-13", "rocky-9"])
def test_a_machine_of_metal_gets_what_asks_its_bmc(family):
    there = site(platform=Platform.BARE_METAL, lab=None, os=os_release(family))
    found = changes(there, there.by_name["gpu1"])
    assert found["ipmitool"].kind == "package"
    assert "softdep ipmi_ssif post: ipmi_devintf\n" in found[texts.BMC_MODPROBE].content
    assert found["module ipmi_devintf"].after == "there"


def test_a_container_gets_nothing_that_asks_a_bmc():
    found = changes(SITE, WORKER)
    assert not {"ipmitool", texts.BMC_MODPROBE, "module ipmi_devintf"} & set(found)


@pytest.mark.parametrize(
    ("loaded", "known", "printed"),
    [(True, True, "there\n"), (False, False, "there\n"), (False, True, "")],
)
def test_a_kernel_without_the_bmcs_driver_is_left_alone(loaded, known, printed, tmp_path):
    (tmp_path / "modinfo").write_text(f"#!/bin/sh\nexit {0 if known else 1}\n")
    (tmp_path / "modinfo").chmod(0o755)
    module = tmp_path if loaded else tmp_path / "none"
    command = texts.BMC_DEVICE.replace("/sys/module/ipmi_devintf", str(module))
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-c", command], check=False, capture_output=True, text=True, env={"PATH": path}
    )
    assert done.stdout == printed


def test_a_head_that_runs_no_jobs_has_no_drop_ins():
    assert not [path for path in changes(SITE, HEAD) if "/etc/slurm" in path or "first verdict" in path]


def test_a_site_may_leave_out_the_epilog():
    options = HealthRoleOptions.model_validate({"drain": {"epilog": False}})
    found = site(options)
    assert texts.drop_in(found.by_name["gpu1"], "epilog") not in texts.files_of(
        found, found.by_name["gpu1"], options
    )


def test_slurm_runs_what_a_role_offers_without_knowing_it():
    text = slurm_conf(SITE, SlurmOptions())
    assert (
        "HealthCheckProgram=/usr/libexec/rackwright/health-check\nHealthCheckInterval=300\n"
        "HealthCheckNodeState=ANY,CYCLE\n"
    ) in text
    nhc = SlurmOptions.model_validate({"health_check": {"program": "/usr/sbin/nhc", "node_states": ["IDLE"]}})
    assert "HealthCheckProgram=/usr/sbin/nhc\n" in slurm_conf(site(slurm=nhc), nhc)
    without = make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options={"slurm": SlurmOptions()}, primary=True)
    )
    assert "HealthCheck" not in slurm_conf(without, SlurmOptions())


def test_a_worker_without_a_health_check_is_a_problem():
    other = make_node("gpu2", 12, NodeRole.WORKER, options={"slurm": SlurmOptions()})
    cluster = SITE.model_copy(update={"nodes": (*SITE.nodes, other)})
    assert list(HealthRoleOptions().problems(SITE)) == []
    assert list(HealthRoleOptions().problems(cluster)) == [("", "gpu2 runs jobs but no health check.", None)]


def test_simulated_gpus_are_in_scope_and_the_rest_stays_out():
    lacking = expected_of(SITE, WORKER).lacking
    assert "gpu" not in lacking
    assert {"hardware", "kernel", "kernel-modules"} <= set(lacking)
    bare = site(lab=LabSize(cpus=2, memory_mib=2048))
    assert "gpu" in expected_of(bare, bare.by_name["gpu1"]).lacking


WANTED = texts.files_of(SITE, WORKER, WORKER.options["health"])
FILES = {
    key: reported for path, (text, mode) in WANTED.items() for key, reported in file(path, text, mode).items()
}
VERSION = texts.modules_folder().rpartition("/")[2]
TREE = declared_tree({f"{VERSION}/{name}": text for name, text in texts.modules().items()})
SHOW = f"timeout 60 {places.PROGRAM} show"
CONFIG = "timeout 30 scontrol show config"
LAST = f"cat {places.LAST}"
SETTINGS = f"HealthCheckInterval     = 300 sec\nHealthCheckNodeState    = CYCLE,ANY\nHealthCheckProgram      = {places.PROGRAM}\n"


def shown(outcome, *results, why=None):
    reported = [{"check": check, "status": status, "evidence": text} for check, status, text in results]
    return json.dumps({"node": "gpu1", "outcome": outcome, "why": why, "results": reported})


NOW = 1_795_206_453.0


def last(ago):
    return json.dumps({"at": NOW - ago, "outcome": "clean"})


GOOD = shown(
    "clean", ("gpu-count", "PASS", "8 GPUs"), ("memory-oom", "WARN", "one"), ("x", "OUT OF SCOPE", "")
)
DECLARED = "the health check's files are as declared"
MODULES_ALONE = "the health check's modules are those of this rackwright version"
MODULE = f"{VERSION}/rackwright/health/verdict.py"


def modules(*more, without="nothing", access="755"):
    """The installed modules, damaged."""
    lines = [line for line in TREE if without not in line]
    lines = [line.replace("d 755", f"d {access}") if line.endswith(VERSION) else line for line in lines]
    return tree(places.MODULES, [*lines, *more])


ROOTS = "only root can write the health check's folders"


def folders(**other):
    """The node's answers about the folders and all above them; `other` is mode and owner by path."""
    paths = {str(parent) for path in texts.FOLDERS for parent in PurePosixPath(path).parents} | set(
        texts.FOLDERS
    )
    answers = {}
    for path in paths:
        mode, owner = other.get(path, f"{texts.FOLDERS.get(path, '755')} root").split()
        answers[asked(AtPath().command(path, digest_only=True))] = f"directory|{mode}|{owner}|root|4096\n"
    return answers


CASES = [
    (DECLARED, FILES, Status.PASS, places.POLICY),
    (DECLARED, {**FILES, **file(places.PROGRAM, None)}, Status.FAIL, f"{places.PROGRAM} is missing"),
    (DECLARED, {**FILES, **file(places.POLICY, "{}")}, Status.FAIL, f"{places.POLICY} is not as declared"),
    (DECLARED, {**FILES, **file(places.PROGRAM, WANTED[places.PROGRAM][0], "777")}, Status.FAIL,
     f"{places.PROGRAM} is 777 root:root, not 755 root:root"),
    (DECLARED, {}, Status.UNKNOWN, "cannot run `sh`"),
    (MODULES_ALONE, modules(), Status.PASS, f"{len(MODULES)} files in {places.MODULES}"),
    (MODULES_ALONE, modules("0" * 64 + f"  ./{MODULE}"), Status.FAIL, f"{MODULE} differs"),
    (MODULES_ALONE, modules(without="verdict.py"), Status.FAIL, f"{MODULE} is missing"),
    (MODULES_ALONE, modules("f 644 root:root ./old/json.py"), Status.FAIL, "old/json.py is not declared"),
    (MODULES_ALONE, modules(access="777"), Status.FAIL, f"in {places.MODULES}: {VERSION} differs"),
    (MODULES_ALONE, tree(places.MODULES, []), Status.FAIL, f"; and {len(TREE) - len(MODULES) - 5} more"),
    (MODULES_ALONE, {}, Status.UNKNOWN, "cannot run `sh`"),
    (ROOTS, folders(), Status.PASS, places.STATE),
    (ROOTS, folders(**{places.STATE: "755 root"}), Status.FAIL,
     f"{places.STATE} is a directory with 755 root, not a folder with 700 root"),
    (ROOTS, folders(**{places.METRICS_FOLDER: "755 prometheus"}), Status.FAIL,
     f"{places.METRICS_FOLDER} is a directory with 755 prometheus, not a folder with 755 root"),
    (ROOTS, folders(**{"/var/lib": "775 root"}), Status.FAIL, "/var/lib is a directory with 775 root"),
    (ROOTS, {**folders(), **file(places.METRICS_FOLDER, None)}, Status.FAIL, f"{places.METRICS_FOLDER} is missing"),
    (ROOTS, {}, Status.UNKNOWN, "cannot run `sh`"),
    ("the node's health check passes", {SHOW: GOOD}, Status.PASS,
     "2 checks find nothing that drains the node; its 8 GPUs are simulated"),
    ("the node's health check passes", {SHOW: (3, shown("bad", ("gpu-count", "FAIL", "7 of 8")), "")}, Status.FAIL,
     "gpu-count: 7 of 8"),
    ("the node's health check passes", {SHOW: (4, shown("unknown", ("gpu-count", "UNKNOWN", "no tool")), "")},
     Status.UNKNOWN, "gpu-count: no tool"),
    ("the node's health check passes", {SHOW: (4, shown("unknown", why="no file"), "")}, Status.UNKNOWN, "no file"),
    ("the node's health check passes", {}, Status.UNKNOWN, "the health check printed no verdict"),
    ("the workload manager runs the node's health check", {CONFIG: SETTINGS, LAST: last(20)}, Status.PASS,
     "every 300 s; outcome of the last pass: clean"),
    ("the workload manager runs the node's health check", {CONFIG: SETTINGS, LAST: last(900)}, Status.FAIL, "s ago, but one is due every 300 s"),
    ("the workload manager runs the node's health check", {CONFIG: SETTINGS.replace(places.PROGRAM, "(null)")}, Status.FAIL,
     "the health program of Slurm is not set"),
    ("the workload manager runs the node's health check", {CONFIG: SETTINGS.replace("300 sec", "0 sec")}, Status.FAIL,
     "Slurm never runs the health program"),
    ("the workload manager runs the node's health check", {CONFIG: SETTINGS, LAST: ""}, Status.UNKNOWN, "did not print JSON"),
    *(("the workload manager runs the node's health check", {CONFIG: SETTINGS, LAST: text}, Status.UNKNOWN, why)
      for text, why in (("[]", "has no time of the last pass"), ('{"at": NaN}', "contains NaN"), ('{"at": "1"}', "has no time of the last pass"),
                        (last(-9000), "ahead of this host's clock"))),
    *(("the node's health check passes", {SHOW: text}, Status.UNKNOWN, why)
      for text, why in (("[" * 9999, "nested deeper"), ("[]", "printed no verdict"), (shown("clean"), "no check passed"),
                        ('{"outcome": "clean", "why": null, "results": [1]}', "results.0: "))),
    ("the node acts on what its health check finds", {}, Status.WARN, "it only observes (health.act: false)"),
    ("no health check is switched off on the node", {f"ls {places.DISABLED}": ""}, Status.PASS, "none is"),
    ("no health check is switched off on the node", {f"ls {places.DISABLED}": "all\ngpu-count\n"}, Status.WARN,
     "switched off on this node: all, gpu-count"),
    ("no health check is switched off on the node", {}, Status.UNKNOWN, "cannot run `ls`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "replies", "status", "evidence"), CASES)
def test_checks(name, replies, status, evidence, monkeypatch):
    monkeypatch.setattr("rackwright.roles.health.verify.time.time", lambda: NOW)
    found = judged("health", CHECKS, name, SITE, WORKER, FakeHost(replies))
    assert (found.status, evidence in found.evidence) == (status, True), found


def test_a_node_that_acts_passes():
    acts = site(HealthRoleOptions(act=True))
    name = "the node acts on what its health check finds"
    found = judged("health", CHECKS, name, acts, acts.by_name["gpu1"], FakeHost({}))
    assert (found.status, found.evidence) == (Status.PASS, "health.act: true")


def test_who_claims_what():
    assert "the workload manager runs the node's health check" in claimed("health", CHECKS, WORKER)
    assert "the workload manager runs the node's health check" not in claimed("health", CHECKS, HEAD)
