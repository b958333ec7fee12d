"""The suites of `make proof`. A new suite is one entry in SUITES and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rackwright.errors import ExitCode, RackwrightError

SMOKE_TARGET_SECONDS = 180
"""How long a smoke tier may take on an idle two-core machine; longer is reported, not failed."""
SMOKE_LIMIT_SECONDS = 600
"""When a smoke tier is stopped: three times the target and more, because a machine may be starved."""


class Tier(StrEnum):
    """How much of a suite runs."""

    FULL = "full"
    SMOKE = "smoke"


@dataclass(frozen=True)
class Suite:
    """Tests that are too long for `make test`, and what they prove."""

    name: str
    proves: str
    """One plain sentence for the table in README."""
    paths: tuple[str, ...]
    """Files and folders of the repository that the result depends on, the tests themselves included."""
    tests: tuple[str, ...]
    """pytest's arguments for the full tier."""
    smoke: tuple[str, ...]
    """pytest's arguments for the smoke tier."""
    environment: Mapping[str, str] = field(default_factory=dict)
    smoke_environment: Mapping[str, str] = field(default_factory=dict)
    limit_seconds: int = 3600
    """When the full tier is stopped."""

    def arguments(self, tier: Tier) -> tuple[str, ...]:
        return self.tests if tier is Tier.FULL else self.smoke

    def knobs(self, tier: Tier) -> dict[str, str]:
        """Environment variables that set how much the tests do."""
        return dict(self.environment if tier is Tier.FULL else self.smoke_environment)

    def limit(self, tier: Tier) -> int:
        return self.limit_seconds if tier is Tier.FULL else SMOKE_LIMIT_SECONDS


_ENGINE = (
    "deploys",
    "rackwright/atomic_write.py",
    "rackwright/claims",
    "rackwright/clusterfile",
    "rackwright/documents",
    "rackwright/engine",
    "rackwright/factcache",
    "rackwright/facts",
    "rackwright/lab",
    "rackwright/model",
    "rackwright/node_programs.py",
    "rackwright/operations",
    "rackwright/osfamily",
    "rackwright/plan",
    "rackwright/pyinfra_driver",
    "rackwright/ssh",
    "templates/guarded",
)
"""What every suite that applies something to a lab rack depends on."""
_RACKS = (
    "tests/conftest.py",
    "tests/racks/conftest.py",
    "tests/racks/program.py",
    "tests/racks/site.py",
    "tests/racks/warm.py",
)
_SLURM_RACK = tuple(
    f"{place}/{role}"
    for place in ("roles", "templates")
    for role in ("access", "base", "firewall", "mariadb", "munge", "slurm", "time", "tuning")
)
_STORAGE_ROLES = (
    *_SLURM_RACK,
    *(
        f"{place}/{role}"
        for place in ("roles", "templates")
        for role in ("home", "nfs_client", "nfs_server", "scratch", "storage_layout")
    ),
    "roles/storage_bench",
    "templates/mounts",
)
_NFS_RACK = (
    *_ENGINE,
    *_RACKS,
    "rackwright/image",
    "rackwright/mount_roles.py",
    "rackwright/mounts.py",
    "rackwright/secrets",
    "rackwright/verify",
    *_STORAGE_ROLES,
    "tests/racks/patience.py",
    "tests/racks/slurm_jobs.py",
    "tests/racks/verified.py",
)
_FUZZED = (
    "tests/unit/drift/test_hostile_replies.py",
    "tests/unit/factcache/test_replies.py",
    "tests/unit/why/test_hostile_node.py",
    "tests/unit/burnin/test_hostile_nodes.py",
    "tests/unit/facts/test_hostile_answers.py",
    "tests/unit/health/test_hostile_nodes.py",
    "tests/unit/plan/test_printable.py",
    "tests/unit/pyinfra_driver/test_hostile_nodes.py",
    "tests/unit/verify/test_hostile_nodes.py",
    "tests/unit/workload/test_hostile_head.py",
)
_SCALED = ("tests/unit/burnin/test_culprit.py", "tests/unit/workload/slurm_metrics/test_collector.py")
_DRIFTS = ("tests/racks/drifts.py", "tests/racks/snapshot.py")

_PLAIN_ROLES = (
    "roles/access",
    "roles/base",
    "roles/time",
    "roles/tuning",
    "templates/access",
    "templates/base",
    "templates/time",
    "templates/tuning",
)
_PLAIN_RACK = (*_PLAIN_ROLES, "tests/racks/plain/conftest.py")

_METRICS = (
    *_ENGINE,
    *_RACKS,
    *_SLURM_RACK,
    "inventory/drill.yaml",
    "rackwright/alerts",
    "rackwright/backup",
    "rackwright/burnin",
    "rackwright/certificates",
    "rackwright/cli/drill.py",
    "rackwright/dashboards",
    "rackwright/drift",
    "rackwright/drill",
    "rackwright/exporters.py",
    "rackwright/health",
    "rackwright/job_metrics",
    "rackwright/logs",
    "rackwright/prometheus",
    "rackwright/model/monitoring.py",
    "rackwright/own_metrics",
    "rackwright/secrets",
    "rackwright/silences",
    "rackwright/textfiles.py",
    "rackwright/verify",
    "roles/alertmanager",
    "roles/backup",
    "roles/blackbox_exporter",
    "roles/dcgm_exporter",
    "roles/health",
    "roles/hpc_stack",
    "roles/ipmi_exporter",
    "roles/job_metrics",
    "roles/logs",
    "roles/mysqld_exporter",
    "roles/node_exporter",
    "roles/prometheus",
    "roles/site_ca",
    "roles/slurm_exporter",
    "roles/snmp_exporter",
    "templates/alertmanager",
    "templates/blackbox_exporter",
    "templates/dcgm_exporter",
    "templates/exporters",
    "templates/ipmi_exporter",
    "templates/job_metrics",
    "templates/logs",
    "templates/mysqld_exporter",
    "templates/slurm_exporter",
    "tests/racks/alerts",
    "tests/racks/alerts_pair",
    "tests/racks/patience.py",
    "tests/racks/simulated_devices.py",
    "tests/racks/stranger.py",
)
"""Metrics, alerts and dashboards of a lab rack, and all that they show."""

SUITES = (
    Suite(
        name="dkms",
        proves="On a Debian 12 node, Debian's NVIDIA driver 535 is installed and DKMS builds its modules for "
        "the locked kernel; on Debian 13, a build that must fail is reported with the compiler's message.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/catalog",
            "rackwright/lock",
            "rackwright/verify",
            "roles/base",
            "roles/kernel",
            "roles/nvidia_driver",
            "roles/persistence",
            "templates/base",
            "templates/kernel",
            "templates/nvidia_driver",
            "templates/persistence",
            "tests/racks/dkms",
        ),
        tests=("tests/racks/dkms", "-m", "lab"),
        smoke=("tests/racks/dkms", "-m", "lab and smoke"),
        limit_seconds=7200,
    ),
    Suite(
        name="containers",
        proves="docker, containerd and podman run containers with the declared limits, images travel through the "
        "site's registry, which gives and takes none without its login, and pyxis is built for the installed Slurm; drift of each is found and repaired.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/containers.py",
            "rackwright/workload",
            "rackwright/verify",
            "roles/access",
            "roles/base",
            "roles/containerd",
            "roles/docker",
            "roles/enroot_pyxis",
            "roles/mariadb",
            "roles/munge",
            "roles/podman",
            "roles/registry_cache",
            "roles/slurm",
            "templates/access",
            "templates/base",
            "templates/containerd",
            "templates/docker",
            "templates/enroot_pyxis",
            "templates/mariadb",
            "templates/munge",
            "templates/podman",
            "templates/registry_cache",
            "templates/slurm",
            "tests/racks/containers",
            "tests/racks/serving.py",
        ),
        tests=("tests/racks/containers", "-m", "lab"),
        smoke=("tests/racks/containers", "-m", "lab and smoke"),
    ),
    Suite(
        name="hpc-stack",
        proves="UCX and Open MPI are built from source on a node, after an interruption too, and taken over as they are by "
        "another one; a program of their compiler runs over both under Slurm; the distribution's MPI likewise, with "
        "drift found and repaired.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/lock",
            "rackwright/verify",
            "roles/base",
            "roles/hpc_stack",
            "roles/mariadb",
            "roles/munge",
            "roles/slurm",
            "templates/base",
            "templates/hpc_stack",
            "templates/mariadb",
            "templates/munge",
            "templates/slurm",
            "tests/racks/hpc_stack",
            "tests/racks/serving.py",
        ),
        tests=("tests/racks/hpc_stack", "-m", "lab"),
        smoke=("tests/racks/hpc_stack", "-m", "lab and smoke"),
        limit_seconds=10800,
    ),
    Suite(
        name="nodes",
        proves="On racks of 40 and 100 nodes, apply finishes the reachable nodes, names the dead ones and "
        "finishes those when they are back.",
        paths=(*_ENGINE, *_RACKS, "roles/tuning", "templates/tuning", "tests/racks/many"),
        tests=("tests/racks/many", "-m", "lab"),
        smoke=("tests/racks/many", "-m", "lab"),
        environment={"RACKWRIGHT_TEST_NODES": "40 100"},
        smoke_environment={"RACKWRIGHT_TEST_NODES": "16"},
    ),
    Suite(
        name="drift-kinds",
        proves="On the Slurm rack, each kind of drift is found and repaired: seeded alone on nodes whose digest is "
        "cached, and dozens at once with the exact text of their plan.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_DRIFTS,
            "rackwright/drift",
            "rackwright/workload",
            "roles",
            "templates",
            "tests/racks/kinds.py",
            "tests/racks/slurm/conftest.py",
            "tests/racks/slurm/sampler.py",
            "tests/racks/slurm/test_drift.py",
            "tests/racks/slurm/test_kinds.py",
        ),
        tests=("tests/racks/slurm/test_kinds.py", "tests/racks/slurm/test_drift.py", "-m", "lab"),
        smoke=("tests/racks/slurm/test_kinds.py", "-m", "lab"),
        environment={"RACKWRIGHT_TEST_SEEDS": "all"},
        smoke_environment={"RACKWRIGHT_TEST_SEEDS": "first"},
    ),
    Suite(
        name="faults",
        proves="Nodes that die, reboot, hang, fill up or lose their network while an apply or a plan is under way "
        "are waited for or named, and the next apply finishes them.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_DRIFTS,
            *_PLAIN_RACK,
            "tests/racks/plain/installing.py",
            "tests/racks/plain/test_faults.py",
        ),
        tests=("tests/racks/plain/test_faults.py", "-m", "lab"),
        smoke=("tests/racks/plain/test_faults.py", "-m", "lab and smoke"),
    ),
    Suite(
        name="health",
        proves="Nodes under Slurm drain themselves for eight kinds of simulated GPU fault and resume once they are "
        "healed; they leave a human's drain alone, never drain too many, and do not reboot for ever.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/health",
            "rackwright/workload",
            "rackwright/why",
            "roles/health",
            "roles/slurm",
            "templates/health",
            "templates/slurm",
            "tests/racks/slurm/conftest.py",
            "tests/racks/slurm/health",
            "tests/racks/slurm/sampler.py",
            "tests/racks/snapshot.py",
            "tests/racks/watch.py",
        ),
        tests=("tests/racks/slurm/health", "-m", "lab"),
        smoke=("tests/racks/slurm/health", "-m", "lab and smoke"),
    ),
    Suite(
        name="dgx-example",
        proves="A head, a login node and two workers of `inventory/example-dgx-h100.yaml` as Debian 13 containers with "
        "simulated GPUs take every role of it, from packages with NVIDIA's names and none of its files; a second "
        "apply is empty, verify finds nothing wrong, and a job gets the eight GPUs of a node.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/example-dgx-h100.yaml",
            "rackwright/catalog",
            "rackwright/containers.py",
            "rackwright/health",
            "rackwright/lock",
            "rackwright/verify",
            "rackwright/workload",
            "roles",
            "templates",
            "tests/examples.py",
            "tests/gpu_repository.py",
            "tests/racks/containers/conftest.py",
            "tests/racks/containers/site_files.py",
            "tests/racks/dgx",
            "tests/racks/gpu_companions/conftest.py",
            "tests/racks/gpu_companions/nodes.py",
            "tests/racks/gpu_companions/repository.py",
            "tests/racks/serving.py",
        ),
        tests=("tests/racks/dgx", "-m", "lab"),
        smoke=("tests/racks/dgx", "-m", "lab and smoke"),
        smoke_environment={"RACKWRIGHT_TEST_DGX": "head1 gpu001"},
    ),
    Suite(
        name="site-folder",
        proves="From an empty folder with the wheel alone, `init` writes a site; a role and a check of that site are validated with "
        "line numbers, applied on a rack, verified, listed in the report of `accept`, and each is seen to find its fault; plain pytest "
        "and plain pyinfra reach the same nodes, and a node that is off is UNKNOWN.",
        paths=(
            *_ENGINE,
            "inventory/lab.yaml",
            "pyproject.toml",
            "rackwright/accept",
            "rackwright/init",
            "rackwright/pytest_plugin.py",
            "rackwright/render.py",
            "rackwright/shipped.py",
            "rackwright/site_folder.py",
            "rackwright/verify",
            "roles",
            "templates",
            "tests/conftest.py",
            "tests/crowd.py",
            "tests/factories.py",
            "tests/racks/conftest.py",
            "tests/racks/program.py",
            "tests/racks/site.py",
            "tests/racks/warm.py",
            "tests/racks/site_folder",
            "tests/unit/conftest.py",
            "tests/unit/cli/conftest.py",
            "tests/unit/site",
            "tests/unit/verify/conftest.py",
        ),
        tests=("tests/racks/site_folder", "-m", "lab"),
        smoke=("tests/unit/site",),
    ),
    Suite(
        name="kill-9",
        proves="An apply killed with SIGKILL at 40 random moments, in each of its stages, reaches the same end "
        "state when it is resumed; `lab up`, `lab down` and an image build, killed at each step, leave nothing "
        "that the next `up` or `down` cannot deal with.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_DRIFTS,
            *_PLAIN_RACK,
            "tests/racks/lab/conftest.py",
            "tests/racks/lab/test_crash.py",
            "tests/racks/lab/traces.py",
            "tests/racks/plain/test_kill_9.py",
        ),
        tests=("tests/racks/plain/test_kill_9.py", "tests/racks/lab/test_crash.py", "-m", "lab"),
        smoke=("tests/racks/plain/test_kill_9.py", "-m", "lab"),
        environment={"RACKWRIGHT_TEST_ROUNDS": "40"},
        smoke_environment={"RACKWRIGHT_TEST_ROUNDS": "2"},
    ),
    Suite(
        name="slurm-services",
        proves="slurmdbd and its database run on other heads than slurmctld; a pair of controllers starts only with "
        "its shared state mounted, stops with it, and takes over repeatedly without slurmdbd; purged jobs are archived; reservations are kept as declared.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/workload",
            "rackwright/verify",
            "roles/access",
            "roles/base",
            "roles/mariadb",
            "roles/munge",
            "roles/slurm",
            "templates/access",
            "templates/base",
            "templates/mariadb",
            "templates/munge",
            "templates/slurm",
            "tests/racks/patience.py",
            "tests/racks/slurm_services",
        ),
        tests=("tests/racks/slurm_services", "-m", "lab"),
        smoke=("tests/racks/slurm_services", "-m", "lab and smoke"),
    ),
    Suite(
        name="hostile-users",
        proves="A user of a node cannot drain it through the kernel's log, become root on the head from a worker, have "
        "root write or expose a file through a planted link, take another user's folder, or see other users' jobs.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_SLURM_RACK,
            "rackwright/health",
            "rackwright/verify",
            "rackwright/workload",
            "roles/health",
            "roles/podman",
            "templates/health",
            "templates/podman",
            "templates/user_folders",
            "tests/racks/hostile_users",
            "tests/racks/watch.py",
        ),
        tests=("tests/racks/hostile_users", "-m", "lab"),
        smoke=("tests/racks/hostile_users", "-m", "lab and smoke"),
    ),
    Suite(
        name="hostile-node",
        proves="If one of three nodes answers nonsense to plan, apply, drift, verify, health and why, it alone is UNKNOWN, and "
        "the results of the others equal those of a run without it.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_PLAIN_ROLES,
            "rackwright/boundary.py",
            "rackwright/cli",
            "rackwright/drift",
            "rackwright/health",
            "rackwright/verify",
            "rackwright/why",
            "tests/racks/hostile_node",
            "tests/unit/answers.py",
            "tests/unit/conftest.py",
        ),
        tests=("tests/racks/hostile_node", "-m", "lab"),
        smoke=("tests/racks/hostile_node", "-m", "lab and smoke"),
    ),
    Suite(
        name="fuzz",
        proves="10,000 made-up answers at each entry of plan, apply, drift, verify, health and why, of burn-in and of Slurm, "
        "within bounded memory: each is read, or is an error of that node alone, and no text of it reaches the terminal raw.",
        paths=(
            *_ENGINE,
            "rackwright/boundary.py",
            "rackwright/burnin",
            "rackwright/drift",
            "rackwright/health",
            "rackwright/result_store.py",
            "rackwright/verify",
            "rackwright/why",
            "rackwright/workload",
            "tests",
        ),
        tests=(*_FUZZED, "-m", "proof"),
        smoke=(*_FUZZED[:3], "-m", "not proof and not slow"),
        limit_seconds=7200,
    ),
    Suite(
        name="scale",
        proves="What grows with a cluster, simulated: among 512 nodes the burn-in's search finds one to three faults of nodes, rails and "
        "uplinks in at most 40 runs and invents none, with a declared floor and without one, on 200 seeds of each mix; the Slurm "
        "exporter collects 10,000 jobs on 1,000 nodes in at most 5 CPU seconds and 300 MB.",
        paths=(
            "rackwright/burnin",
            "rackwright/workload",
            "tests/conftest.py",
            "tests/unit/answers.py",
            "tests/unit/conftest.py",
            "tests/unit/burnin/simulated.py",
            "tests/unit/burnin/test_culprit.py",
            "tests/unit/workload/slurm_metrics",
        ),
        tests=(*_SCALED, "-m", "proof"),
        smoke=(*_SCALED, "-m", "not proof"),
    ),
    Suite(
        name="intruder",
        proves="Keys, accounts, sudo rights, sshd settings, unit files, modes, holds and setuid files that root left on "
        "a node are found by drift and by verify, moved to quarantine by apply, and kept where the cluster file allows them.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_PLAIN_ROLES,
            "rackwright/drift",
            "rackwright/verify",
            "roles/integrity",
            "tests/racks/intruder",
            "tests/racks/verified.py",
        ),
        tests=("tests/racks/intruder", "-m", "lab"),
        smoke=("tests/racks/intruder", "-m", "lab and smoke"),
    ),
    Suite(
        name="secrets",
        proves="The munge key and the database password are rotated under a running Slurm job, after a kill in the middle "
        "too; a lost store, and a copy of the cluster file, change no secret of a live rack.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_SLURM_RACK,
            "rackwright/rotation",
            "rackwright/secrets",
            "rackwright/workload",
            "tests/racks/secrets",
        ),
        tests=("tests/racks/secrets", "-m", "lab"),
        smoke=("tests/racks/secrets", "-m", "lab and smoke"),
    ),
    Suite(
        name="operators",
        proves="Of two operators one is refused by name; the run of one that was killed or stopped is seen, resumed and its "
        "drained nodes put back by the other; a full disk of the control node ends an apply in order.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_SLURM_RACK,
            "rackwright/boundary.py",
            "rackwright/cli",
            "rackwright/drift",
            "rackwright/state_folder.py",
            "rackwright/workload",
            "tests/racks/operators",
        ),
        tests=("tests/racks/operators", "-m", "lab"),
        smoke=("tests/racks/operators", "-m", "lab and smoke"),
    ),
    Suite(
        name="control-side",
        proves="100 nodes behind one jump host with sshd's stock MaxStartups, silent resolvers, noexec and read-only "
        "folders, odd login shells and locales, and a broken package database do not stop a run or go unnoticed.",
        paths=(*_ENGINE, *_RACKS, *_PLAIN_ROLES, "rackwright/verify", "tests/racks/control_side"),
        tests=("tests/racks/control_side", "-m", "lab"),
        smoke=("tests/racks/control_side", "-m", "lab and smoke"),
    ),
    Suite(
        name="vm",
        proves="On three virtual machines, each with its own kernel, all roles of `inventory/vm.yaml` hold and only "
        "the CPU frequency governor is out of scope; cgroups hold jobs and logins, and reboots and power cuts are outlived.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/vm.yaml",
            "rackwright/catalog",
            "rackwright/health",
            "rackwright/image",
            "rackwright/verify",
            "rackwright/workload",
            "roles",
            "templates",
            "tests/racks/slurm_jobs.py",
            "tests/racks/verified.py",
            "tests/racks/vm",
        ),
        tests=("tests/racks/vm", "-m", "lab"),
        smoke=("tests/racks/vm/test_alone.py", "-m", "lab and smoke"),
        limit_seconds=7200,
    ),
    Suite(
        name="fabric",
        proves="Cables of an Ethernet rack with a leaf for each rail are compared with the declaration by LLDP, those of simulated "
        "InfiniBand fabrics by ibnetdiscover with faults of eleven kinds, each found and none invented; opensm takes the declared "
        "partitions and routing, and the standby takes over; on machines with soft-RoCE the roles are applied once and MPI goes "
        "over verbs, and a link that is down, a wrong MTU, a wrong subnet and a fallback to TCP fail by name.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/burnin",
            "rackwright/cli/fabric.py",
            "rackwright/fabric",
            "rackwright/result_store.py",
            "rackwright/verify",
            "rackwright/workload",
            "roles",
            "templates",
            "tests/racks/fabric",
            "tests/racks/infiniband_sim",
            "tests/racks/verified.py",
            "tests/racks/vm_lab/conftest.py",
            "tests/factories.py",
            "tests/unit/conftest.py",
            "tests/unit/fabric",
            "tests/unit/roles/fabric_sites.py",
            "tests/unit/roles/fake_host.py",
        ),
        tests=("tests/racks/fabric", "tests/racks/infiniband_sim", "-m", "lab"),
        smoke=("tests/racks/fabric/test_cabling.py", "-m", "lab"),
        limit_seconds=7200,
    ),
    Suite(
        name="storage",
        proves="On virtual machines, NFS is served and mounted as declared after power cuts in any order, a dead server hangs nothing "
        "and jobs go on when it is back; a drive that is gone ends no other export; what leaves the declaration is unmounted; drives "
        "of scratch are replaced, and quotas hold. Through Slurm, a filesystem is measured against its floors, and checkpoints "
        "outlive a killed rank; a server that dies under a bench makes it UNKNOWN.",
        paths=(
            *_NFS_RACK,
            "rackwright/cli/storage.py",
            "rackwright/node_folders",
            "rackwright/result_store.py",
            "rackwright/storage",
            "rackwright/workload",
            "tests/factories.py",
            "tests/racks/storage",
            "tests/unit/answers.py",
            "tests/unit/conftest.py",
            "tests/unit/facts/test_mounts.py",
            "tests/unit/storage",
        ),
        tests=(
            *(f"tests/racks/storage/test_{name}.py" for name in ("bench", "mounts", "exports", "drives")),
            "-m",
            "lab",
        ),
        smoke=("tests/unit/storage", "tests/unit/facts/test_mounts.py", "-m", "not proof"),
        limit_seconds=10800,
    ),
    Suite(
        name="slurm-state",
        proves="On virtual machines, two slurmctld share their state on an NFS mount: without the mount neither starts with an empty "
        "queue, with it the backup takes over with the jobs, and a server that dies stops nothing for good.",
        paths=(
            *_NFS_RACK,
            "tests/factories.py",
            "tests/racks/slurm_state",
            "tests/unit/conftest.py",
            "tests/unit/roles/fake_facts.py",
            "tests/unit/roles/fake_host.py",
            "tests/unit/roles/slurm_clusters.py",
            "tests/unit/roles/storage_sites.py",
            "tests/unit/roles/test_slurm_state.py",
        ),
        tests=("tests/racks/slurm_state", "-m", "lab"),
        smoke=("tests/unit/roles/test_slurm_state.py", "-m", "not proof"),
        limit_seconds=7200,
    ),
    Suite(
        name="accounts",
        proves="Users of an LDAP directory log in, run jobs under their Slurm account and get a home and their sudo rules; those who are "
        "known still log in while the directory is down, and no lookup waits longer than declared.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/certificates",
            "rackwright/secrets",
            "rackwright/verify",
            *_SLURM_RACK,
            "roles/accounts",
            "roles/integrity",
            "roles/site_ca",
            "templates/accounts",
            "tests/racks/accounts",
        ),
        tests=("tests/racks/accounts", "-m", "lab"),
        smoke=("tests/racks/accounts", "-m", "lab and smoke"),
    ),
    Suite(
        name="backup",
        proves="An emptied head gets its job history, accounts and queue back from an encrypted backup; a head that has them is not "
        "overwritten, and a restore that is killed is run again.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/backup",
            "rackwright/cli/restore.py",
            "rackwright/node_folders",
            "rackwright/restore",
            "rackwright/secrets",
            "rackwright/verify",
            *_SLURM_RACK,
            "roles/backup",
            "templates/backup",
            "tests/racks/backup",
        ),
        tests=("tests/racks/backup", "-m", "lab"),
        smoke=("tests/racks/backup", "-m", "lab and smoke"),
    ),
    Suite(
        name="alerts",
        proves="On a rack with the distribution's Prometheus, Alertmanager and exporters, a fault is made for each alert that a lab can have, "
        "the alert reaches a webhook and resolves after healing; so do the alerts of simulated BMCs, switches, UPSes and PDUs. Nothing "
        "answers without the password or from outside the management network, and users see only the metrics of their jobs.",
        paths=_METRICS,
        tests=(
            "tests/racks/alerts/test_access.py",
            "tests/racks/alerts/test_device_drills.py",
            "tests/racks/alerts/test_drill.py",
            "-m",
            "lab",
        ),
        smoke=("tests/racks/alerts", "-m", "lab and smoke"),
    ),
    Suite(
        name="metrics",
        proves="On a rack with jobs and faults, dashboards show data in every panel that such a rack can fill. With Prometheus and "
        "Alertmanager on two heads, one of them can fail, each alert is sent once, and nodes that rackwright itself takes down raise no "
        "alert. Another site's Prometheus is federated and written to, and that site's faults raise no alert here.",
        paths=_METRICS,
        tests=("tests/racks/alerts/test_panels.py", "tests/racks/alerts_pair", "-m", "lab"),
        smoke=("tests/racks/alerts_pair", "-m", "lab and smoke"),
    ),
    Suite(
        name="logs",
        proves="On a rack with the central journal, numbered lines arrive once each after the receiver, the gate or a sender was stopped or "
        "killed, a network was cut, the head's disk was full and its plug was pulled; only a node's certificate delivers lines, in that "
        "node's name alone; `rackwright logs` finds those of a node, a unit and a job and names what is missing; old lines go, and the "
        "audit trail stays.",
        paths=(
            *_ENGINE,
            *_RACKS,
            *_SLURM_RACK,
            "inventory/drill.yaml",
            "rackwright/certificates",
            "rackwright/cli/logs.py",
            "rackwright/cli/logs_view.py",
            "rackwright/health/probe",
            "rackwright/logs",
            "rackwright/secrets",
            "rackwright/verify",
            "rackwright/workload",
            "roles/logs",
            "roles/site_ca",
            "templates/logs",
            "tests/racks/logs",
            "tests/racks/patience.py",
            "tests/racks/slurm_jobs.py",
            "tests/racks/stranger.py",
            "tests/racks/verified.py",
        ),
        tests=("tests/racks/logs", "-m", "lab"),
        smoke=("tests/racks/logs", "-m", "lab and smoke"),
    ),
    Suite(
        name="kubernetes",
        proves="On a rack whose nodes run a kubelet, kubeadm's Kubernetes 1.20.2, built from Debian's source, is installed from bare "
        "nodes; a second apply changes nothing, and verify's pods reach each other; simulated GPUs, quotas, preemption and the burn-in "
        "over MPI work in pods; drift is named and repaired, and a killed worker, a deleted node, a kubelet without credentials and a restored "
        "etcd come back. Three control-plane nodes are made although the first run is killed; the leader is killed and its address moves, and the "
        "first one, without its disk, makes no second cluster. Where one inventory has Slurm and "
        "Kubernetes, a worker moves from one to the other and back.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/kubernetes.yaml",
            "rackwright/burnin",
            "rackwright/certificates",
            "rackwright/health",
            "rackwright/kubernetes",
            "rackwright/secrets",
            "rackwright/verify",
            "rackwright/workload",
            *(
                f"{place}/{role}"
                for place in ("roles", "templates")
                for role in (
                    "access",
                    "base",
                    "containerd",
                    "firewall",
                    "health",
                    "kubernetes",
                    "load_balancer",
                    "mariadb",
                    "munge",
                    "slurm",
                    "time",
                )
            ),
            "roles/gpu_stack_k8s",
            "roles/kubernetes_scheduling",
            "roles/site_ca",
            "templates/kubernetes_step",
            "templates/lab",
            "tests/racks/kubernetes",
            "tests/racks/kubernetes_ha",
            "tests/racks/kubernetes_mixed",
            "tests/racks/lab/conftest.py",
            "tests/racks/lab/test_kubelet_node.py",
            "tests/racks/lab/traces.py",
            "tests/racks/patience.py",
        ),
        tests=(
            "tests/racks/kubernetes",
            "tests/racks/kubernetes_ha",
            "tests/racks/kubernetes_mixed",
            "tests/racks/lab/test_kubelet_node.py",
            *("-m", "lab"),
        ),
        smoke=("tests/racks/kubernetes", "-m", "lab and smoke"),
        limit_seconds=7200,
    ),
    Suite(
        name="kubernetes-conformance",
        proves="Upstream's conformance tests of Kubernetes 1.20.2, built from the source that the lab's Kubernetes is built from, pass on a "
        "control plane and two workers: all but those that need an image of upstream's registries, and those marked Serial, Slow or Disruptive.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/kubernetes.yaml",
            "roles/containerd",
            "roles/firewall",
            "roles/kubernetes",
            "templates/containerd",
            "templates/firewall",
            "templates/kubernetes",
            "templates/lab",
            "tests/kubernetes_conformance.py",
            "tests/racks/kubernetes_conformance",
        ),
        tests=("tests/racks/kubernetes_conformance", "-m", "lab"),
        smoke=("tests/racks/kubernetes_conformance", "-m", "lab and smoke"),
        limit_seconds=7200,
    ),
    Suite(
        name="slurm-on-kubernetes",
        proves="Slurm's daemons run as pods from the settings that they have on nodes: srun across two pods, with its accounting; "
        "a slurmctld that was killed comes back with its state, and drift of its files is named and repaired. A drain waits for Slurm's jobs "
        "and is one in Slurm and in Kubernetes; a sick node is drained in Slurm.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/slurm-on-kubernetes.yaml",
            "rackwright/health",
            "rackwright/image",
            "rackwright/kubernetes",
            "rackwright/workload",
            "roles/health",
            "roles/kubernetes",
            "roles/slurm",
            "roles/slurm_on_kubernetes",
            "templates/health",
            "templates/kubernetes",
            "templates/slurm",
            "templates/slurm_on_kubernetes",
            "tests/racks/patience.py",
            "tests/racks/slurm_on_kubernetes",
            "tests/racks/verified.py",
        ),
        tests=("tests/racks/slurm_on_kubernetes", "-m", "lab"),
        smoke=("tests/racks/slurm_on_kubernetes", "-m", "lab and smoke"),
        limit_seconds=7200,
    ),
    Suite(
        name="ray",
        proves="On a rack whose nodes have no route out, Ray is installed from wheels whose hashes are locked; a second apply changes "
        "nothing, and verify runs tasks, an actor that is killed, a spill, Train, Tune, Data and Serve; an edited environment and "
        "undeclared resources are found; a killed raylet, a head that was away and a worker that lost power come back; drains outlive restarts. A "
        "service on Ray Serve grows with its load, and the workers that are left answer for one that lost power. The burn-in reduces through "
        "ray.util.collective with gloo. Jobs of Slurm start Ray side by side on the same nodes, closed to other users.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/ray.yaml",
            "rackwright/burnin",
            "rackwright/certificates",
            "rackwright/secrets",
            "rackwright/verify",
            "rackwright/workload",
            "roles/access",
            "roles/base",
            "roles/firewall",
            "inventory/lab.yaml",
            "roles/mariadb",
            "roles/munge",
            "roles/ray",
            "roles/ray_on_slurm",
            "roles/site_ca",
            "roles/slurm",
            "roles/time",
            "templates/burnin",
            "templates/ray",
            "templates/ray_on_slurm",
            "templates/ray_step",
            "tests/racks/patience.py",
            "tests/racks/ray",
            "tests/racks/ray_collective",
            "tests/racks/ray_on_slurm",
            "tests/racks/verified.py",
            "tests/ray_lock.py",
            "tests/ray_wheels.py",
        ),
        tests=("tests/racks/ray", "tests/racks/ray_collective", "tests/racks/ray_on_slurm", "-m", "lab"),
        smoke=(
            "tests/racks/ray",
            "tests/racks/ray_collective",
            "tests/racks/ray_on_slurm",
            "-m",
            "lab and smoke",
        ),
    ),
    Suite(
        name="node",
        proves="On virtual machines, changes of the kernel's command line come true by a reboot in a wave, a worker that "
        "does not return stops the waves, and a network or firewall that locks rackwright out is taken back by the node "
        "itself; bonds, VLANs, arrays of declared disks, certificates and resolvers hold, and each fault of them is found.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/vm.yaml",
            "rackwright/certificates",
            "rackwright/image",
            "rackwright/verify",
            "rackwright/workload",
            "roles",
            "templates",
            "tests/racks/node",
            "tests/racks/slurm_jobs.py",
            "tests/racks/verified.py",
        ),
        # Each file boots a separate rack, whose machines spend most of the time waiting.
        tests=("tests/racks/node", "-m", "lab", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"),
        smoke=(
            "tests/racks/node/test_certificates.py",
            "tests/racks/node/test_dns.py",
            "-m",
            "lab and smoke",
        ),
        limit_seconds=7200,
    ),
    Suite(
        name="vm-gpu",
        proves="A Debian 12 virtual machine loses power while DKMS builds NVIDIA's driver 535, the next apply finishes the "
        "build, and the machine boots the locked kernel and links the module into it; on another, Slurm lets a job open the "
        "device files of the GPUs that it asked for and no others.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/catalog",
            "rackwright/image",
            "rackwright/lock",
            "rackwright/workload",
            "roles/access",
            "roles/base",
            "roles/mariadb",
            "roles/munge",
            "roles/nvidia_driver",
            "roles/slurm",
            "templates/access",
            "templates/base",
            "templates/mariadb",
            "templates/munge",
            "templates/nvidia_driver",
            "templates/slurm",
            "tests/racks/slurm_jobs.py",
            "tests/racks/vm_gpu",
        ),
        tests=("tests/racks/vm_gpu", "-m", "lab"),
        smoke=("tests/racks/vm_gpu", "-m", "lab and smoke"),
        limit_seconds=14400,
    ),
    Suite(
        name="vm-lab",
        proves="A virtual machine of the lab boots with a known host key, given on a virtio or a SATA disk, survives reboots, "
        "power cuts and a panic, has every fault that the lab offers and is healed of it, shares a rack with a container, "
        "and leaves this machine's network, mounts and devices as they were.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "rackwright/image",
            "roles/base",
            "templates/base",
            "tests/racks/host_state.py",
            "tests/racks/lab/conftest.py",
            "tests/racks/lab/traces.py",
            "tests/racks/vm_lab",
        ),
        tests=("tests/racks/vm_lab", "-m", "lab"),
        smoke=("tests/racks/vm_lab", "-m", "lab and smoke"),
        limit_seconds=5400,
    ),
    Suite(
        name="image",
        proves="Images of a group have its packages with the declared account IDs, no secret and no trace of one "
        "machine; a build runs no daemon, is found again, and leaves nothing here when it ends or is killed.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/vm.yaml",
            "rackwright/catalog",
            "rackwright/cli/image.py",
            "rackwright/image",
            "rackwright/lock",
            "roles",
            "templates",
            "tests/racks/dkms/conftest.py",
            "tests/racks/dkms/pairs.py",
            "tests/racks/host_state.py",
            "tests/racks/image",
        ),
        tests=("tests/racks/image", "-m", "lab"),
        smoke=("tests/racks/image", "-m", "lab and smoke"),
        limit_seconds=5400,
    ),
    Suite(
        name="baremetal",
        proves="Three machines that have a BMC and blank disks become an accepted cluster by one command, with Secure Boot on, and a "
        "second run changes nothing; a running or installed machine is erased only by its serial numbers, power cuts and "
        "a killed head are survived, wrong BMCs are left alone, and sushy-tools' BMCs do as well as the lab's own. A module "
        "that DKMS signed with the site's key loads once that key is enrolled, at the serial console and over Serial over LAN. "
        "Debian's own installer boots after the agent and fetches its answers, no further: it installs nothing here.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/baremetal.yaml",
            "rackwright/accept",
            "rackwright/bmc",
            "rackwright/burnin",
            "rackwright/catalog",
            "rackwright/cli",
            "rackwright/firmware",
            "rackwright/image",
            "rackwright/install",
            "rackwright/result_store.py",
            "rackwright/verify",
            "rackwright/workload",
            "roles",
            "templates",
            "tests/racks/agent",
            "tests/factories.py",
            "tests/racks/bare_metal",
            "tests/racks/host_state.py",
            "tests/racks/installers",
            "tests/racks/lab/conftest.py",
            "tests/racks/lab/traces.py",
            "tests/racks/patience.py",
            "tests/racks/provisioned",
            "tests/racks/sushy",
            "tests/racks/vagrant/conftest.py",
            "tests/racks/vagrant/machine_state.py",
            "tests/racks/vagrant/private_libvirt.py",
            "tests/racks/vagrant/rack.py",
            "tests/unit/bmc",
            "tests/unit/conftest.py",
        ),
        tests=(
            "tests/racks/provisioned",
            "tests/racks/agent",
            "tests/racks/bare_metal",
            "tests/racks/sushy",
            "tests/racks/installers",
            "-m",
            "lab",
        ),
        smoke=(
            "tests/racks/provisioned",
            "tests/racks/agent",
            "tests/racks/bare_metal",
            "tests/racks/installers",
            "tests/racks/sushy",
            "-m",
            "lab and smoke",
        ),
        limit_seconds=10800,
    ),
    Suite(
        name="vagrant",
        proves="`vagrant up` makes the virtual machines of `inventory/vagrant.yaml` with libvirt under emulation, "
        "`rackwright accept` accepts them, they verify after a halt, stock pyinfra reaches them, and the machine's own "
        "libvirt and network stay as they were.",
        paths=(
            *_ENGINE,
            *_RACKS,
            "inventory/vagrant.yaml",
            "rackwright/accept",
            "rackwright/burnin",
            "rackwright/catalog",
            "rackwright/cli",
            "rackwright/image",
            "rackwright/result_store.py",
            "rackwright/verify",
            "rackwright/workload",
            "roles",
            "templates",
            "tests/racks/host_state.py",
            "tests/racks/vagrant",
            "vagrant",
        ),
        tests=("tests/racks/vagrant", "-m", "lab"),
        smoke=("tests/racks/vagrant", "-m", "lab and smoke"),
        limit_seconds=7200,
    ),
)


class UnknownSuite(RackwrightError):  # noqa: N818 - reads as the sentence it is
    """An unknown suite."""

    exit_code = ExitCode.USAGE


def named(names: Iterable[str], suites: tuple[Suite, ...] = SUITES) -> tuple[Suite, ...]:
    """The suites with these names, in the order of the list; all of them when no name is given."""
    wanted = set(names)
    known = [suite.name for suite in suites]
    if unknown := sorted(wanted - set(known)):
        raise UnknownSuite(
            f"There is no proof suite {', '.join(unknown)}.", hint=f"known suites: {', '.join(known)}"
        )
    return tuple(suite for suite in suites if not wanted or suite.name in wanted)
