"""Main memory: running out of it, and modules that fail."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})

_LOW = Alert(
    name="MemoryLow",
    expr="""
node_memory_MemAvailable_bytes{job="node",role!="worker"} / node_memory_MemTotal_bytes{job="node",role!="worker"} * 100
< <percent>
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $value | printf "%.1f" }} % of memory is available',
    description=prose("""
        {{ $labels.node }}, a {{ $labels.role }} node, has {{ $value | printf "%.1f" }} % of its memory left. When it runs out, the
        kernel kills a process, and that may be a daemon the whole cluster needs. Find what grows: ps aux --sort=-rss | head.
    """),
    means=prose("""
        A head, login or storage node is short of memory. Workers are left out: there, jobs are meant to use what there is,
        and Slurm limits them.
    """),
    steps=listed("""
        - `ps aux --sort=-rss | head` on the node: a user's process on a login node, or a daemon?
        - A user's process on a login node: ask its user to run it in a job, or end it.
        - slurmctld or mariadbd: compare with last week's graph. Steady growth is a leak: plan a restart in a quiet hour, and
          report it.
        - Prometheus: `rackwright verify FILE --role prometheus`; docs/prometheus.md has what it needs per target.
        - `journalctl -k -g 'Out of memory' -n 20`: has the kernel killed something already? Then see OomKill.
    """),
    jobs=_NODE,
    thresholds={"percent": Threshold(10, "percent", "Memory available.", sources.MIXIN)},
)

_OOM = Alert(
    name="OomKill",
    expr='increase(node_vmstat_oom_kill{job="node",role!="worker"}[10m]) > 0',
    hold_seconds=0,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the kernel killed a process for lack of memory",
    description=prose("""
        The kernel of {{ $labels.node }}, a {{ $labels.role }} node, killed a process because memory ran out ({{ $value | printf "%.0f" }} within 10 minutes). Check that no daemon is missing: journalctl -k -g 'Out of memory' -n 20.
    """),
    means=prose("""
        Memory ran out, on the node or within the limit of one user or service. On workers this is normal: each job
        has a limit, and Slurm reports it to the user. On other nodes it can kill a daemon that the cluster needs.
    """),
    steps=listed("""
        - `journalctl -k -g 'Out of memory|oom-kill' -n 20` on the node: which process, in which cgroup?
        - A cgroup of `user.slice`: a user reached the limit of a login node. Nothing is broken; inform the user.
        - A daemon: `systemctl --failed`; start what is missing, then see MemoryLow for what used the memory.
    """),
    jobs=_NODE,
)

_BELOW = Alert(
    name="MemoryBelowDeclaration",
    expr="""
node_memory_MemTotal_bytes{job="node"}
< on (node) group_left () rackwright_declared_memory_bytes * (1 - <percent> / 100)
""",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }} has {{ $value | humanize1024 }}B of memory, less than declared",
    description=prose("""
        {{ $labels.node }} has {{ $value | humanize1024 }}B of memory, more than <percent> % less than its SKU declares: a memory
        module is missing or was taken out of use at boot. Drain it and look at the BMC's event log.
    """),
    means=prose("""
        Firmware leaves out a memory module that fails its training or its test. The node boots and works, with less memory
        and less memory bandwidth than its neighbours.
    """),
    steps=listed(f"""
        - `dmidecode -t memory | grep -e Size -e Locator` on the node: which slot has `No Module Installed`?
        - {steps.SEL}
        - {steps.DRAIN}
        - Reseat the module. If it stays away, swap it with its neighbour: does the fault move with it? Replace the module;
          else the slot or the CPU is broken.
        - {steps.RESUME}
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            5, "percent", "Memory below the declared.", f"{sources.AZURE}: physical memory within 3 to 5 %"
        )
    },
)

_UNCORRECTED = Alert(
    name="MemoryUncorrectedError",
    expr='increase(node_edac_uncorrectable_errors_total{job="node"}[1h]) > 0',
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: uncorrected memory error on controller {{ $labels.controller }}",
    description=prose("""
        Memory controller {{ $labels.controller }} of {{ $labels.node }} had errors that it could not correct ({{ $value | printf "%.0f" }} within an hour). Data was lost, and the process that owned it was killed. Drain the node and have the module replaced.
    """),
    means="The content of some memory was lost. The kernel kills the process that used it, or panics where it was its own.",
    steps=listed(f"""
        - {steps.JOBS} Their results are suspect.
        - {steps.DRAIN}
        - Which module: `ras-mc-ctl --errors | tail`, or `journalctl -k -g 'EDAC|Machine check|mce:' -n 40`.
        - {steps.SEL}
        - Replace the module, then boot and run a memory test (`rackwright burnin FILE --nodes NODE` at least).
        - {steps.RESUME}
    """),
    jobs=_NODE,
)

_CORRECTED = Alert(
    name="MemoryCorrectedErrors",
    expr='increase(node_edac_correctable_errors_total{job="node"}[1d]) > <errors>',
    hold_seconds=600,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $value | printf "%.0f" }} corrected memory errors within a day',
    description=prose("""
        Memory controller {{ $labels.controller }} of {{ $labels.node }} corrected {{ $value | printf "%.0f" }} errors within a day.
        No data is lost yet, but such a module often fails for good later. Plan its replacement.
    """),
    means="ECC corrected every error. Modules that do this often tend to fail for good, and take a job with them.",
    steps=listed(f"""
        - Which module: `ras-mc-ctl --error-count`, or `journalctl -k -g EDAC -n 40`.
        - The numbers grow by the hour: {steps.then(steps.DRAIN)}
        - Have the module replaced in the next maintenance, and `rackwright verify FILE --limit NODE` afterwards.
    """),
    jobs=_NODE,
    thresholds={
        "errors": Threshold(
            100,
            "errors",
            "Corrected errors of one memory controller within a day.",
            "mcelog.conf, mem-ce-error-threshold of a socket (read 2026-11-23)",
        )
    },
)

GROUP = RuleGroup("memory", (_LOW, _OOM, _BELOW, _UNCORRECTED, _CORRECTED))
