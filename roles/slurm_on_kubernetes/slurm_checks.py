"""What the role claims of Slurm itself, asked in its pods."""

from __future__ import annotations

import re

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.model.ranges import fold
from rackwright.roles.slurm_on_kubernetes import reading
from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions
from rackwright.roles.slurm_on_kubernetes.places import (
    ACCOUNTING,
    CONTROLLER,
    LOGIN,
    inside,
    places,
    slurm_of,
)
from rackwright.workload.slurm.accounting import sacctmgr_commands
from rackwright.workload.slurm.output import NodeReport, parse_hostlist, parse_nodes
from rackwright.workload.slurm.pods import PodNode
from rackwright.workload.slurm.records import parse, read_command
from rackwright.workload.states import NoAnswer

Context = CheckContext[SlurmOnKubernetesOptions]
_BUSY = frozenset(
    {"IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED", "RESERVED", "MAINT", "CLOUD", "BLOCKED"}
)
_WAIT_SECONDS = 30
_GREETING = "echo rackwright-job $SLURM_JOB_ID $SLURMD_NODENAME"
_ROW = """\
for try in $(seq 20); do
  row=$(timeout 10 sacct -X -P -n -S now-1hour -j "$1" --format=JobID,State,ExitCode,NodeList)
  case $row in *COMPLETED*|*FAILED*) break ;; esac
  sleep 1
done
printf '%s\\n' "$row"
"""
_NO_ANSWER = (
    *("Requested nodes are busy", "Unable to contact slurm controller", "Connection refused"),
    *("connection to the server", "unable to upgrade connection", "not found"),
)
"""Of srun where the cluster has no room, and of kubectl where it reaches no pod."""


def first(sentences: list[str]) -> str:
    """At most five, and how many more."""
    more = f" (and {len(sentences) - 5} more)" if len(sentences) > 5 else ""
    return "; ".join(sentences[:5]) + more


def _client(context: Context) -> str:
    """Where users' commands run: the login pod, or slurmctld's without one."""
    if not context.options.login.enabled:
        return inside(context.options, f"{CONTROLLER}-0", CONTROLLER)
    return inside(context.options, f"deployment/{LOGIN}", LOGIN)


def answers(context: Context) -> str:
    """slurmctld, as users reach it."""
    result = context.host.run(f"timeout 30 {_client(context)} scontrol ping")
    lines = [line.strip() for line in result.stdout.splitlines() if "slurmctld" in line.lower()]
    up = [line for line in lines if line.endswith(" is UP")]
    down = [line for line in lines if line.endswith(" is DOWN")]
    if not up and not down:
        raise Undetermined(
            f"`scontrol ping` printed: {(result.stderr or result.stdout).strip()[:160] or 'nothing'}"
        )
    if down:
        fail("; ".join(down))
    return "; ".join(up)


def nodes(context: Context) -> str:
    """Every node is there, takes jobs and has its declared hardware."""
    output = context.output(f"timeout 30 {_client(context)} scontrol show node -o")
    try:
        found = parse_nodes(output)
    except NoAnswer as error:
        raise Undetermined(str(error)) from None
    if not found:
        raise Undetermined("`scontrol show node` prints no node")
    wanted = slurm_of(context.cluster).pod_nodes(context.cluster, places(context.options, context.cluster))
    wrong = [f"{name} is unknown to slurmctld" for name in wanted if name not in found]
    wrong += [f"{name} is not declared" for name in sorted(set(found) - set(wanted))]
    for name, node in wanted.items():
        if name in found:
            wrong += _mistakes(name, node, found[name])
    if wrong:
        fail(first(wrong))
    return f"{len(found)} nodes ready with their declared CPUs, memory and Gres"


def _mistakes(name: str, node: PodNode, report: NodeReport) -> list[str]:
    if bad := sorted(report.state.words - _BUSY):
        return [f"{name} is {'+'.join(bad)}{f' ({report.state.reason})' if report.state.reason else ''}"]
    found = (report.cpus, report.memory_mib, re.sub(r"\([^)]*\)", "", report.gres))
    wanted = (node.cpus, node.memory_mib, node.gres)
    return [
        f"{name} has {word} {there or 'none'}, not {want or 'none'}"
        for word, want, there in zip(("CPUs", "MiB", "Gres"), wanted, found, strict=True)
        if want != there
    ]


def records(context: Context) -> str:
    """sacctmgr has nothing to do."""
    words = inside(context.options, f"{ACCOUNTING}-0", ACCOUNTING)
    printed = context.output(f"{words} sh -c %s", read_command(context.cluster.name, local=False))
    there = parse(printed.splitlines())
    if there is None:
        raise Undetermined("slurmdbd did not answer every query of sacctmgr")
    slurm = slurm_of(context.cluster)
    wanted = slurm.pod_records(context.cluster, places(context.options, context.cluster))
    to_do = sacctmgr_commands(context.cluster.name, there, wanted, prune=slurm.prune)
    if to_do:
        fail(first([f"{one.target}: {one.before or 'missing'}, not {one.after or 'there'}" for one in to_do]))
    return f"{len(there.accounts)} accounts, {len(there.users)} users, {len(there.qos)} QOS as declared"


def job(context: Context) -> str:
    """A task on each node of a partition, from the login pod, and its record."""
    wanted = slurm_of(context.cluster).pod_nodes(context.cluster, places(context.options, context.cluster))
    parts: dict[str, list[str]] = {}
    for name, node in wanted.items():
        if node.partition is None:
            fail(f"{name} is in no partition that is UP, so it gets no jobs")
        parts.setdefault(node.partition, []).append(name)
    evidence = []
    for partition, names in parts.items():
        jobs = reading.greetings(_srun(context, partition, names))
        if silent := [name for name in names if name not in jobs]:
            fail(f"the job in {partition} did not run on {fold(silent)}")
        evidence.append(_accounted(context, next(iter(jobs.values())), names))
    return "; ".join(evidence)


def _srun(context: Context, partition: str, names: list[str]) -> str:
    factor = context.cluster.ssh.time_factor
    wait = _WAIT_SECONDS * factor
    command = (
        f"timeout {100 * factor} {_client(context)} srun -Q -A burnin --immediate={wait} -t {2 * factor} "
        "-J rackwright-verify --mem=64 --ntasks-per-node=1 -p %s -N %s -w %s sh -c %s"
    )
    result = context.host.run(command, partition, str(len(names)), fold(names), _GREETING)
    if result.rc == 0:
        return str(result.stdout)
    error = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[-1]
    if result.rc in (124, 126, 127) or any(word in result.stderr for word in _NO_ANSWER):
        raise Undetermined(f"the job did not start within {wait} s in {partition}: {error}")
    return fail(f"srun in {partition} exited {result.rc}: {error}")


def _accounted(context: Context, job: str, names: list[str]) -> str:
    row = reading.accounted(context.output(f"{_client(context)} sh -c %s row %s", _ROW, job)).get(job)
    if row is None:
        fail(f"job {job} ran, but sacct has no record of it")
    state, code, nodes = row
    if state != "COMPLETED" or code != "0:0":
        fail(f"job {job} ran, but sacct has it as {state}, exit code {code}")
    if set(parse_hostlist(nodes)) != set(names):
        fail(f"job {job} ran on {fold(names)}, but sacct reports {nodes}")
    return f"job {job} ran on {nodes} and is accounted for"
