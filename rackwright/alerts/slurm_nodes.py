"""Nodes as the workload manager sees them."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.promql import NODE_DOWN, placed
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold
from rackwright.model.types import WorkloadManager

_BOTH = frozenset({"node", "slurm"})
_OUT = "down|drained|draining|fail"
UNAVAILABLE = "SlurmNodesUnavailable"
"""A run that takes many nodes down silences it."""
MANAGER = WorkloadManager.SLURM
"""Whose nodes it counts."""

_DOWN = Alert(
    name="SlurmNodeDown",
    expr=placed(f'max by (node) (slurm_node_state{{state=~"down|fail"}}) == 1 unless on (node) {NODE_DOWN}'),
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }} is DOWN in Slurm although it answers",
    description=prose("""
        Slurm has set {{ $labels.node }} DOWN, and its jobs are lost, while the node itself answers. scontrol show node
        {{ $labels.node }} has the reason; slurmd, munge or the node's configuration is at fault.
    """),
    means="slurmd did not answer in time, or the node came back with fewer CPUs, GPUs or less memory than slurm.conf declares.",
    steps=listed(f"""
        - `scontrol show node NODE | grep -e State -e Reason`.
        - `Not responding`: see SlurmdDown, MungeDown, ClockDiffersFromHead; can the node reach the head's port 6817?
        - `Node unexpectedly rebooted`: see NodeRebooted. Healthy: resume it.
        - `Low RealMemory`, `gres/gpu count reported lower`: hardware is missing. See MemoryBelowDeclaration, GpuCountLow.
        - {steps.WHY}
        - {steps.RESUME}
    """),
    jobs=_BOTH,
)

_SILENT = Alert(
    name="SlurmNodeNotResponding",
    expr=placed(
        f'max by (node) (slurm_node_state{{state="not_responding"}}) == 1 unless on (node) {NODE_DOWN}'
    ),
    hold_seconds=120,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: slurmd does not answer slurmctld",
    description=prose("""
        slurmctld has had no answer from slurmd on {{ $labels.node }} for 2 minutes, while the node itself answers. After
        SlurmdTimeout it is set DOWN and its jobs are lost. Look at slurmd there now.
    """),
    means="There are a few minutes to act before jobs are lost.",
    steps=listed(f"""
        - {steps.journal("slurmd")}
        - `munge -n | ssh NODE unmunge` from the head: `STATUS: Success`? If not: MungeDown or ClockDiffersFromHead.
        - slurmd waits for a filesystem: see MountStale, ProcessesBlocked.
        - {steps.restart("slurmd")} Jobs that run survive it.
    """),
    jobs=_BOTH,
    source=f"SlurmdTimeout, 300 s by default: {sources.SLURM_CONF}",
)

_LONG = Alert(
    name="SlurmNodeDrainedLong",
    expr=placed("max by (node) (time() - slurm_node_drain_since_timestamp_seconds) > <seconds>"),
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }} has been drained for {{ $value | humanizeDuration }}",
    description=prose("""
        {{ $labels.node }} has been drained for {{ $value | humanizeDuration }}, and has not been repaired or resumed. Look up the reason, then
        repair, replace or resume it: rackwright why FILE {{ $labels.node }}.
    """),
    means="Capacity that was paid for does nothing. Drained nodes are easily forgotten.",
    steps=listed(f"""
        - {steps.WHY}
        - A ticket is open with the vendor: put its number into the reason, and silence this alert until its date.
        - `rackwright-health:` in the reason: the node resumes by itself once its checks pass. They still fail.
        - An operator's reason, and the work is done: {steps.then(steps.RESUME)}
    """),
    jobs=_BOTH,
    thresholds={
        "seconds": Threshold(
            259200,
            "seconds",
            "Time since the node was drained.",
            "rackwright: three days, a weekend (2026-11-27)",
        )
    },
)

_MANY = Alert(
    name=UNAVAILABLE,
    expr=f"""
count(max by (node) (slurm_node_state{{state=~"{_OUT}"}}) == 1) / count(count by (node) (slurm_node_cpus)) * 100 > <percent>
""",
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary='{{ $value | printf "%.0f" }} % of the nodes are drained or down in Slurm',
    description=prose("""
        {{ $value | printf "%.0f" }} % of Slurm's nodes are drained, draining or down. That many do not break by themselves: look for what
        they have in common, such as a check that is wrong, a leaf, a file server. sinfo -R lists the reasons.
    """),
    means="Either something shared has failed, or a health check or a rollout takes healthy nodes out.",
    steps=listed("""
        - `sinfo -R -o '%60E %9u %19H %N'`: one reason for all? Since when?
        - `rackwright-health:`: which check? `rackwright health FILE --limit NODE` on one of them. A check that is wrong: put a
          file of its name into /etc/rackwright/health/disabled.d/ (its text is the reason), then resume the nodes.
        - `rackwright runs FILE`: is an apply or a reboot under way or interrupted? `rackwright resume ID` finishes it.
        - LeafDown, RackDown, MountStale: repair that first.
        - Resume those that are healthy: `rackwright verify FILE --limit NODESET`, then
          `scontrol update NodeName=NODESET State=RESUME`.
    """),
    jobs=frozenset({"slurm"}),
    thresholds={
        "percent": Threshold(
            15,
            "percent",
            "Nodes that are drained, draining or down.",
            "rackwright: the health check stops at 10 (2026-11-27)",
        )
    },
)

_GPUS = Alert(
    name="SlurmGpusBelowDeclaration",
    expr=placed(
        "max by (node) (slurm_node_gpus) < on (node) group_left () max by (node) (rackwright_declared_gpus)"
    ),
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }} has {{ $value }} GPUs in Slurm, fewer than declared",
    description=prose("""
        Slurm knows {{ $value }} GPUs of {{ $labels.node }}, fewer than its SKU declares. The others are never used. Compare gres.conf
        with nvidia-smi -L there.
    """),
    means="gres.conf or slurm.conf does not match the hardware, or slurmd found fewer GPUs when it started.",
    steps=listed("""
        - `scontrol show node NODE | grep Gres`, `slurmd -G` and `nvidia-smi -L` on the node: where do they differ?
        - nvidia-smi shows fewer: see GpuCountLow.
        - All are there: `rackwright plan FILE --limit NODE --role slurm`, then apply; slurmd counts again when it starts.
        - MIG: Slurm counts instances. Declare them (`mig`), and this compares GPUs no more.
    """),
    jobs=_BOTH,
)

GROUP = RuleGroup("slurm_nodes", (_DOWN, _SILENT, _LONG, _MANY, _GPUS))
