"""What the slurm role does to an empty node: packages, files, order, by family, platform and role."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.model.types import Platform
from rackwright.osfamily.known import os_release
from rackwright.roles.slurm import texts
from rackwright.roles.slurm.deploy import PARSES, RELOAD, RESTART
from rackwright.roles.slurm.options import SlurmOptions
from tests.unit.roles.fake_host import commands, planned
from tests.unit.roles.slurm_clusters import DGX_SKU, cluster, dgx, lab, node, small


def plan(made, name):
    found = planned(made, made.by_name[name])
    assert found.error is None
    return found


def of_slurm(found):
    return [operation for operation in found.operations if operation.role == "slurm"]


def packages(found):
    changes = [change for operation in of_slurm(found) for change in operation.changes]
    return [(change.target, change.after) for change in changes if change.kind == "package"]


def paths(found):
    changes = [change for operation in of_slurm(found) for change in operation.changes]
    return [change.target for change in changes if change.kind == "file"]


_CLIENT = ["slurm-client", "slurm-wlm-basic-plugins"]


@pytest.mark.parametrize(
    ("made", "name", "names"),
    [
        (lab(), "head1", [*_CLIENT, "slurmctld", "slurmdbd", "slurm-wlm-mysql-plugin", "logrotate"]),
        (lab(), "worker1", [*_CLIENT, "slurmd", "logrotate"]),
        (dgx(os=os_release("ubuntu-24.04")), "gpu001", [*_CLIENT, "slurmd", "libpam-slurm-adopt", "logrotate"]),
        (dgx(), "login1", _CLIENT),
        (dgx(os=os_release("rocky-9")), "head1", ["slurm", "slurm-slurmctld", "slurm-slurmdbd", "logrotate"]),
        (dgx(os=os_release("rocky-9")), "gpu001", ["slurm", "slurm-slurmd", "slurm-pam_slurm", "logrotate"]),
        (dgx(SlurmOptions(gres_autodetect="nvml")), "gpu001", [
            *_CLIENT, "slurmd", "libpam-slurm-adopt", "slurm-wlm-nvml-plugin", "logrotate",
        ]),
        (dgx(SlurmOptions(pam_adopt=False)), "gpu001", [*_CLIENT, "slurmd", "logrotate"]),
        (small(), "node1", [
            *_CLIENT, "slurmctld", "slurmdbd", "slurm-wlm-mysql-plugin", "slurmd", "logrotate",
        ]),
    ],
)  # fmt: skip
def test_packages(made, name, names):
    assert [target for target, _ in packages(plan(made, name))] == names


def test_packages_of_schedmd_at_one_version():
    options = SlurmOptions.model_validate(
        {"packages": {"source": "schedmd", "release": "25.11", "version": "25.11.2-1"}}
    )
    assert packages(plan(dgx(options), "gpu001")) == [
        (name, "25.11.2-1")
        for name in ("slurm-smd", "slurm-smd-client", "slurm-smd-slurmd", "slurm-smd-libpam-slurm-adopt")
    ] + [("logrotate", "installed")]


@pytest.mark.parametrize(
    ("os", "expected"),
    [
        (os_release("ubuntu-24.04"), "policy-rc.d"),
        (
            os_release("rocky-9"),
            "dnf -q -y --setopt=install_weak_deps=False install slurm slurm-slurmd slurm-pam_slurm",
        ),
    ],
)
def test_packages_start_no_daemon(os, expected):
    (command,) = commands(plan(dgx(os=os), "gpu001"), "Install Slurm")
    assert expected in command


def test_a_head_is_built_from_the_database_upwards():
    names = [operation.name for operation in of_slurm(plan(lab(), "head1"))]
    order = [
        "Write /etc/slurm/slurm.conf",
        "Install Slurm",
        "Start slurmdbd with its settings",
        "Update accounts, users and QOS",
        "Start slurmctld with its settings",
    ]
    assert [name for name in names if name in order] == order
    assert "Start slurmd with its settings" not in names


def test_a_worker_has_no_password_and_no_controller():
    found = plan(lab(), "worker1")
    assert "/etc/slurm/slurmdbd.conf" not in paths(found)
    assert [op.name for op in of_slurm(found)][-1] == "Start slurmd with its settings"


def test_logs_are_rotated_where_daemons_write_them():
    # the package is installed without starting anything, its timer included
    (command,) = commands(plan(lab(), "worker1"), "Rotate logs every day")[-1:]
    assert "logrotate.timer" in command
    assert "Rotate logs every day" not in [op.name for op in of_slurm(plan(dgx(), "login1"))]


def test_files_of_a_bare_metal_worker():
    assert paths(plan(dgx(), "gpu001")) == [
        "/etc/slurm/slurm-restart.conf",
        "/etc/slurm/topology.conf",
        "/etc/slurm/gres.conf",
        "/etc/slurm/cgroup.conf",
        "/etc/slurm/job_container.conf",
        "/etc/slurm/mpi.conf",
        "/etc/slurm/plugstack.conf",
        "/etc/slurm/slurm.conf",
        "/etc/slurm/prolog.sh",
        "/etc/slurm/epilog.sh",
        "/etc/tmpfiles.d/rackwright-slurmd.conf",
        "/etc/logrotate.d/slurmd",
        "/etc/security/access-slurm.conf",
        "/etc/pam.d/sshd",
    ]


@pytest.mark.parametrize("name", ["head1", "login1"])
def test_ssh_to_heads_and_logins_stays_open(name):
    assert "/etc/pam.d/sshd" not in paths(plan(dgx(), name))


def test_a_head_that_is_a_worker_lets_everybody_in():
    assert "/etc/pam.d/sshd" not in paths(plan(small(), "node1"))
    assert "/etc/pam.d/sshd" in paths(plan(small(), "node2"))


def test_gpus_of_a_container_are_links_to_nothing():
    made = cluster(
        "c",
        node("head1", "10.0.0.1", "head", primary=True, platform=Platform.CONTAINER),
        node("gpu1", "10.0.0.2", "worker", sku=DGX_SKU, platform=Platform.CONTAINER),
    )
    found = plan(made, "gpu1")
    assert "/etc/tmpfiles.d/rackwright-gpus.conf" in paths(found)
    assert commands(found, "Create simulated GPUs") == (
        "systemd-tmpfiles --create /etc/tmpfiles.d/rackwright-gpus.conf",
    )


def test_backups_run_slurmctld_and_no_database():
    heads = [node(f"h{i}", f"10.0.0.{i}", "head", primary=i == 1) for i in (1, 2, 3)]
    options = SlurmOptions(backups=("h3",), state_dir="/shared/slurm")
    made = cluster("c", *heads, node("w", "10.0.0.9", "worker"), slurm=options)
    for name, daemons in (("h1", ["slurmctld", "slurmdbd"]), ("h2", []), ("h3", ["slurmctld"])):
        found = [target for target, _ in packages(plan(made, name)) if target in ("slurmctld", "slurmdbd")]
        assert found == daemons, name


def test_what_only_a_restart_changes_is_not_reloaded():
    assert not set(RESTART) & set(RELOAD)
    assert "/etc/slurm/slurm.conf" in RELOAD


@pytest.mark.parametrize(
    ("printed", "exit_status"),
    [
        ("Slurmctld(primary) at head1 is UP", 0),
        ("scontrol: error: Munge encode failed", 0),
        ("scontrol: error: Parsing error at unrecognized key: JobDefaults", 1),
        ("scontrol: fatal: Unable to process configuration file", 1),
    ],
)
def test_a_slurm_conf_that_slurm_cannot_read_does_not_land(printed, exit_status, tmp_path):
    fake = tmp_path / "scontrol"
    fake.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit 1\n")
    fake.chmod(0o755)
    script = f"set -eu\nt=/nowhere/slurm.conf\n{PARSES.replace('%s', chr(34) + '$t' + chr(34))}\nexit 0"
    done = subprocess.run(
        ["sh", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == exit_status
    assert (printed in done.stderr) is bool(exit_status)


def test_before_slurm_is_installed_there_is_nothing_to_ask():
    done = subprocess.run(
        ["/bin/sh", "-c", f"set -eu\n{PARSES.replace('%s', 'x')}"],
        env={"PATH": "/nowhere"},
        check=False,
        timeout=240,
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("stage", "ran", "exit_status"), [("prolog", "one two ", 3), ("epilog", "one two four ", 3)]
)
def test_the_runner_of_scripts(stage, ran, exit_status, tmp_path):
    folder = tmp_path / f"{stage}.d"
    folder.mkdir()
    for name, status, mode in (
        ("10-one.sh", 0, 0o755),
        ("20-two", 3, 0o755),
        ("30-three~", 0, 0o755),
        ("35-not-executable", 0, 0o644),
        ("40-four", 0, 0o755),
    ):
        script = folder / name
        script.write_text(
            f"#!/bin/sh\nprintf '%s ' {name.split('-')[1].split('.')[0]} >>{tmp_path}/ran\nexit {status}\n"
        )
        script.chmod(mode)
    (tmp_path / "logger").write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/log\n')
    (tmp_path / "logger").chmod(0o755)
    text = next(
        change.content
        for operation in of_slurm(plan(lab(), "worker1"))
        for change in operation.changes
        if change.target == f"/etc/slurm/{stage}.sh"
    )
    runner = tmp_path / "runner.sh"
    runner.write_text(text.replace("/etc/slurm", str(tmp_path)))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "7"}
    done = subprocess.run(["sh", runner], env=environment, check=False, timeout=240)
    assert done.returncode == exit_status
    assert (tmp_path / "ran").read_text() == ran
    assert (tmp_path / "log").read_text().endswith("20-two exited 3 for job 7\n")


@pytest.mark.parametrize("stage", ["prolog", "epilog"])
def test_an_empty_folder_of_scripts_is_no_failure(stage, tmp_path):
    made = lab()
    text = texts.script_runner(made, made.primary.options["slurm"], stage)
    runner = tmp_path / "runner.sh"
    runner.write_text(text.replace("/etc/slurm", str(tmp_path)))
    assert subprocess.run(["sh", runner], check=False, timeout=240).returncode == 0
