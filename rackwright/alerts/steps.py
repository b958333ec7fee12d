"""Steps that several runbooks share. NODE is the node that the alert names, FILE the cluster file."""

from __future__ import annotations

from rackwright.alerts.prose import prose

WHY = prose("""
    Run `rackwright why FILE NODE`: who drained the node, which health checks fail, what the kernel logged, and what to do
    about each.
""")
DRAIN = prose("""
    Drain the node: `scontrol update NodeName=NODE State=DRAIN Reason="why, and your name"`. Running jobs finish; no new job
    starts.
""")
RESUME = (
    "Run `rackwright verify FILE --limit NODE`. When it passes: `scontrol update NodeName=NODE State=RESUME`."
)
REBOOT = prose("""
    Reboot the node: `rackwright reboot FILE --limit NODE`. It drains the node, waits for its jobs, reboots, verifies and
    resumes.
""")
DIAGNOSE = "With no job on the node, run `dcgmi diag -r 3` there (about 15 minutes) and keep its output."
RMA = prose("""
    Open an RMA. Attach the archive of `nvidia-bug-report.sh`, the output of `dcgmi diag -r 3 -j`, and the serial number:
    `nvidia-smi --query-gpu=index,uuid,serial,pci.bus_id --format=csv`.
""")
JOBS = "See which jobs were hit: `squeue -w NODE`, or `sacct -N NODE -S now-2hours -X` for those that have ended."
SEL = "Read the BMC's event log: `ipmitool -I lanplus -H BMC -U USER -a sel elist | tail -20`."


def journal(unit: str) -> str:
    """Why a unit does not run."""
    return f"Read why: `systemctl status {unit}`, then `journalctl -u {unit} -n 100`."


def restart(unit: str) -> str:
    """Starts a unit, and what to do when it does not stay up."""
    return (
        f"Restart it: `systemctl restart {unit}`. If it fails again, `rackwright plan FILE --limit NODE` shows whether its "
        "files are as declared; `rackwright apply FILE --limit NODE` puts them right."
    )


def then(step: str) -> str:
    """A step within another one's sentence."""
    return step[0].lower() + step[1:]
