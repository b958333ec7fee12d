"""GPUs that are missing, and what their XIDs ask for.

The classes are those of rackwright's catalogue (`rackwright catalog --table xid`), by which nodes also judge themselves.
"""

from __future__ import annotations

from collections.abc import Callable

from rackwright.alerts import steps
from rackwright.alerts.promql import NODE_UP
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity
from rackwright.catalog.table_files import xid_table
from rackwright.catalog.tables import Xid, XidAction

_DCGM = frozenset({"dcgm"})
_SOURCE = "rackwright's catalogue, XID table: NVIDIA's catalogue with what others do (read 2026-11-20)"
_BLAMES_JOB = (XidAction.RESTART_JOB, XidAction.FOLLOW_OTHER)


def _which(chosen: Callable[[Xid], bool]) -> str:
    """Numbers, for a matcher."""
    return "|".join(str(row.code) for row in xid_table().rows if chosen(row))


def _drains(row: Xid) -> bool:
    return row.drain and row.action is not XidAction.OBEY_TEXT


def _by_action() -> str:
    """What the numbers of the first alert ask for, a sentence each."""
    actions: dict[XidAction, list[int]] = {}
    for row in xid_table().rows:
        if _drains(row):
            actions.setdefault(row.action, []).append(row.code)
    return "; ".join(f"`{action.value}`: {', '.join(map(str, codes))}" for action, codes in actions.items())


_COUNT = Alert(
    name="GpuCountLow",
    expr=f"""
rackwright_declared_gpus * 0 + on (node) group_left () (
  count by (node) (count by (node, gpu) (DCGM_FI_DEV_GPU_TEMP{{job="dcgm"}}))
  or on (node) (max by (node) (up{{job="dcgm"}} == 1) * 0)
) < rackwright_declared_gpus
and on (node) {NODE_UP}
""",
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }} has {{ $value }} GPUs, fewer than declared",
    description=prose("""
        DCGM sees {{ $value }} GPUs on {{ $labels.node }}, fewer than its SKU declares. One has fallen off the bus, or the driver does
        not load it. Drain the node, then reboot it once; a GPU that stays away needs an RMA.
    """),
    means="Jobs that were on the lost GPU have failed. Slurm still counts it and will start the next job on it.",
    steps=listed(f"""
        - {steps.DRAIN}
        - `nvidia-smi -L` on the node, then `lspci -d 10de: | grep -e 3D -e VGA`: not even on the bus?
        - `journalctl -k -g 'NVRM: Xid' -n 20`: XID 79 is a GPU that fell off the bus, 119 and 120 its firmware.
        - {steps.JOBS}
        - {steps.REBOOT}
        - It is back: {steps.then(steps.DIAGNOSE)} It passes: {steps.then(steps.RESUME)}
        - It stays away after one reboot and one full power cycle (`chassis power off`, a minute, `on`): {steps.then(steps.RMA)}
    """),
    jobs=frozenset({"dcgm", "node"}),
)

_CRITICAL = Alert(
    name="GpuXidCritical",
    expr=f'gpu:xid:seen{{xid=~"{_which(_drains)}"}}',
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} reported XID {{ $labels.xid }}",
    description=prose("""
        GPU {{ $labels.gpu }} ({{ $labels.UUID }}) of {{ $labels.node }} reported XID {{ $labels.xid }}, after which no new job may use it.
        Drain the node; rackwright catalog --table xid lists the action for this XID.
    """),
    means=prose(f"""
        The driver reported an error that leaves the GPU or its links unreliable. The action by number: {_by_action()}. The alert stays until DCGM restarts, as it does with a reset or a reboot, even if other XIDs follow. DCGM exports the last XID only: if two occur between scrapes, this alert misses the first one, but the node's health check does not.
    """),
    steps=listed(f"""
        - {steps.DRAIN}
        - `journalctl -k -g 'NVRM: (Xid|GPU)' -n 40` on the node: the first XID is the cause, those after it are consequences.
        - {steps.JOBS}
        - `reset-gpu`: with no job left, stop nvidia-dcgm, nvidia-persistenced and the exporter, `nvidia-smi -r -i GPU`, start them.
          On boards with NVSwitch all GPUs are reset together, so rebooting is simpler.
        - `reboot`: {steps.then(steps.REBOOT)}
        - `check-cables`: power off; reseat the GPU's power and the board's connectors.
        - `investigate` and `update-firmware`: compare driver and VBIOS with the other nodes
          (`rackwright health FILE --limit NODE`); `rackwright catalog --table xid` has what NVIDIA advises.
        - {steps.DIAGNOSE} It passes: {steps.then(steps.RESUME)}
        - The same GPU again within a month: {steps.then(steps.RMA)}
    """),
    jobs=_DCGM,
    source=_SOURCE,
)

_RECOVERY = Alert(
    name="GpuRecoveryActionChanged",
    expr=f'gpu:xid:seen{{xid=~"{_which(lambda row: row.action is XidAction.OBEY_TEXT)}"}}',
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: the driver asks for a recovery of GPU {{ $labels.gpu }}",
    description=prose("""
        The driver changed the recovery action of GPU {{ $labels.gpu }} on {{ $labels.node }} (XID {{ $labels.xid }}). The kernel log has the new one: journalctl -k -g 'GPU recovery action' -n 5. Carry it out.
    """),
    means=prose("""
        The text of this XID is the driver's own verdict and outranks the number of the XID before it: `None`, `GPU Reset Required`,
        `Node Reboot Required`, `Drain P2P` or `Drain and Reset`.
    """),
    steps=listed(f"""
        - `journalctl -k -g 'GPU recovery action' -n 5` on the node. `(None)`: the GPU has recovered; the alert ends when DCGM restarts.
        - {steps.DRAIN}
        - `GPU Reset Required`, `Drain and Reset`: with no job left, reset it as GpuXidCritical's page describes.
        - `Node Reboot Required`: {steps.then(steps.REBOOT)}
        - `Drain P2P`: end the jobs that use peer-to-peer on it, then do as for a reset.
        - {steps.DIAGNOSE} It passes: {steps.then(steps.RESUME)}
    """),
    jobs=_DCGM,
    source=_SOURCE,
)

_APPLICATION = Alert(
    name="GpuXidApplication",
    expr=f"""
gpu:xid:last{{xid=~"{_which(lambda row: not row.drain and row.action in _BLAMES_JOB)}"}} unless gpu:xid:last offset 15m
""",
    hold_seconds=0,
    severity=Severity.INFO,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} reported XID {{ $labels.xid }}, which blames the job",
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} reported XID {{ $labels.xid }}: a fault of the program that ran there. The node needs no action. If different jobs get it on the same GPU, the GPU is at fault.
    """),
    means="The job failed, most likely by its own fault, e.g. an illegal address. The GPU goes on. It resolves after 15 minutes.",
    steps=listed(f"""
        - {steps.JOBS}
        - One user's job on several nodes: its program is at fault. Inform the user; compute-sanitizer finds illegal accesses.
        - Different users' jobs on this one GPU: {steps.then(steps.DRAIN)} {steps.DIAGNOSE}
    """),
    jobs=_DCGM,
    source=_SOURCE,
)

_UNKNOWN = Alert(
    name="GpuXidUnknown",
    expr=f'gpu:xid:seen{{xid!~"{_which(lambda row: True)}"}}',
    hold_seconds=0,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} reported XID {{ $labels.xid }}, which is not in the catalogue",
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} reported XID {{ $labels.xid }}, and rackwright's catalogue does not know it. Look it up in
        NVIDIA's XID documentation, and drain the node until you know.
    """),
    means="A newer driver has XIDs that the catalogue lacks. Unknown is not harmless.",
    steps=listed(f"""
        - Look it up: docs.nvidia.com, "XID errors". `journalctl -k -g 'NVRM: Xid' -n 10` on the node has its text.
        - {steps.DRAIN}
        - Follow NVIDIA's advice. {steps.DIAGNOSE}
        - A newer rackwright may know it; if not, report the number and the text.
        - {steps.RESUME}
    """),
    jobs=_DCGM,
    source=_SOURCE,
)

GROUP = RuleGroup("gpus", (_COUNT, _CRITICAL, _RECOVERY, _APPLICATION, _UNKNOWN))
