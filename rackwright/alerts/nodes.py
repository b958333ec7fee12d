"""Nodes that do not answer, or are about to stop doing their work."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.promql import NODE_DOWN, PLACE
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})
REBOOTED = "NodeRebooted"
"""True for a while after each boot; a run that reboots nodes silences it."""
RACK = "RackDown"
"""A run that takes a whole rack down silences it."""

_SILENT = f"""
{NODE_DOWN}
unless on (node) (max by (node) (up{{job=~"alertmanager|dcgm|mariadb|prometheus"}}) == 1)
unless on (node) (probe_success{{job="blackbox",probe="ssh"}} == 1)
"""
_ALSO_ASKED = frozenset({"alertmanager", "blackbox", "dcgm", "mariadb", "prometheus"})

_DOWN = Alert(
    name="NodeDown",
    expr=_SILENT,
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }} is down",
    description=prose("""
        {{ $labels.node }} answers neither on its exporters' ports nor by ssh. Slurm sets it DOWN after SlurmdTimeout and its jobs
        are lost. Look at its console through the BMC, then power-cycle it.
    """),
    means=prose("""
        The node has lost power, its kernel has hung or crashed, or the management network does not reach it. slurmctld sets
        a node that has not answered for SlurmdTimeout (300 s by default) to DOWN and requeues or fails its jobs. If
        only the exporter has died, ExporterDown fires instead of this alert.
    """),
    steps=listed(f"""
        - Is it alone? RackDown, LeafDown or several NodeDown at once point at power or a switch: start there.
        - Ping the node and its BMC, then ask for power: `ipmitool -I lanplus -H BMC -U USER -a chassis power status`.
        - Power is on: read the console, `ipmitool -I lanplus -H BMC -U USER -a sol activate`. Keep a copy of a panic.
        - {steps.SEL} Memory, PCIe and power events name the part.
        - Power-cycle it: `ipmitool -I lanplus -H BMC -U USER -a chassis power cycle`.
        - After the boot, `journalctl -k -b -1 -n 200` has the last lines before the crash, if they reached the disk.
        - {steps.WHY}
        - {steps.RESUME}
        - If it goes down again within days, leave it drained and open an RMA with the event log and the console's output.
    """),
    jobs=_NODE,
    also_reads=_ALSO_ASKED,
    source=f"Held for 120 s, less than SlurmdTimeout, 300 s by default: {sources.SLURM_CONF}",
)

_RACK = Alert(
    name=RACK,
    expr=f"""
count by (rack) ({_SILENT}) / count by (rack) (up{{job="node",rack!=""}}) * 100 >= <percent>
and count by (rack) ({_SILENT}) >= 2
""",
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary='Rack {{ $labels.rack }}: {{ $value | printf "%.0f" }} % of its nodes are down',
    description=prose("""
        {{ $value | printf "%.0f" }} % of the nodes in rack {{ $labels.rack }} do not answer. Check the rack's power feeds and
        its management switch before any single node.
    """),
    means=prose("""
        Most nodes of one rack went away together. They nearly always share a cause: a PDU or a breaker, the rack's
        management switch or its uplink, or a thermal shutdown.
    """),
    steps=listed("""
        - Do the BMCs of two of its nodes answer (`ping BMC`)? If not, the management switch or all power is gone.
        - Look for SnmpDeviceDown, UpsOnBattery and InletTemperatureHigh in the same rack.
        - Switch: check its power at the rack, then the uplink's light levels at both ends.
        - Power: restore the feed, then start nodes a few at a time, so that the inrush trips no breaker.
        - When nodes are back: `rackwright verify FILE --limit NODESET`, then resume those that pass:
          `scontrol update NodeName=NODESET State=RESUME`.
    """),
    jobs=_NODE,
    also_reads=_ALSO_ASKED,
    thresholds={
        "percent": Threshold(
            80,
            "percent",
            "Nodes of the rack that are down.",
            "rackwright: one dead node out of five does not make a dead rack (2026-11-27)",
        )
    },
)

_REBOOTED = Alert(
    name=REBOOTED,
    expr='node_time_seconds{job="node"} - node_boot_time_seconds{job="node"} < <seconds>',
    hold_seconds=0,
    severity=Severity.INFO,
    summary="{{ $labels.node }} booted {{ $value | humanizeDuration }} ago",
    description=prose("""
        {{ $labels.node }} booted {{ $value | humanizeDuration }} ago. If it was not rebooted on purpose, read how the previous
        boot ended: journalctl -k -b -1 -n 200.
    """),
    means=prose("""
        Reboots by rackwright are silenced, so this one was made by hand, by the BMC, by a power cut or by a crash. A crash
        that is followed by a clean boot is easy to miss, and comes back.
    """),
    steps=listed(f"""
        - `rackwright runs FILE` and `last -x reboot shutdown | head` show whether a run or a person rebooted it.
        - `journalctl -k -b -1 -n 200` on the node: does it end in a panic, a machine check or `NVRM: Xid`?
        - {steps.SEL} Is there a power or watchdog event at that time?
        - {steps.WHY}
    """),
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            600,
            "seconds",
            "Time since the boot.",
            "rackwright: long enough to be seen, and it resolves by itself (2026-11-27)",
        )
    },
)

_BLOCKED = Alert(
    name="ProcessesBlocked",
    expr='node_processes_state{job="node",state="D"} > <processes>',
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: {{ $value }} processes are blocked in the kernel",
    description=prose("""
        {{ $value }} processes on {{ $labels.node }} have been in state D for 15 minutes, usually because a filesystem does not
        answer. See what they wait for: ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /^D/'.
    """),
    means=prose("""
        A process in state D waits in the kernel and cannot be killed, so its job cannot end. The usual cause is a file
        server or a drive that does not answer; the other one is a GPU driver that hangs.
    """),
    steps=listed(f"""
        - `ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /^D/'` on the node: `nfs_`, `rpc_` and `ll_` are file servers,
          `nvidia` the GPU driver, `blk_` and `nvme_` a drive.
        - `dmesg -T | grep -i -e 'blocked for more than' -e 'not responding' -e 'NVRM: Xid' | tail`.
        - Several nodes at once: it is the file server. See MountStale, and the server itself.
        - One node alone: {steps.then(steps.DRAIN)}
        - {steps.REBOOT}
    """),
    jobs=_NODE,
    thresholds={"processes": Threshold(20, "processes", "Processes in state D.", sources.GCM)},
)

_CONNTRACK = Alert(
    name="ConntrackNearlyFull",
    expr='node_nf_conntrack_entries{job="node"} / node_nf_conntrack_entries_limit{job="node"} * 100 > <percent>',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: the connection table is {{ $value | printf "%.0f" }} % full',
    description=prose("""
        The kernel's connection table on {{ $labels.node }} is {{ $value | printf "%.0f" }} % full. Once it is full, new
        connections are dropped. Find out who opens them: ss -s, conntrack -L.
    """),
    means="With a full connection table the kernel drops the packets of new connections. Users see timeouts that come and go.",
    steps=listed("""
        - `ss -s`, then `conntrack -L 2>/dev/null | grep -o 'src=[^ ]*' | sort | uniq -c | sort -n | tail`: which source has the most?
        - A job that opens connections without end: talk to its user (`squeue -w NODE`).
        - A login or head node that is simply busy: raise `net.netfilter.nf_conntrack_max` in the role `tuning` and apply.
    """),
    jobs=_NODE,
    thresholds={"percent": Threshold(75, "percent", "Entries, of the most that fit.", sources.MIXIN)},
)

_THROTTLED = Alert(
    name="CpuThrottledByHeat",
    expr=f'sum by ({PLACE}) (increase(node_cpu_core_throttles_total{{job="node"}}[1h])) > <times>',
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: heat slows the CPUs down",
    description=prose("""
        Heat slowed the cores of {{ $labels.node }} down {{ $value | printf "%.0f" }} times within an hour. Its jobs run slow and
        hold up their other nodes. Check its fans and the inlet temperature.
    """),
    means="The processors lower their clock to protect themselves. One slow node slows a whole parallel job down.",
    steps=listed(f"""
        - `ipmitool sdr type Fan` and `ipmitool sdr type Temperature` on the node: a fan that stands still, a hot inlet?
        - Its neighbours too: it is the air. See InletTemperatureHigh.
        - It alone: dust, a missing blanking panel or a badly seated heat sink. {steps.DRAIN}
        - Since when: `ipmitool sel elist | grep -i -e therm -e fan | tail`.
    """),
    jobs=_NODE,
    thresholds={
        "times": Threshold(
            1000,
            "times",
            "Times that cores were throttled within an hour, all cores together.",
            "rackwright, health checks, cpu_throttle_events: more than bursts under load (2026-11-23)",
        )
    },
)

_SENSOR = Alert(
    name="SensorNearCritical",
    expr='node_hwmon_temp_celsius{job="node"} > (node_hwmon_temp_crit_celsius{job="node"} > 0) - <margin>',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.chip }} {{ $labels.sensor }} at {{ $value | printf "%.0f" }} °C',
    description=prose("""
        {{ $labels.sensor }} of {{ $labels.chip }} on {{ $labels.node }} reads {{ $value | printf "%.0f" }} °C, within <margin> °C of
        the limit at which the part slows down or shuts off. Check fans and inlet air.
    """),
    means="A CPU, a drive, a memory module or a network card is about to reach the temperature at which it protects itself.",
    steps=listed("""
        - `sensors` on the node names the part: `coretemp` and `k10temp` are CPUs, `nvme` drives, `mlx5` cards and cables.
        - `ipmitool sdr type Fan`: does every fan turn? `ipmitool sdr type Temperature`: is the inlet hot?
        - An NVMe drive alone: compare its load (`iostat -x 5 3`) with its own view (`nvme smart-log /dev/nvmeN`).
        - An optical module alone: reseat it; if it is hot again, replace it.
    """),
    jobs=_NODE,
    thresholds={
        "margin": Threshold(
            5,
            "°C",
            "Margin to the sensor's own critical limit.",
            "rackwright: ahead of the failure (2026-11-27)",
        )
    },
)

GROUP = RuleGroup("nodes", (_DOWN, _RACK, _REBOOTED, _BLOCKED, _CONNTRACK, _THROTTLED, _SENSOR))
