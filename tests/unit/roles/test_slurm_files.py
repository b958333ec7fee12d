"""Slurm's configuration files, whole: for a lab, for 32 DGX H100, for a head that is a worker."""

from __future__ import annotations

import pytest

from rackwright.osfamily.known import FAMILIES, os_release
from rackwright.roles.slurm import texts
from rackwright.roles.slurm.options import SlurmOptions
from tests.unit.roles.sites import expected
from tests.unit.roles.slurm_clusters import dgx, lab, small

EVERYTHING = SlurmOptions.model_validate(
    {
        "partitions": {
            "train": {
                "nodes": "gpu[001-032]",
                "default": True,
                "max_time": "7-00:00:00",
                "default_time": "12:00:00",
                "oversubscribe": "EXCLUSIVE",
                "qos": "big",
                "tres_billing_weights": {"CPU": 1.0, "Mem": 0.25, "GRES/gpu": 16.0},
            },
            "debug": {
                "nodes": "gpu[001-004,009]",
                "state": "DRAIN",
                "max_time": "01:00:00",
                "min_nodes": 1,
                "max_nodes": 2,
                "priority_tier": 10,
                "priority_job_factor": 2,
                "preempt_mode": "OFF",
                "grace_seconds": 30,
                "def_mem_per_gpu_mib": 1000,
                "def_cpu_per_gpu": 4,
                "max_mem_per_cpu_mib": 9000,
                "max_cpus_per_node": 100,
                "allow_qos": ["normal", "big"],
                "allow_accounts": ["research"],
                "allow_groups": ["staff"],
                "hidden": True,
                "root_only": True,
            },
            "cpu": {"nodes": "gpu032", "def_mem_per_cpu_mib": 500, "deny_accounts": ["guest"]},
        },
        "qos": {"big": {}},
        "accounts": {"research": {}, "guest": {}},
        "mem_spec_limit_mib": 16384,
        "core_spec_count": 2,
        "memory_headroom_mib": 1000,
        "trust_declaration": True,
        "srun_port_range": "60001-63000",
        "topology": "block",
        "block_sizes": [8, 16, 32],
        "accounting": {"tres": ["gres/gpu:h100"]},
        "priority": {"favor_small": True, "weight_tres": {"gres/gpu": 3000, "cpu": 10}},
        "preempt": "qos",
        "preempt_mode": "SUSPEND",
        "scheduler_parameters": [],
    }
)


def _saving_power(release: str) -> SlurmOptions:
    return SlurmOptions.model_validate(
        {
            "packages": {"source": "schedmd", "release": release},
            "power_saving": {
                "suspend_program": "/opt/site/power-off",
                "resume_program": "/opt/site/power-on",
                "exclude_nodes": ["gpu[001-004]"],
                "exclude_partitions": ["main"],
            },
            "node_settings": {"gpu[001-002]": {"features": ["debug"], "weight": 1}},
        }
    )


CLUSTERS = {
    "lab": lab(),
    "dgx": dgx(),
    "dgx-ubuntu24.04": dgx(os=os_release("ubuntu-24.04")),
    "dgx-everything": dgx(EVERYTHING),
    "small": small(),
}
BY_RELEASE = {f"dgx-{release}": dgx(_saving_power(release)) for release in ("22.05", "24.11", "26.05")}
"""What differs: SuspendExcStates and Dirs from 23.02, AutoDetect=nvidia from 24.11, NamespaceType from 25.11."""


def files_of(cluster):
    """Every file that is the same on all nodes, by its name, and those of a daemon."""
    options = cluster.primary.options["slurm"]
    found = {path.rpartition("/")[2]: text for path, text in texts.shared_files(cluster, options).items()}
    found["slurmdbd.conf"] = texts.slurmdbd_conf(cluster, options, "the-password")
    found["prolog.sh"] = texts.script_runner(cluster, options, "prolog")
    found["epilog.sh"] = texts.script_runner(cluster, options, "epilog")
    found["logrotate-slurmd"] = texts.logrotate(cluster, options, "slurmd")
    found["access.conf"] = texts.access_conf(cluster, options)
    return found


NAMES = [(name, file) for name, cluster in CLUSTERS.items() for file in files_of(cluster)]
ABSENT = {
    "lab/topology.conf",
    "lab/gres.conf",
    "lab/job_container.conf",
    "small/topology.conf",
    "small/gres.conf",
}


@pytest.mark.parametrize(("name", "file"), NAMES)
def test_file(name, file):
    text = files_of(CLUSTERS[name])[file]
    if text is None:
        assert f"{name}/{file}" in ABSENT
        return
    assert text == expected(f"slurm/{name}/{file}")


@pytest.mark.parametrize("name", list(BY_RELEASE))
@pytest.mark.parametrize("file", ["slurm.conf", "gres.conf", "job_container.conf"])
def test_file_by_release(name, file):
    assert files_of(BY_RELEASE[name])[file] == expected(f"slurm/{name}/{file}")


@pytest.mark.parametrize("family", list(FAMILIES.values()))
def test_pam_of_sshd(family):
    assert texts.sshd_pam(family) == expected(f"slurm/sshd.pam.{family}")


def test_mpi_conf_only_where_jobs_start_through_pmix_and_slurm_reads_it():
    assert files_of(dgx(SlurmOptions(mpi_default="none")))["mpi.conf"] is None
    assert files_of(dgx(os=os_release("ubuntu-22.04")))["mpi.conf"] is None  # 21.08


def test_what_a_power_cut_leaves_of_pmix_is_removed_at_boot():
    options = CLUSTERS["lab"].primary.options["slurm"]
    assert texts.slurmd_tmpfiles(options) == expected("slurm/slurmd-tmpfiles.conf")


def test_simulated_gpus():
    assert texts.simulated_gpus_conf(2) == expected("slurm/simulated-gpus.conf")
