"""GPU memory: errors, remapped rows, memory that no job owns."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.recording import dcgm
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_DCGM = frozenset({"dcgm"})
_RESET = """
    Reset it: with no job on the node, stop nvidia-dcgm, nvidia-persistenced and the exporter, `nvidia-smi -r -i GPU`, start them
    again; or simply reboot: `rackwright reboot FILE --limit NODE`.
"""

_UNCORRECTED = Alert(
    name="GpuEccUncorrected",
    expr="increase(gpu:ecc_uncorrected:total[1h]) > 0",
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} has uncorrected memory errors",
    description=prose("""
        GPU {{ $labels.gpu }} ({{ $labels.UUID }}) of {{ $labels.node }} had uncorrected ECC errors ({{ $value | printf "%.0f" }} within an hour). The job that owned the memory was killed. Drain the node and reset the GPU.
    """),
    means=prose("""
        Data in GPU memory was lost. From Ampere on, the row is replaced by a spare one at the next reset; until then errors may
        come back. Errors in SRAM cannot be repaired like that.
    """),
    steps=listed(f"""
        - {steps.DRAIN}
        - `nvidia-smi -q -d ECC,ROW_REMAPPER -i GPU`: SRAM or DRAM? Is a remapping pending, has one failed?
        - {steps.JOBS}
        - {_RESET}
        - {steps.DIAGNOSE} It passes: {steps.then(steps.RESUME)}
        - SRAM errors, a failed remapping, or the same GPU again: {steps.then(steps.RMA)}
    """),
    jobs=_DCGM,
)

_FAILED = Alert(
    name="GpuRowRemapFailed",
    expr=f"{dcgm('DEV_ROW_REMAP_FAILURE')} > 0",
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} cannot remap a bad row",
    description=prose("""
        GPU {{ $labels.gpu }} ({{ $labels.UUID }}) of {{ $labels.node }} has a bad row of memory and no spare one left for it. It has to
        be replaced. Drain the node and open an RMA.
    """),
    means="Memory that is known to be bad stays in use. Jobs on this GPU fail, or worse, compute with wrong numbers.",
    steps=listed(f"""
        - {steps.DRAIN}
        - `nvidia-smi -q -d ROW_REMAPPER -i GPU` shows `Remapping Failure Occurred: Yes`.
        - {steps.RMA}
        - After the replacement: {steps.then(steps.DIAGNOSE)} Then `rackwright burnin FILE --nodes NODE`. {steps.RESUME}
    """),
    jobs=_DCGM,
    source=f"{sources.AZURE}; {sources.OCI}",
)

_PENDING = Alert(
    name="GpuRowRemapPending",
    expr=f"{dcgm('DEV_ROW_REMAP_PENDING')} > 0",
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} needs a reset to replace a bad row",
    description=prose("""
        GPU {{ $labels.gpu }} of {{ $labels.node }} has a bad row of memory that a spare one replaces at the next reset. Until then it
        can fail again. Drain the node and reset the GPU when its jobs have ended.
    """),
    means="The GPU has a spare row ready; a reset completes the repair.",
    steps=listed(f"""
        - {steps.DRAIN}
        - Wait for its jobs: `squeue -w NODE`.
        - {_RESET}
        - `nvidia-smi --query-remapped-rows=gpu_uuid,remapped_rows.pending --format=csv` shows `No`.
        - {steps.RESUME}
    """),
    jobs=_DCGM,
)

_MANY = Alert(
    name="GpuRowsRemappedMany",
    expr=f"{dcgm('DEV_UNCORRECTABLE_REMAPPED_ROWS')} > <rows>",
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: GPU {{ $labels.gpu }} has replaced {{ $value }} rows of memory",
    description=prose("""
        GPU {{ $labels.gpu }} ({{ $labels.UUID }}) of {{ $labels.node }} has replaced {{ $value }} rows after uncorrected errors. That is the
        limit from which vendors replace it. Drain the node and open an RMA.
    """),
    means="The memory wears out. Spare rows are running low, and each further error kills a job.",
    steps=listed(f"""
        - {steps.DRAIN}
        - `nvidia-smi -q -d ROW_REMAPPER -i GPU`: how many banks still have spare rows?
        - {steps.DIAGNOSE}
        - {steps.RMA}
    """),
    jobs=_DCGM,
    thresholds={
        "rows": Threshold(
            512, "rows", "Rows replaced after uncorrected errors.", f"{sources.AZURE}; {sources.OCI}: 512"
        )
    },
)

_LEFTOVER = Alert(
    name="GpuMemoryLeftOver",
    expr=f"""
({dcgm("DEV_FB_USED")} > <mebibytes> unless on (node, gpu) slurm_job_gpu) and on (node) slurm_node_gpus > 0
unless on (node) max by (node) (slurm_node_gpus_allocated)
  > (count by (node) (slurm_job_gpu) or max by (node) (slurm_node_gpus_allocated) * 0)
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: memory is taken on GPU {{ $labels.gpu }}, which no job has",
    description=prose("""
        {{ $value }} MiB are taken on GPU {{ $labels.gpu }} of {{ $labels.node }} although Slurm has given it to no job. A process was left
        behind or runs outside Slurm, and the next job runs out of memory. Find it: nvidia-smi; fuser -v /dev/nvidia{{ $labels.gpu }}.
    """),
    means=prose("""
        The next job on this GPU fails with `CUDA out of memory`, and its user is not to blame. Nodes are left out while Slurm does
        not report which GPUs its jobs have: nodes with MIG, and all nodes while the exporter cannot read the jobs' details.
    """),
    steps=listed(f"""
        - `nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv`, then `fuser -v /dev/nvidiaGPU` on the node.
        - A process of a job that has ended: `kill -9 PID`. In state D: reboot the node.
        - A process outside Slurm: talk to its user. `slurm.pam_adopt` keeps users without a job out of workers.
        - Memory without a process: {steps.then(steps.DRAIN)} {_RESET}
        - It keeps happening: the epilog does not clean up. `rackwright verify FILE --role health --limit NODE`.
    """),
    jobs=frozenset({"dcgm", "slurm"}),
    thresholds={
        "mebibytes": Threshold(
            1024,
            "MiB",
            "Memory taken on a GPU without a job.",
            "rackwright, health checks, gpu_stuck_memory_mib: a job left it (2026-11-20)",
        )
    },
)

GROUP = RuleGroup("gpu_memory", (_UNCORRECTED, _FAILED, _PENDING, _MANY, _LEFTOVER))
