"""A standby slurmctld that lost the cluster's ID is restarted: the files and programs for it, and the check."""

from __future__ import annotations

import subprocess
import time

import pytest

from rackwright.roles.slurm import standby, texts
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.verify import CHECKS
from tests.unit.roles.fake_facts import file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, content, judged, planned
from tests.unit.roles.slurm_clusters import cluster, node

CHECK = "a standby slurmctld can take over more than once"
PAIR = {
    "backups": ["h2"],
    "state_dir": "/shared/slurmctld",
    "state_mount": {"path": "/shared", "source": "nfs1:/export/slurm", "fstype": "nfs4"},
}
OLD = {"packages": {"source": "schedmd", "release": "24.05"}}


def site(given=None):
    return cluster(
        "c",
        node("h1", "10.0.0.1", "head", primary=True),
        node("h2", "10.0.0.2", "head"),
        node("w1", "10.0.0.9", "worker"),
        slurm=SlurmOptions.model_validate(PAIR if given is None else given),
    )


def there(made, name):
    one = made.by_name[name]
    return {path: text for path, text in standby.files(one, one.options["slurm"]).items() if text is not None}


# What is written


def test_both_controllers_have_the_programs_that_slurm_conf_names_and_the_backup_the_units():
    made = site()
    assert set(there(made, "h1")) == set(standby.PROGRAMS)
    assert set(there(made, "h2")) == {
        *standby.PROGRAMS,
        standby.CONF,
        standby.PATH_FILE,
        standby.SERVICE_FILE,
    }
    lines = texts.slurm_conf(made, made.primary.options["slurm"]).splitlines()
    assert f"SlurmctldPrimaryOnProg={standby.ON_PRIMARY}" in lines
    assert f"SlurmctldPrimaryOffProg={standby.ON_STANDBY}" in lines
    plan = planned(made, made.by_name["h2"])
    names = [op.name for op in plan.operations if op.role == "slurm"]
    # the running slurmctld is reloaded with the new slurm.conf, so the unit that restarts it must be active before
    order = [
        f"Write {standby.ON_STANDBY}",
        f"Write {standby.CONF}",
        "Restart a standby slurmctld that lost the cluster's ID",
        "Start slurmctld with its settings",
    ]
    assert sorted(order, key=names.index) == order
    assert set(standby.STANDBY_UNIT_FILES) <= set(made.primary.options["slurm"].unit_files(made.primary))


@pytest.mark.parametrize("given", [{}, {**PAIR, **OLD}])
def test_a_single_controller_and_older_releases_have_none_of_it(given):
    made = site(given)
    assert there(made, "h1") == there(made, "h2") == {}
    assert "SlurmctldPrimary" not in texts.slurm_conf(made, made.primary.options["slurm"])
    assert CHECK not in claimed("slurm", CHECKS, made.by_name["h2"])
    assert content(planned(made, made.by_name["h2"]), standby.PATH_FILE) is None


# The program, run for real


@pytest.fixture
def run(tmp_path):
    """Starts the program of h2 with its paths below a folder."""
    text = there(site(), "h2")[standby.ON_STANDBY].replace("exec </dev/null >/dev/null 2>&1\n", "")
    for real in ("/run/slurmctld", "/shared/slurmctld", "/etc/systemd/system"):
        (tmp_path / real[1:]).mkdir(parents=True)
        text = text.replace(real, str(tmp_path / real[1:]))
    (tmp_path / standby.PATH_FILE[1:]).touch()
    (tmp_path / "shared/slurmctld/clustername").write_text("c|1")
    text = text.replace("sleep 10", "sleep 0.4").replace("sleep 5", "sleep 0.1")
    started = []

    def start():
        started.append(subprocess.Popen(["sh", "-c", text]))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()


def test_a_slurmctld_that_starts_on_standby_is_left_alone(run, tmp_path):
    assert run().wait(20) == 0
    assert (tmp_path / "run/slurmctld/role").read_text() == "standby\n"
    assert not (tmp_path / "run/slurmctld/restart-wanted").exists()


def test_one_that_gave_control_back_is_restarted(run, tmp_path):
    (tmp_path / "run/slurmctld/role").write_text("primary\n")
    assert run().wait(20) == 0
    assert (tmp_path / "run/slurmctld/restart-wanted").exists()


@pytest.mark.parametrize("meanwhile", ["primary\n", "standby\n", None])
def test_one_that_is_in_charge_again_or_was_restarted_is_left_alone(run, tmp_path, meanwhile):
    role = tmp_path / "run/slurmctld/role"
    role.write_text("primary\n")
    running = run()
    until(lambda: role.read_text() == "gave control back\n")
    if meanwhile is None:
        role.unlink()
    else:
        role.write_text(meanwhile)
    running.wait(20)
    assert not (tmp_path / "run/slurmctld/restart-wanted").exists()


def test_one_that_started_before_the_cluster_had_an_id_is_restarted_once_it_has_one(run, tmp_path):
    (tmp_path / "shared/slurmctld/clustername").unlink()
    running = run()
    until(lambda: (tmp_path / "run/slurmctld/role").exists())
    assert running.poll() is None
    (tmp_path / "shared/slurmctld/clustername").write_text("c|1")
    assert running.wait(20) == 0
    assert (tmp_path / "run/slurmctld/restart-wanted").exists()


def test_it_ends_with_the_slurmctld_that_waited(run, tmp_path):
    (tmp_path / "shared/slurmctld/clustername").unlink()
    running = run()
    until(lambda: (tmp_path / "run/slurmctld/role").exists())
    (tmp_path / "run/slurmctld/role").unlink()
    running.wait(20)
    assert not (tmp_path / "run/slurmctld/restart-wanted").exists()


def test_on_the_primary_head_it_does_nothing(run, tmp_path):
    (tmp_path / standby.PATH_FILE[1:]).unlink()
    (tmp_path / "run/slurmctld/role").write_text("primary\n")
    assert run().wait(20) == 0
    assert (tmp_path / "run/slurmctld/role").read_text() == "primary\n"


@pytest.mark.parametrize(
    ("role", "restarted"),
    [("primary\n", False), ("standby\n", True), ("gave control back\n", True), (None, True)],
)
def test_a_reload_restarts_a_standby_and_not_one_in_charge(tmp_path, role, restarted):
    (line,) = [
        line for line in there(site(), "h2")[standby.CONF].splitlines() if line.startswith("ExecReload=")
    ]
    if role is not None:
        (tmp_path / "role").write_text(role)
    command = line.removeprefix("ExecReload=").replace("/run/slurmctld", str(tmp_path))
    assert subprocess.run(["sh", "-c", command], timeout=20, check=False).returncode == 0
    assert (tmp_path / "restart-wanted").exists() is restarted


def until(ready):
    end = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.02)


# The check


def answers(made):
    """Of a backup as declared."""
    wanted = there(made, "h2")
    modes = {path: "755" if path in standby.PROGRAMS else "644" for path in wanted}
    reported = unit(standby.PATH_UNIT)
    for path, text in wanted.items():
        reported |= file(path, text, mode=modes[path])
    return reported


@pytest.mark.parametrize(
    ("changes", "status", "evidence"),
    [
        ({}, "PASS", "slurmctld is restarted once it lost the cluster's ID, so it can take over without slurmdbd"),
        (unit(standby.PATH_UNIT, active="inactive"), "FAIL", f"{standby.PATH_UNIT} is inactive"),
        (unit(standby.PATH_UNIT, state="disabled"), "FAIL",
         f"{standby.PATH_UNIT} is active but disabled: it does not start at boot"),
        (unit(standby.PATH_UNIT, active=""), "UNKNOWN", f"systemctl does not report the state of {standby.PATH_UNIT}"),
        (files({standby.CONF: None}), "FAIL", f"{standby.CONF} is missing"),
    ],
)  # fmt: skip
def test_the_check(changes, status, evidence):
    made = site()
    assert CHECK in claimed("slurm", CHECKS, made.by_name["h2"])
    assert CHECK not in claimed("slurm", CHECKS, made.primary)
    one = judged("slurm", CHECKS, CHECK, made, made.by_name["h2"], FakeHost(answers(made) | changes))
    assert (one.status, one.evidence) == (status, evidence)


def test_a_program_that_cannot_be_run_fails():
    made = site()
    changed = file(standby.ON_STANDBY, there(made, "h2")[standby.ON_STANDBY], mode="644")
    one = judged("slurm", CHECKS, CHECK, made, made.by_name["h2"], FakeHost(answers(made) | changed))
    assert one.status == "FAIL"
    assert standby.ON_STANDBY in one.evidence
