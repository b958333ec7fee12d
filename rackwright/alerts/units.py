"""systemd units that jobs or the cluster need."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity

_NODE = frozenset({"node"})
_OWN_ALERT = (
    "mariadb|munge|nvidia-dcgm|nvidia-fabricmanager|nvidia-imex|nvidia-persistenced|opensm|rackwright-firewall|slurmctld|"
    "slurmd|slurmdbd"
)
"""Units that have a dedicated alert, here or in rackwright.alerts.services."""


def _not_active(units: str) -> str:
    """Failed, stopped, or restarting in a loop; systemd does not list units that are not installed."""
    return (
        "max without (state, type) ("
        f'node_systemd_unit_state{{job="node",name=~"({units})[.]service",state="active"}}) == 0'
    )


_SLURMD = Alert(
    name="SlurmdDown",
    expr=_not_active("slurmd"),
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: slurmd is not running",
    description=prose("""
        slurmd is not running on {{ $labels.node }}. Its jobs run on unattended, and after SlurmdTimeout slurmctld sets the node DOWN
        and they are lost. Start it: systemctl restart slurmd.
    """),
    means="Without slurmd no job starts on the node and none that runs is looked after. slurmctld waits for SlurmdTimeout, 300 s.",
    steps=listed(f"""
        - {steps.journal("slurmd")}
        - {steps.restart("slurmd")} Jobs that run survive a restart of slurmd.
        - `error: Node configuration differs` or GPUs missing in gres.conf: hardware is gone. See GpuCountLow.
        - `munge: ... Invalid credential`: see MungeDown and ClockDiffersFromHead.
        - {steps.RESUME}
    """),
    jobs=_NODE,
    source=f"Held for 120 s, less than SlurmdTimeout, 300 s by default: {sources.SLURM_CONF}",
)

_MUNGE = Alert(
    name="MungeDown",
    expr=_not_active("munge"),
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: munge is not running",
    description=prose("""
        munged is not running on {{ $labels.node }}. No Slurm command and no daemon there can prove who it is; on a head nothing in
        the cluster can. Start it: systemctl restart munge.
    """),
    means="Slurm signs every message with MUNGE. On a worker its jobs are lost after SlurmdTimeout; on a head all of Slurm stops.",
    steps=listed(f"""
        - {steps.journal("munge")}
        - `Logfile is insecure`, `Keyfile is insecure`: wrong rights on /etc/munge, /var/log/munge or a folder above.
        - {steps.restart("munge")}
        - Test it from end to end: `munge -n | ssh HEAD unmunge` has to print `STATUS: Success`.
    """),
    jobs=_NODE,
)

_SLURMCTLD = Alert(
    name="SlurmctldDown",
    expr=_not_active("slurmctld"),
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="slurmctld is not running on {{ $labels.node }}",
    description=prose("""
        slurmctld is not running on {{ $labels.node }}. Running jobs go on, but none starts or ends properly, and every Slurm command
        fails. Read journalctl -u slurmctld there, then start it.
    """),
    means=prose("""
        The controller is down. With a second head, the backup takes over after SlurmctldTimeout (120 s by default); without one,
        the queue stands still until it runs again.
    """),
    steps=listed(f"""
        - {steps.journal("slurmctld")}
        - A mistake in slurm.conf: the journal names the line. `rackwright plan FILE --limit HEAD` shows what differs.
        - `/var` is full: see FilesystemFull. Free space before starting it, or its state is lost.
        - `munge`: see MungeDown. The database: slurmctld starts without it only if it has cached it before; see SlurmdbdDown.
        - {steps.restart("slurmctld")}
        - State is damaged (`Incomplete job state`): stop, copy StateSaveLocation aside, then ask for help before `-i`.
        - `scontrol ping` has to print UP; then `sinfo` and `squeue`.
    """),
    jobs=_NODE,
)

_SLURMDBD = Alert(
    name="SlurmdbdDown",
    expr=_not_active("slurmdbd"),
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="slurmdbd is not running on {{ $labels.node }}",
    description=prose("""
        slurmdbd is not running on {{ $labels.node }}. slurmctld keeps accounting records in memory until it is back and drops them
        when its queue is full. Start it: systemctl restart slurmdbd.
    """),
    means="Jobs run. Their accounting waits in slurmctld (SlurmdbdQueueLong), limits are enforced from its cache, and sacct fails.",
    steps=listed(f"""
        - {steps.journal("slurmdbd")}
        - `Can't connect to local server`: see MariadbDown first.
        - {steps.restart("slurmdbd")}
        - `sacctmgr show cluster` answers, and `sdiag | grep 'DBD Agent queue'` goes down to 0.
        - Do not restart slurmctld meanwhile: its queue is saved, but starting without slurmdbd can fail.
    """),
    jobs=_NODE,
)

_FABRICMANAGER = Alert(
    name="FabricManagerDown",
    expr=_not_active("nvidia-fabricmanager|nvidia-imex"),
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: {{ $labels.name }} is not running",
    description=prose("""
        {{ $labels.name }} is not running on {{ $labels.node }}. CUDA programs fail there with error 802 although nvidia-smi lists
        every GPU. Drain the node and start it.
    """),
    means="Without it the NVSwitches are not set up and no CUDA program starts. Jobs that run may go on.",
    steps=listed(f"""
        - {steps.DRAIN}
        - {steps.journal("nvidia-fabricmanager")}
        - Its version must be the driver's, exactly: `nv-fabricmanager --version`, `cat /proc/driver/nvidia/version`. After an
          upgrade by hand: `rackwright apply FILE --limit NODE`.
        - `NVLink` or `NVSwitch` errors in its log: a link or a switch is broken. Reboot once; again: open an RMA.
        - {steps.restart("nvidia-fabricmanager")} Then `nvidia-smi -q | grep -A2 Fabric` has to print `Completed`, `Success`.
        - {steps.RESUME}
    """),
    jobs=_NODE,
    source="CUDA error 802 without fabric manager: NVIDIA, Fabric Manager User Guide (read 2026-11-20)",
)

_GPU_SERVICE = Alert(
    name="GpuServiceDown",
    expr=_not_active("nvidia-dcgm|nvidia-persistenced"),
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: {{ $labels.name }} is not running",
    description=prose("""
        {{ $labels.name }} is not running on {{ $labels.node }}. Jobs work, but GPU faults go unseen without DCGM, and without
        persistence mode each start of a job takes seconds longer. Start it: systemctl restart {{ $labels.name }}.
    """),
    means="Monitoring of the GPUs or persistence mode is off.",
    steps=listed(f"""
        - {steps.journal("UNIT")}
        - {steps.restart("UNIT")}
        - `Failed to initialize NVML`: the driver is not loaded, or its version differs from the library's: run `nvidia-smi`.
    """),
    jobs=_NODE,
)

_OPENSM = Alert(
    name="OpensmDown",
    expr=_not_active("opensm"),
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="The subnet manager on {{ $labels.node }} is not running",
    description=prose("""
        opensm is not running on {{ $labels.node }}. Links that are up stay up; any that drops, and any node that boots, stays out of the
        fabric until a subnet manager runs. See whether a standby took over: sminfo.
    """),
    means="InfiniBand needs one subnet manager. Traffic goes on without it until the next change of the fabric.",
    steps=listed(f"""
        - `sminfo` from any node with a port: is another one MASTER? Then the fabric works, and this is not urgent.
        - {steps.journal("opensm")}
        - {steps.restart("opensm")}
        - `ibnetdiscover | wc -l`, and `ibstat` on a node that booted meanwhile: `State: Active`.
    """),
    jobs=_NODE,
)

_FIREWALL = Alert(
    name="FirewallDown",
    expr=_not_active("rackwright-firewall"),
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: the firewall is not loaded",
    description=prose("""
        The firewall's rules are not loaded on {{ $labels.node }}; every listening port is open to any host that reaches the node. Load them: systemctl restart rackwright-firewall.
    """),
    means="The node is not protected. Exporters, databases and the BMC network may be reachable from where they must not be.",
    steps=listed(f"""
        - {steps.journal("rackwright-firewall")}
        - {steps.restart("rackwright-firewall")}
        - `nft list ruleset | head -40` shows the tables; `rackwright verify FILE --role firewall --limit NODE` has to pass.
        - Who stopped it? `journalctl _COMM=sudo -n 50`. If it was not an operator, treat the node as compromised.
    """),
    jobs=_NODE,
)

_FAILED = Alert(
    name="UnitFailed",
    expr=f"""
max without (state, type) (node_systemd_unit_state{{job="node",name!~"({_OWN_ALERT})[.]service",state="failed"}}) == 1
""",
    hold_seconds=120,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: {{ $labels.name }} has failed",
    description=prose("""
        {{ $labels.name }} has failed on {{ $labels.node }}, and systemd has given up. Read why, then start it: journalctl -u
        {{ $labels.name }} -n 100.
    """),
    means="A service that the cluster file declares for this node is not running.",
    steps=listed(f"""
        - {steps.journal("UNIT")}
        - {steps.restart("UNIT")}
        - `rackwright verify FILE --limit NODE` has to pass.
    """),
    jobs=_NODE,
)

_OTHERS_FAILED = Alert(
    name="OtherUnitsFailed",
    expr="""
node_systemd_units{job="node",state="failed"}
> (sum without (name, type) (node_systemd_unit_state{job="node",state="failed"}) or node_systemd_units{job="node",state="failed"} * 0)
""",
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: failed units: {{ $value }}",
    description=prose("""
        Failed units on {{ $labels.node }}: {{ $value }}, more than those that are reported by name. See which: systemctl --failed.
    """),
    means="A unit that rackwright does not watch by name has failed: a timer's job, a mount, a socket, something of the site's own.",
    steps=listed(f"""
        - `systemctl --failed` on the node.
        - {steps.journal("UNIT")}
        - It failed once and does not matter: `systemctl reset-failed UNIT`.
        - To monitor it by name, add it to `node_exporter.units`.
    """),
    jobs=_NODE,
)

GROUP = RuleGroup(
    "units",
    (
        *(_SLURMD, _MUNGE, _SLURMCTLD, _SLURMDBD, _FABRICMANAGER, _GPU_SERVICE, _OPENSM, _FIREWALL),
        *(_FAILED, _OTHERS_FAILED),
    ),
)
