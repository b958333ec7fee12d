"""The text of each configuration file, whole. Pure: what is applied is what is verified."""

from __future__ import annotations

import re
from typing import Any

from rackwright.drift.paths import USER as DRIFT_USER
from rackwright.extra_lines import with_extra
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.osfamily.known import OsFamily
from rackwright.render import render
from rackwright.roles.slurm import layout, placement, scheduling, standby
from rackwright.roles.slurm.entities import Partition
from rackwright.roles.slurm.gres_lines import SIMULATED_GPUS, gres_lines
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.services import StateMount
from rackwright.roles.slurm.topology import block_sizes, groups, topology_kind, upper
from rackwright.workload.slurm.gres import gres
from rackwright.workload.slurm.pods import PodPlaces
from rackwright.workload.slurm.srun import ACCOUNT


def slurm_conf(cluster: Cluster, options: SlurmOptions, pods: PodPlaces | None = None) -> str:
    """/etc/slurm/slurm.conf."""
    gpus = any(gres(node) for node in placement.workers(cluster))
    return _render(
        "slurm.conf",
        cluster,
        options,
        topology=topology_kind(cluster, options),
        release=placement.release(cluster, options),
        scheduler_parameters=scheduling.scheduler_parameters(options),
        priority_flags=scheduling.priority_flags(cluster, options),
        stays_on=scheduling.stays_on(cluster, options),
        excluded_states=scheduling.excluded_states(cluster, options),
        gres_types=("gpu",) if gpus else (),
        tres=_tracked(options, gpus=gpus),
        licenses=",".join(f"{name}:{count}" for name, count in options.licenses.items()),
        def_mem_per_cpu=layout.least_mem_per_cpu(cluster, options),
        preempt_mode=_preempt_mode(options.preempt_mode),
        node_lines=layout.node_lines(cluster, options, None if pods is None else pods.domain),
        pods=pods is not None,
        addresses_change=pods is not None and pods.domain is not None,
        health_program=placement.health_program(cluster, options),
        task_prolog=placement.sets_environment(cluster),
        standby=standby if standby.due(cluster.primary, options) else None,
        partition_lines=tuple(
            partition_line(cluster, options, name, partition)
            for name, partition in options.partitions.items()
        ),
    )


def slurm_restart_conf(cluster: Cluster, options: SlurmOptions, pods: PodPlaces | None = None) -> str:
    """/etc/slurm/slurm-restart.conf: what only a restart changes."""
    controllers = [
        (node.name, str(cluster.management_address(node))) for node in placement.controllers(cluster, options)
    ]
    return _render(
        "slurm-restart.conf",
        cluster,
        options,
        controllers=controllers if pods is None else [(pods.controller, pods.controller_address)],
        dbd_host=placement.dbd_host(cluster, options),
    )


def slurmdbd_conf(cluster: Cluster, options: SlurmOptions, password: str | None) -> str:
    """/etc/slurm/slurmdbd.conf; holds the password, unless it is None: it is added where slurmdbd starts."""
    host = placement.dbd_host(cluster, options)
    # slurmdbd knows nothing of nodes and partitions (slurmdbd.conf(5), read 2026-11-23)
    private = [what for what in options.private_data if what not in ("nodes", "partitions")]
    return _render("slurmdbd.conf", cluster, options, password=password, dbd_host=host, private_data=private)


def state_mount_conf(mount: StateMount) -> str:
    """/etc/systemd/system/slurmctld.service.d/rackwright.conf: no slurmctld without its state."""
    return render("slurm/state-mount.conf.j2", mount=mount)


def cgroup_conf(cluster: Cluster, options: SlurmOptions, *, pods: bool = False) -> str:
    """/etc/slurm/cgroup.conf."""
    # SystemdTimeout is in cgroup.conf(5) of 24.05.2 and not of 23.11.4 (manpages.ubuntu.com, read 2026-11-23)
    return _render("cgroup.conf", cluster, options, release=placement.release(cluster, options), pods=pods)


def plugstack_conf(cluster: Cluster, options: SlurmOptions) -> str:
    """/etc/slurm/plugstack.conf."""
    return _render("plugstack.conf", cluster, options)


def gres_conf(cluster: Cluster, options: SlurmOptions) -> str | None:
    """/etc/slurm/gres.conf; None where no worker has GPUs."""
    lines = gres_lines(cluster, options)
    return _render("gres.conf", cluster, options, gres_lines=lines) if lines else None


def topology_conf(cluster: Cluster, options: SlurmOptions) -> str | None:
    """/etc/slurm/topology.conf; None where the topology is flat."""
    kind = topology_kind(cluster, options)
    if kind == "flat":
        return None
    found = groups(cluster, kind)
    above = upper(cluster, found) if kind == "tree" else ()
    sizes = block_sizes(cluster, options) if kind == "block" else ()
    return _render(
        "topology.conf", cluster, options, topology=kind, groups=found, upper=above, block_sizes=sizes
    )


def job_container_conf(cluster: Cluster, options: SlurmOptions) -> str | None:
    """/etc/slurm/job_container.conf; None where jobs share /tmp."""
    if not (options.private_tmp and placement.confined(cluster)):
        return None
    # 22.05 makes the same two folders private and refuses a file that names them.
    return _render("job_container.conf", cluster, options, release=placement.release(cluster, options))


def mpi_conf(cluster: Cluster, options: SlurmOptions) -> str | None:
    """/etc/slurm/mpi.conf; None where jobs do not start through PMIx, and before Slurm 22.05, which does not read it.

    PMIx 5 opens a file in its clients' folder, in TmpFS by default: MPI_Init ends with exit status 14 where /tmp is
    the job's own (openpmix/openpmix#3839; seen with Slurm 24.11 and PMIx 5.0.7, 2026-11-23).
    """
    if options.mpi_default != "pmix" or placement.release(cluster, options) < (22, 5):
        return None
    return _render("mpi.conf", cluster, options)


def slurmd_tmpfiles(options: SlurmOptions) -> str:
    """/etc/tmpfiles.d/rackwright-slurmd.conf: what is removed when a worker boots."""
    return render("slurm/slurmd-tmpfiles.conf.j2", spool_dir=options.spool_dir)


def logrotate(cluster: Cluster, options: SlurmOptions, daemon: str) -> str:
    """/etc/logrotate.d/<daemon>, over the package's own of that name."""
    return _render("logrotate", cluster, options, daemon=daemon)


def simulated_gpus_conf(count: int) -> str:
    """/etc/tmpfiles.d/rackwright-gpus.conf of a container whose SKU has GPUs."""
    return render("slurm/simulated-gpus.conf.j2", count=count, path=SIMULATED_GPUS)


def sshd_pam(family: OsFamily) -> str:
    """/etc/pam.d/sshd of a worker that lets in who has a job there."""
    return render(f"slurm/sshd.pam.{family}.j2")


def access_conf(cluster: Cluster, options: SlurmOptions) -> str:
    """/etc/security/access-slurm.conf: who may always log in."""
    users = ("root", cluster.ssh.user, DRIFT_USER)
    return render("slurm/access.conf.j2", users=dict.fromkeys(users), groups=options.pam_admin_groups)


def script_runner(cluster: Cluster, options: SlurmOptions, stage: str) -> str:
    """/etc/slurm/prolog.sh and its like, which run what lies in prolog.d and so on."""
    name = "run-task-scripts.sh" if stage == "task_prolog" else "run-scripts.sh"
    return _render(name, cluster, options, stage=stage)


def shared_files(
    cluster: Cluster, options: SlurmOptions, pods: PodPlaces | None = None
) -> dict[str, str | None]:
    """Files of /etc/slurm that are the same on every node; None for one that must not exist."""
    return {
        "/etc/slurm/slurm-restart.conf": slurm_restart_conf(cluster, options, pods),
        "/etc/slurm/topology.conf": topology_conf(cluster, options),
        "/etc/slurm/gres.conf": gres_conf(cluster, options),
        "/etc/slurm/cgroup.conf": cgroup_conf(cluster, options, pods=pods is not None),
        "/etc/slurm/job_container.conf": job_container_conf(cluster, options),
        "/etc/slurm/mpi.conf": mpi_conf(cluster, options),
        "/etc/slurm/plugstack.conf": plugstack_conf(cluster, options),
        "/etc/slurm/slurm.conf": slurm_conf(cluster, options, pods),
    }


def _render(name: str, cluster: Cluster, options: SlurmOptions, **variables: Any) -> str:  # noqa: ANN401
    text = render(
        f"slurm/{name}.j2",
        cluster=cluster,
        options=options,
        confined=placement.confined(cluster),
        **variables,
    )
    return with_extra(text, getattr(options.extra, re.sub("[.-]", "_", name), ()))


def _tracked(options: SlurmOptions, *, gpus: bool) -> tuple[str, ...]:
    licenses = (f"license/{name}" for name in options.licenses)
    return tuple(dict.fromkeys((*(("gres/gpu",) if gpus else ()), *options.accounting.tres, *licenses)))


def _preempt_mode(mode: str) -> str:
    return "SUSPEND,GANG" if mode == "SUSPEND" else mode  # Slurm resumes suspended jobs by gang scheduling


def partition_line(cluster: Cluster, options: SlurmOptions, name: str, partition: Partition) -> str:
    """The line of a partition, which begins with `PartitionName=NAME Nodes=NODES`."""
    share = layout.shares(cluster, options, partition)
    pairs: list[tuple[str, object]] = [
        ("Nodes", fold(node.name for node in layout.partition_nodes(cluster, partition))),
        ("Default", "YES" if partition.default else "NO"),
        ("State", partition.state),
        ("MaxTime", partition.max_time),
        ("DefaultTime", partition.default_time),
        ("MinNodes", partition.min_nodes),
        ("MaxNodes", partition.max_nodes),
        ("PriorityTier", partition.priority_tier),
        ("PriorityJobFactor", partition.priority_job_factor),
        ("PreemptMode", partition.preempt_mode),
        ("GraceTime", partition.grace_seconds or None),
        ("OverSubscribe", partition.oversubscribe),
        ("DefMemPerCPU", share.mem_per_cpu),
        ("DefMemPerGPU", share.mem_per_gpu),
        ("DefCpuPerGPU", share.cpu_per_gpu),
        ("MaxMemPerCPU", partition.max_mem_per_cpu_mib),
        ("MaxCPUsPerNode", partition.max_cpus_per_node),
        ("QOS", partition.qos),
        ("AllowQos", ",".join(partition.allow_qos) or None),
        ("AllowAccounts", _allowed_accounts(partition)),
        ("DenyAccounts", ",".join(partition.deny_accounts) or None),
        ("AllowGroups", ",".join(partition.allow_groups) or None),
        ("Hidden", "YES" if partition.hidden else None),
        ("RootOnly", "YES" if partition.root_only else None),
        ("TRESBillingWeights", _weights(scheduling.billing_weights(cluster, options, partition))),
    ]
    return f"PartitionName={name} " + " ".join(f"{key}={value}" for key, value in pairs if value is not None)


def _allowed_accounts(partition: Partition) -> str | None:
    accounts = partition.allow_accounts
    return ",".join(dict.fromkeys((*accounts, ACCOUNT))) if accounts else None


def _weights(weights: dict[str, float]) -> str | None:
    # Memory is counted in MiB unless its weight has a unit.
    words = [f"{key}={value}{'G' if key == 'Mem' else ''}" for key, value in weights.items()]
    return f'"{",".join(words)}"' if words else None
