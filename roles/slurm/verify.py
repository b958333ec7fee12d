"""What the slurm role claims: of each node here; cluster_checks has the claims of the whole cluster."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from rackwright.claims.accounts import has_ids
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access
from rackwright.claims.units import runs, software_runs
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.slurm import cluster_checks, layout, placement, service_checks, texts
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.workload.slurm.output import parse_config

_CONTAINED = frozenset({Capability.CGROUP_V2})
_TMP = "stat -c '%d:%i' /tmp"  # without arguments testinfra leaves percent signs alone
_JOB_TMP = "srun -Q -A burnin --immediate=%s -t %s -n 1 --mem=64 -p %s -w %s stat -c '%%d:%%i' /tmp"


def parse_mpi_plugins(output: str) -> frozenset[str]:
    """Plugin names of `srun --mpi=list`, whichever of its versions it comes from."""
    return frozenset(re.findall(r"\b(none|pmix(?:_v\d+)?|pmi2|cray_shasta)\b", output))


def _files(context: CheckContext[SlurmOptions]) -> str:
    files = texts.shared_files(context.cluster, context.options)
    as_rendered(context, files)
    there = sum(text is not None for text in files.values())
    return f"{there} files in /etc/slurm are as declared"


def _ids(context: CheckContext[SlurmOptions]) -> str:
    return has_ids(context, "slurm", context.options.uid, context.options.gid)


def _release(context: CheckContext[SlurmOptions]) -> str:
    """Which settings exist depends on the release."""
    found = re.search(r"(\d+)\.(\d+)(\.\d+)?", context.output("sinfo --version"))
    if found is None:
        raise Undetermined("`sinfo --version` names no version")
    wanted = placement.release_on(context.node, context.options)
    if (int(found[1]), int(found[2])) != wanted:
        fail(f"Slurm is {found[0]}, but {wanted[0]}.{wanted[1]:02} is declared")
    return f"Slurm {found[0]}"


def _pmix(context: CheckContext[SlurmOptions]) -> str:
    result = context.host.run("srun --mpi=list")  # 24.11 prints on stdout, older ones on stderr
    plugins = parse_mpi_plugins(f"{result.stdout}\n{result.stderr}")
    if result.rc != 0 or not plugins:
        raise Undetermined(f"`srun --mpi=list` exited {result.rc} and lists nothing")
    if "pmix" not in plugins:
        fail(f"Slurm has no PMIx plugin, only {', '.join(sorted(plugins))}")
    return ", ".join(sorted(name for name in plugins if name.startswith("pmix")))


def _state_folder(context: CheckContext[SlurmOptions]) -> str:
    path = context.options.state_dir
    result = context.host.run("runuser -u slurm -- test -d %s -a -w %s", path, path)
    if result.rc not in (0, 1):
        raise Undetermined(f"cannot run a command as user slurm: {result.stderr.strip()}")
    if result.rc == 1:
        fail(f"user slurm cannot write {path}")
    return f"user slurm can write {path}"


def _power_programs(context: CheckContext[SlurmOptions]) -> str:
    saving = context.options.power_saving
    paths = [path for path in (saving.suspend_program, saving.resume_program) if path is not None]
    for path in paths:
        result = context.host.run("runuser -u slurm -- test -f %s -a -x %s", path, path)
        if result.rc not in (0, 1):
            raise Undetermined(f"cannot run a command as user slurm: {result.stderr.strip()}")
        if result.rc == 1:
            fail(f"user slurm cannot run {path}: nodes are powered off but not on again, or neither")
    return f"user slurm can run {' and '.join(paths)}"


def _private_data(context: CheckContext[SlurmOptions]) -> str:
    config = parse_config(context.output("scontrol show config"))
    if "PrivateData" not in config:
        raise Undetermined("`scontrol show config` does not mention PrivateData")
    found = set(config["PrivateData"].split(",")) - {"none", "(null)"}
    declared = set(context.options.private_data)
    if missing := sorted(declared - found):
        fail(f"users see {', '.join(missing)} of other users")
    if more := sorted(found - declared):
        fail(f"users cannot see {', '.join(more)} of other users, which is not declared")
    return f"private: {', '.join(sorted(found)) or 'nothing'}"


def _password_file(context: CheckContext[SlurmOptions]) -> str:
    return has_access(context, "/etc/slurm/slurmdbd.conf", "600", "slurm", "slurm")


def _logs_rotated(context: CheckContext[SlurmOptions]) -> str:
    daemons = placement.daemons(context.cluster, context.node, context.options)
    paths = tuple(f"/etc/logrotate.d/{daemon}" for daemon in daemons)
    result = context.host.run("logrotate --debug " + " ".join(["%s"] * len(paths)), *paths)
    if result.rc in (126, 127):
        raise Undetermined(f"cannot run `logrotate`: {result.stderr.strip()}")
    missing = [path for path in paths if f"reading config file {path}" not in result.stderr + result.stdout]
    if result.rc != 0 or missing:
        fail(f"logrotate ignores {', '.join(missing or paths)}")
    software_runs(context, "logrotate")
    return f"logrotate rotates the logs of {', '.join(daemons)}"


def _contained(context: CheckContext[SlurmOptions]) -> str:
    config = parse_config(context.output("scontrol show config"))
    if "ProctrackType" not in config:
        raise Undetermined("`scontrol show config` does not mention ProctrackType")
    wanted = {"ProctrackType": "proctrack/cgroup", "JobAcctGatherType": "jobacct_gather/cgroup"}
    wrong = [f"{key} is {config.get(key)}" for key, value in wanted.items() if config.get(key) != value]
    if "Contain" not in config.get("PrologFlags", ""):
        wrong.append(f"PrologFlags is {config.get('PrologFlags')}")
    if wrong:
        fail("; ".join(wrong))
    return "a job's cgroup confines its processes, memory and devices"


def _job_tmp(context: CheckContext[SlurmOptions]) -> str:
    partition = layout.partition_of(context.cluster, context.options, context.node)
    if partition is None:
        raise Undetermined(f"{context.node.name} is in no partition, so it gets no jobs")
    here = context.output(_TMP).strip()
    factor = context.cluster.ssh.time_factor
    inside = context.output(_JOB_TMP, str(20 * factor), str(factor), partition, context.node.name).strip()
    if not inside:
        raise Undetermined("the job did not print its /tmp")
    if inside == here:
        fail("a job sees the node's /tmp")
    return "a job has a private /tmp"


def _adopts(context: CheckContext[SlurmOptions]) -> str:
    wanted = {
        "/etc/pam.d/sshd": texts.sshd_pam(context.node.family),
        "/etc/security/access-slurm.conf": texts.access_conf(context.cluster, context.options),
    }
    as_rendered(context, wanted)
    modules = context.host.run(
        "sh -c 'ls /lib/*/security/pam_slurm_adopt.so /lib*/security/pam_slurm_adopt.so'"
    )
    if "pam_slurm_adopt.so" not in modules.stdout:
        fail("pam_slurm_adopt.so is not installed, so users with a job are refused too")
    return "sshd uses pam_slurm_adopt for all but the groups that may always log in"


def _saves_power(node: Node, options: SlurmOptions) -> bool:
    return placement.runs_slurmctld(node, options) and options.power_saving.active


def _with_slurmdbd(node: Node, options: SlurmOptions) -> bool:
    return placement.runs_slurmdbd(node, options)


def _on_workers(node: Node, options: SlurmOptions) -> bool:
    return placement.runs_slurmd(node)


def _with_daemons(node: Node, options: SlurmOptions) -> bool:
    return placement.runs_slurmctld(node, options) or placement.runs_slurmd(node)


def _with_private_tmp(node: Node, options: SlurmOptions) -> bool:
    return placement.runs_slurmd(node) and options.private_tmp


def _with_adoption(node: Node, options: SlurmOptions) -> bool:
    return placement.wants_adoption(node, options)


def _where_daemons_run(check: Check) -> Check:
    """With the daemons in pods nothing is claimed of a node here: the role of the pods does."""

    def applies(node: Node, options: SlurmOptions) -> bool:
        return options.manages_nodes and (check.applies is None or check.applies(node, options))

    return replace(check, applies=applies)


_CHECKS = (
    Check("user slurm has its declared ids", _ids),
    Check("Slurm is the declared release", _release),
    Check("Slurm's files are as declared", _files),
    Check(
        "slurmdbd is running",
        partial(runs, unit="slurmdbd.service"),
        settle_seconds=15,
        applies=_with_slurmdbd,
    ),
    Check("only slurm can read slurmdbd.conf", _password_file, applies=_with_slurmdbd),
    Check(
        "slurmctld is running",
        partial(runs, unit="slurmctld.service"),
        settle_seconds=15,
        applies=placement.runs_slurmctld,
    ),
    Check("slurmctld can write its state", _state_folder, applies=placement.runs_slurmctld),
    Check("users see only the declared data of each other", _private_data, applies=placement.runs_slurmctld),
    *service_checks.NODE_CHECKS,
    Check("slurmctld can run the power saving programs", _power_programs, applies=_saves_power),
    Check("slurmd is running", partial(runs, unit="slurmd.service"), settle_seconds=15, applies=_on_workers),
    Check("Slurm's logs are rotated", _logs_rotated, applies=_with_daemons),
    Check("Slurm has a PMIx plugin", _pmix, settle_seconds=15),
    Check("jobs are confined by cgroups", _contained, needs=_CONTAINED, applies=_on_workers),
    Check(
        "each job has a private /tmp",
        _job_tmp,
        needs=_CONTAINED,
        applies=_with_private_tmp,
        in_service=True,
        live=True,
    ),
    Check(
        "ssh to a worker requires a job there", _adopts, needs=_CONTAINED, applies=_with_adoption, live=True
    ),
    *cluster_checks.CHECKS,
    *service_checks.CLUSTER_CHECKS,
)
CHECKS = tuple(map(_where_daemons_run, _CHECKS))
