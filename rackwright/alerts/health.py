"""Verdicts of the health check that each node runs about itself."""

from __future__ import annotations

from rackwright.alerts import steps
from rackwright.alerts.promql import NODE_UP, PLACE
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})
_OUT = "drain|reset-gpu|reboot|rma"

_FAILED = Alert(
    name="HealthCheckFailed",
    expr=f'rackwright_health_failed{{job="node",action=~"{_OUT}"}} == 1',
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: health check {{ $labels.check }} fails and asks for: {{ $labels.action }}",
    description=prose("""
        The health check {{ $labels.check }} fails on {{ $labels.node }}, and the node should take no jobs until it is repaired
        ({{ $labels.action }}). What was seen, and what to do: rackwright why FILE {{ $labels.node }}.
    """),
    means=prose("""
        The node compares itself with its declared SKU every few minutes and before each job. With `health.act` it has already drained
        itself; without it, an operator has to.
    """),
    steps=listed(f"""
        - {steps.WHY}
        - `rackwright health FILE --limit NODE` asks the hardware again, now.
        - docs/health-checks.md has each check's remedy and threshold.
        - Is it drained? `scontrol show node NODE | grep -e State -e Reason`. If not: {steps.then(steps.DRAIN)}
        - Do what `action` asks for: `reset-gpu` and `reboot`: {steps.then(steps.REBOOT)} `rma`: {steps.then(steps.RMA)}
        - It passes three times in a row: the node resumes by itself if its health check drained it. If not: {steps.then(steps.RESUME)}
    """),
    jobs=_NODE,
)

_WARNED = Alert(
    name="HealthCheckWarning",
    expr=f'rackwright_health_failed{{job="node",action!~"{_OUT}"}} == 1',
    hold_seconds=1800,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: health check {{ $labels.check }} fails",
    description=prose("""
        The health check {{ $labels.check }} has failed on {{ $labels.node }} for 30 minutes. Jobs may go on. Repair it in the next
        maintenance: rackwright why FILE {{ $labels.node }} has the remedy.
    """),
    means="Something differs from the declaration but does not endanger jobs today, e.g. a worn drive or different firmware.",
    steps=listed(f"""
        - {steps.WHY}
        - docs/health-checks.md has the check's remedy and threshold.
        - A drive that wears out: order it now, replace it in the next maintenance.
        - It is meant to be so: declare it, or switch the check off with a reason (`health.disabled`).
    """),
    jobs=_NODE,
)

_WOULD = Alert(
    name="HealthWouldDrain",
    expr='rackwright_health_would_drain{job="node"} == 1',
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }} would be drained for {{ $labels.check }}, but only observes",
    description=prose("""
        {{ $labels.node }} would drain itself for {{ $labels.check }} if health.act were true. Jobs still start there. Drain it by
        hand if the check is right, or correct the declaration if it is not.
    """),
    means="The site only observes (`health.act: false`). What this alert shows is what switching it on would do.",
    steps=listed(f"""
        - `rackwright health FILE --would`: since when, how often, which nodes.
        - {steps.WHY}
        - The check is right: {steps.then(steps.DRAIN)}
        - The check is wrong: correct the SKU or the threshold in the cluster file, and apply.
        - A week without wrong ones: set `health.act: true`.
    """),
    jobs=_NODE,
)

_UNKNOWN = Alert(
    name="HealthUnknown",
    expr='rackwright_health_checks{job="node",status="UNKNOWN"} > 0',
    hold_seconds=3600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: health checks are UNKNOWN ({{ $value }})",
    description=prose("""
        Some health checks of {{ $labels.node }} ({{ $value }}) have been UNKNOWN for an hour: a tool is missing,
        hangs, or prints unexpected output. Unknown is not healthy. See which: rackwright health FILE --limit {{ $labels.node }}.
    """),
    means="A check that cannot run may hide a fault.",
    steps=listed("""
        - `rackwright health FILE --limit NODE` prints each UNKNOWN with its reason.
        - A missing tool: `rackwright apply FILE --limit NODE`.
        - A tool that hangs (`nvidia-smi`): usually the driver or a GPU. `dmesg -T | grep NVRM | tail`; reboot the node.
        - Output that cannot be parsed, after an upgrade: report it with `rackwright health FILE --limit NODE --save DIR --redact`.
    """),
    jobs=_NODE,
)

_HUMAN = Alert(
    name="HealthNeedsHuman",
    expr='rackwright_health_alert{job="node"} == 1',
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: the health check may not act and needs an operator",
    description=prose("""
        The health check of {{ $labels.node }} may not act on what it found: too much of the partition is drained already, it has
        rebooted too often, or its state is UNKNOWN. The node still takes jobs. Decide: rackwright why FILE {{ $labels.node }}.
    """),
    means=prose("""
        Limits keep a wrong check from draining the cluster (`drain.percent`) and a broken node from rebooting forever
        (`drain.reboots_a_day`). Past them, the node stays as it is and raises this alert. It also does so when a check has been UNKNOWN for
        several passes (`drain.unknown_passes`), or when Slurm does not answer.
    """),
    steps=listed(f"""
        - {steps.WHY}
        - How many nodes raise this alert? Many with one check: the check is more likely wrong than the nodes. See SlurmNodesUnavailable.
        - One node: {steps.then(steps.DRAIN)}
        - It rebooted too often: do not reboot it again. {steps.DIAGNOSE} {steps.RMA}
        - A check is UNKNOWN: see HealthUnknown.
    """),
    jobs=_NODE,
)

_SILENT = Alert(
    name="HealthCheckNotRunning",
    expr="""
time() - rackwright_health_last_pass_timestamp_seconds{job="node"} > <seconds>
and on (node) node_time_seconds{job="node"} - node_boot_time_seconds{job="node"} > <seconds>
""",
    hold_seconds=60,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: no health check for {{ $value | humanizeDuration }}",
    description=prose("""
        The last health check of {{ $labels.node }} ended {{ $value | humanizeDuration }} ago. Faults go unnoticed there. Slurm starts it:
        see whether slurmd runs, then start it by hand.
    """),
    means="Slurm runs the check every 5 minutes by default (HealthCheckProgram), in any state of the node.",
    steps=listed("""
        - `systemctl is-active slurmd` on the node; slurmctld has to be up too.
        - `scontrol show config | grep HealthCheck` on the head: program and interval.
        - `/usr/libexec/rackwright/health-check show` on the node: does it end, with what?
        - `journalctl -t rackwright-health -n 30`, and `journalctl -u slurmd -g health -n 30`.
        - `rackwright verify FILE --role health --limit NODE`, then apply.
    """),
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            1800,
            "seconds",
            "Time since the last pass ended.",
            "rackwright: six intervals of slurm.health_check, 300 s by default (2026-11-27)",
        )
    },
)

_NO_VERDICT = Alert(
    name="HealthVerdictMissing",
    expr=f"""
(rackwright_declared_health_check unless on (node) rackwright_health_last_pass_timestamp_seconds{{job="node"}})
and on (node) {NODE_UP}
""",
    hold_seconds=1800,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: no verdict of the health check in its metrics",
    description=prose("""
        {{ $labels.node }} runs jobs and is declared to check itself, and its metrics have had no verdict for 30 minutes. The check has never run, or
        its metrics file is gone. No alert about its health can fire. rackwright verify FILE --limit {{ $labels.node }} shows which.
    """),
    means="Unknown is not healthy: a node without verdicts looks like one without faults.",
    steps=listed("""
        - `ls -lL /var/lib/prometheus/node-exporter/rackwright_health.prom` on the node: do the link and its target exist?
        - `/usr/libexec/rackwright/health-check` on the node: one pass recreates the file and the link.
        - `rackwright verify FILE --role health --limit NODE`, then apply.
        - It comes and goes: see HealthCheckNotRunning, TextfileBroken.
    """),
    jobs=_NODE,
)

_REBOOTS = Alert(
    name="NodeRebootsOften",
    expr=f'max by ({PLACE}) (resets(node_context_switches_total{{job="node"}}[1d])) > <times>',
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }} has rebooted {{ $value }} times within a day",
    description=prose("""
        {{ $labels.node }} has rebooted {{ $value }} times within 24 hours. It takes a job with it each time. Drain it, and do not
        reboot it again before its event log has been read.
    """),
    means=prose("""
        A node in a reboot loop looks healthy in between and kills one job after another. Planned reboots count as well: the
        kernel's counter starts from zero at each boot.
    """),
    steps=listed(f"""
        - {steps.DRAIN}
        - {steps.SEL}
        - `journalctl --list-boots | tail`, then `journalctl -k -b -1 -n 100`, `-b -2` and so on: the same last lines?
        - {steps.DIAGNOSE}
        - {steps.RMA}
    """),
    jobs=_NODE,
    thresholds={
        "times": Threshold(
            3,
            "times",
            "Reboots within 24 hours.",
            "Oracle oci-hpc, healthchecks: at most 3 (read 2026-11-20)",
        )
    },
)

GROUP = RuleGroup("health", (_FAILED, _WARNED, _WOULD, _UNKNOWN, _HUMAN, _SILENT, _NO_VERDICT, _REBOOTS))
