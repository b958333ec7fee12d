"""What the slurm role claims of the cluster as a whole, asked on the primary head."""

from __future__ import annotations

import re

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, Warned, fail
from rackwright.model.cluster import Node
from rackwright.model.interfaces import ProvidesCollectives
from rackwright.model.ranges import fold
from rackwright.roles.slurm import layout, placement, reading
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.records import declared_records
from rackwright.roles.slurm.topology import differences, groups, topology_kind
from rackwright.workload.slurm.accounting import sacctmgr_commands, undeclared
from rackwright.workload.slurm.gres import gres
from rackwright.workload.slurm.output import NodeReport, parse_fields, parse_hostlist
from rackwright.workload.slurm.records import Records, normal, parse, read_command

# A busy node is healthy.
_READY = frozenset(
    {"IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED", "RESERVED", "MAINT", "CLOUD", "BLOCKED"}
)

_POWERED = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"})
"""Where idle nodes are powered off, as declared."""

# The smallest footprint, so that it fits beside other jobs; and bounded: no check waits for a busy cluster.
_SRUN = "srun -Q -A burnin --immediate={wait} -t {time} -J rackwright-verify --mem={mib} --ntasks-per-node=1"
_SHELL_MIB = 64
"""Where cgroups hold jobs, slurmstepd needs some of it too (cgroup.conf(5) of 24.11, MinRAMSpace; read 2026-11-23)."""
_MPI_MIB = 1024
"""Most for a rank: Python, MPI and what it shares or pins; on a small node a third of its memory."""
_WAIT_SECONDS = 30
_FIRST_QUESTION = "timeout 20 sacctmgr -nP show cluster format=cluster"
_NO_ANSWER = ("Requested nodes are busy", "Unable to contact slurm controller", "Connection refused")
_ROW = """\
for try in $(seq 20); do
  row=$(timeout 10 sacct -X -P -n -S now-1hour -j "$1" --format=JobID,State,ExitCode,NodeList)
  case $row in *COMPLETED*|*FAILED*) break ;; esac
  sleep 1
done
printf '%s\\n' "$row"
"""
_GIVEN = "sh -c 'echo rackwright-gpu $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'"


def _first(sentences: list[str]) -> str:
    more = f" (and {len(sentences) - 5} more)" if len(sentences) > 5 else ""
    return "; ".join(sentences[:5]) + more


def _slurmctld_answers(context: CheckContext[SlurmOptions]) -> str:
    result = context.host.run("timeout 20 scontrol ping")
    up = [line for line in result.stdout.splitlines() if line.endswith(" is UP")]
    down = [line for line in result.stdout.splitlines() if line.endswith(" is DOWN")]
    if not up and not down:
        raise Undetermined(
            f"`scontrol ping` printed: {(result.stderr or result.stdout).strip() or 'nothing'}"
        )
    if down:
        fail("; ".join(down))
    return "; ".join(up)


def _nodes_ready(context: CheckContext[SlurmOptions]) -> str:
    found = reading.parse_nodes(context.output("timeout 30 scontrol show node -o"))
    wrong, at_work = [], 0
    for node in placement.workers(context.cluster):
        report = found.get(node.name)
        if report is None:
            wrong.append(f"{node.name} is unknown to slurmctld")
            continue
        wrong += _node_mistakes(node, report, context.options)
        at_work += "IDLE" not in report.state.words
    strangers = sorted(set(found) - {node.name for node in placement.workers(context.cluster)})
    wrong += [f"{name} is not declared" for name in strangers]
    if wrong:
        fail(_first(wrong))
    return f"{len(found)} nodes ready with their declared CPUs, memory and Gres, {at_work} of them busy"


def _node_mistakes(node: Node, report: NodeReport, options: SlurmOptions) -> list[str]:
    bad = sorted(report.state.words - _READY - (_POWERED if options.power_saving.active else frozenset()))
    if bad:
        because = f" ({report.state.reason})" if report.state.reason else ""
        return [f"{node.name} is {'+'.join(bad)}{because}"]
    declared = (layout.hardware(node).cpus, layout.real_memory(node, options), gres(node) or "")
    found = (report.cpus, report.memory_mib, re.sub(r"\([^)]*\)", "", report.gres))  # (S:0-1): where they sit
    words = ("CPUs", "MiB", "Gres")
    return [
        f"{node.name} has {word} {there or 'none'}, not {want or 'none'}"
        for word, want, there in zip(words, declared, found, strict=True)
        if want != there
    ]


def _partitions(context: CheckContext[SlurmOptions]) -> str:
    rows = parse_fields(context.output("timeout 30 scontrol show partition -o"))
    found = {row["PartitionName"]: row for row in rows if "PartitionName" in row}
    options, wrong = context.options, []
    for name, partition in options.partitions.items():
        row = found.get(name)
        if row is None:
            wrong.append(f"partition {name} is missing")
            continue
        declared = {
            "Default": "YES" if partition.default else "NO",
            "State": partition.state,
            "PriorityTier": str(partition.priority_tier),
            "QoS": partition.qos or "N/A",
            "TotalNodes": str(len(layout.partition_nodes(context.cluster, partition))),
        }
        if normal("maxwall", row.get("MaxTime", "0")) != normal("maxwall", partition.max_time):
            wrong.append(f"MaxTime of partition {name} is {row.get('MaxTime')}, not {partition.max_time}")
        wrong += [
            f"{key} of partition {name} is {row.get(key)}, not {value}"
            for key, value in declared.items()
            if row.get(key) != value
        ]
    wrong += [f"partition {name} is not declared" for name in sorted(set(found) - set(options.partitions))]
    if wrong:
        fail(_first(wrong))
    return f"{', '.join(sorted(found))} as declared"


def _topology(context: CheckContext[SlurmOptions]) -> str:
    kind = topology_kind(context.cluster, context.options)
    if kind == "flat":
        return "flat: all nodes are equally close"
    rows = parse_fields(context.output("timeout 30 scontrol show topology"))
    key = "BlockName" if kind == "block" else "SwitchName"
    found = {row[key]: row.get("Nodes", "") for row in rows if key in row}
    if wrong := differences(context.cluster, kind, found):
        fail(_first(wrong))
    return f"{kind} of {len(groups(context.cluster, kind))}, as declared"


def _records(context: CheckContext[SlurmOptions]) -> str:
    local = placement.runs_slurmdbd(context.node, context.options)
    asked = read_command(context.cluster.name, local=local)
    there = parse(context.output("sh -c %s", asked).splitlines())
    if there is None:
        context.output(_FIRST_QUESTION)  # its error explains the missing answer
        raise Undetermined("slurmdbd did not answer every query of sacctmgr")
    wanted = declared_records(context.cluster, context.options)
    to_do = sacctmgr_commands(context.cluster.name, there, wanted, prune=context.options.prune)
    if to_do:
        fail(
            _first([f"{one.target}: {one.before or 'missing'}, not {one.after or 'there'}" for one in to_do])
        )
    if left := undeclared(context.cluster.name, there, wanted):
        raise Warned(f"not declared, and kept without `prune`: {_first(left)}; the others are as declared")
    return _counted(there)


def _counted(there: Records) -> str:
    return f"{len(there.accounts)} accounts, {len(there.users)} users, {len(there.qos)} QOS as declared"


def _by_partition(context: CheckContext[SlurmOptions]) -> dict[str, tuple[Node, ...]]:
    """Every worker once, under a partition that takes jobs for it."""
    found: dict[str, tuple[Node, ...]] = {}
    for node in placement.workers(context.cluster):
        name = layout.partition_of(context.cluster, context.options, node)
        if name is None:
            fail(f"{node.name} is in no partition that is UP, so it gets no jobs")
        found[name] = (*found.get(name, ()), node)
    return found


def _submit(
    context: CheckContext[SlurmOptions],
    partition: str,
    nodes: tuple[Node, ...],
    more: str,
    *args: str,
    mib: int = _SHELL_MIB,
) -> str:
    """Output of a task on each node. Undetermined where the cluster has no room just now."""
    allowed = context.options.partitions[partition].allow_qos
    qos = f" -q {allowed[0]}" if allowed and "normal" not in allowed else ""
    wait = _WAIT_SECONDS * (factor := context.cluster.ssh.time_factor)
    command = f"{_SRUN.format(wait=wait, time=2 * factor, mib=mib)}{qos} -p %s -N %s -w %s {more}"
    result = context.host.run(
        f"timeout {100 * factor} {command}", partition, str(len(nodes)), fold(n.name for n in nodes), *args
    )
    if result.rc == 0:
        return str(result.stdout)
    error = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[-1]
    if result.rc in (124, 126, 127) or any(word in result.stderr for word in _NO_ANSWER):
        raise Undetermined(f"the job did not start within {wait} s in {partition}: {error}")
    return fail(f"srun in {partition} exited {result.rc}: {error}")


def _job_everywhere(context: CheckContext[SlurmOptions]) -> str:
    evidence = []
    for partition, nodes in _by_partition(context).items():
        printed = _submit(
            context, partition, nodes, "sh -c 'echo rackwright-job $SLURM_JOB_ID $SLURMD_NODENAME'"
        )
        jobs = reading.parse_greetings(printed)
        silent = [node.name for node in nodes if node.name not in jobs]
        if silent:
            fail(f"the job in {partition} did not run on {fold(silent)}")
        evidence.append(_accounted(context, next(iter(jobs.values())), nodes))
    return "; ".join(evidence)


def _accounted(context: CheckContext[SlurmOptions], job: str, nodes: tuple[Node, ...]) -> str:
    row = reading.parse_jobs(context.output("sh -c %s row %s", _ROW, job)).get(job)
    if row is None:
        fail(f"job {job} ran, but sacct has no record of it")
    if row.state != "COMPLETED" or row.exit_code != "0:0":
        fail(f"job {job} ran, but sacct has it as {row.state}, exit code {row.exit_code}")
    if set(parse_hostlist(row.nodes)) != {node.name for node in nodes}:
        fail(f"job {job} ran on {fold(n.name for n in nodes)}, but sacct reports {row.nodes}")
    return f"job {job} ran on {row.nodes} and is accounted for"


def _gpus_given(context: CheckContext[SlurmOptions]) -> str:
    evidence = []
    for partition, nodes in _by_partition(context).items():
        there = tuple(node for node in nodes if gres(node))
        if there:
            given = reading.parse_given(_submit(context, partition, there, f"--gres=gpu:1 {_GIVEN}"))
            without = [node.name for node in there if not given.get(node.name)]
            if without:
                fail(f"a job that requests a GPU sees none on {fold(without)}")
            simulated = ", simulated" if any(node.simulates_gpus for node in there) else ""
            evidence.append(f"one GPU each for a job on {fold(given)}{simulated}")
    if not evidence:
        raise NotInScope("no worker has declared GPUs")
    return "; ".join(evidence)


def _mpi(context: CheckContext[SlurmOptions]) -> str:
    evidence = []
    for partition, nodes in _by_partition(context).items():
        able: dict[tuple[str, ...], tuple[Node, ...]] = {}
        for node in nodes:
            if (offer := node.offers(ProvidesCollectives)) is not None:
                command = offer.mpi_command(node)
                able[command] = (*able.get(command, ()), node)
        evidence += [_all_reduce(context, partition, alike, command) for command, alike in able.items()]
    if not evidence:
        raise NotInScope("no role installs MPI on a worker (hpc_stack)")
    return "; ".join(evidence)


def _all_reduce(
    context: CheckContext[SlurmOptions], partition: str, nodes: tuple[Node, ...], command: tuple[str, ...]
) -> str:
    placeholders = " ".join(["%s"] * len(command))
    mib = min(_MPI_MIB, *(layout.usable(node, context.options) // 3 for node in nodes))
    printed = _submit(context, partition, nodes, f"--mpi=pmix {placeholders}", *command, mib=mib)
    ranks = reading.parse_ranks(printed)
    count = len(nodes)
    if [rank.rank for rank in ranks] != list(range(count)) or {rank.size for rank in ranks} != {count}:
        fail(f"{len(ranks)} ranks of {count} answered, in worlds of {sorted({rank.size for rank in ranks})}")
    if {rank.total for rank in ranks} != {count * (count + 1) // 2}:
        fail(f"the all-reduce over {count} ranks gave {sorted({rank.total for rank in ranks})}")
    return f"all-reduce over {count} ranks on {fold(node.name for node in nodes)} through PMIx"


CHECKS = (
    Check("slurmctld answers", _slurmctld_answers, scope="cluster", settle_seconds=20),
    Check(
        "every declared node is ready with its declared hardware",
        _nodes_ready,
        scope="cluster",
        settle_seconds=60,
    ),
    Check("partitions are as declared", _partitions, scope="cluster", settle_seconds=10),
    Check("the topology is as declared", _topology, scope="cluster", settle_seconds=10),
    Check("accounts, users and QOS are as declared", _records, scope="cluster", timeout_seconds=120),
    Check(
        "a job runs on every node and is accounted for",
        _job_everywhere,
        scope="cluster",
        settle_seconds=60,
        timeout_seconds=240,
    ),
    Check(
        "a job that requests a GPU gets one",
        _gpus_given,
        scope="cluster",
        settle_seconds=60,
        timeout_seconds=240,
    ),
    Check("an MPI job spans the workers", _mpi, scope="cluster", settle_seconds=60, timeout_seconds=240),
)
