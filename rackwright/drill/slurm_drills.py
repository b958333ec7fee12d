"""Drills of the alerts about Slurm, its database, and its jobs."""

from __future__ import annotations

from rackwright.drill.choose import head, other_gpu_worker, other_worker
from rackwright.drill.gpu_drills import fields
from rackwright.drill.model import Drill, Shell

_COLLECTOR = "rackwright-slurm-collector"
_LANE = "slurm"
"""One after the other: each stops something that the others need."""
_NAME = "rackwright-drill"
_SUBMIT = f"sbatch -Q -D / -o /dev/null -J {_NAME}"
_CANCEL = f"scancel --name={_NAME}"


_CONF = "conf=$(scontrol show config | sed -n 's/^SLURM_CONF *= *//p')"
_ASIDE = ".rackwright-drill"
_NO_SCHEDULER = "s/^SchedulerParameters=/&defer,sched_interval=-1,bf_interval=-1,/"
_FILL = f"{_SUBMIT} -N 2 --exclusive --wrap 'sleep 900'"
_UNTIL_BACKFILL = "for try in $(seq 80); do sdiag | grep -q 'Last cycle when:.*(' && break; sleep 1; done"
"""slurmctld prints this once it has run a cycle since its start."""


def _settings(edit: str, *, before: str = "true", after: str = "true") -> Shell:
    """slurm.conf, edited with sed; what it was keeps its times. Jobs of the drill are cancelled at the end."""
    read = "scontrol reconfigure; sleep 2"
    return Shell(
        f"{before}; {_CONF}; mv $conf $conf{_ASIDE} && sed '{edit}' $conf{_ASIDE} > $conf && {read}; {after}",
        f"{_CONF}; [ ! -e $conf{_ASIDE} ] || mv $conf{_ASIDE} $conf; {read}; {_CANCEL}",
    )


def _unit(alert: str, unit: str) -> Drill:
    shell = Shell(f"systemctl stop {unit}", f"systemctl start {unit}")
    return Drill(alert, f"{unit} is stopped", head, shell, lane=_LANE)


def _of_other_worker(alert: str, fault: str, make: str, *, named: bool = True) -> Drill:
    """The worker asks for it itself, as root may; so the alert names the node that is broken."""
    shell = Shell(
        f"scontrol update nodename=$(hostname -s) {make} reason=drill",
        "scontrol update nodename=$(hostname -s) state=resume",
    )
    return Drill(alert, fault, other_worker, shell, names_node=named, lane=_LANE)


def _job(alert: str, fault: str, figures: Shell | None = None) -> Drill:
    """A job on GPU 0 of the second worker that does nothing."""
    also = figures or Shell("true", "true")
    shell = Shell(
        f"{_SUBMIT} -w $(hostname -s) --gres=gpu:1 --wrap 'sleep 900' && {also.make}",
        f"{_CANCEL}; {also.heal}",
    )
    return Drill(alert, fault, other_gpu_worker, shell, {"user": "root"}, names_node=False, lane=_LANE)


_SERVICES = (
    Drill(
        "SlurmUnreachable",
        "slurmctld hangs",
        head,
        Shell("systemctl kill -s STOP slurmctld", "systemctl kill -s CONT slurmctld"),
        names_node=False,
        lane=_LANE,
    ),
    _unit("SlurmctldDown", "slurmctld"),
    _unit("SlurmdbdDown", "slurmdbd"),
    Drill(
        "SlurmdbdQueueLong",
        "slurmdbd is stopped while jobs are submitted",
        head,
        Shell(
            f"systemctl stop slurmdbd; for job in 1 2 3 4 5 6 7 8; do {_SUBMIT} -H --wrap true; done",
            f"scancel --state=PENDING --name={_NAME}; systemctl start slurmdbd",
        ),
        names_node=False,
        lane=_LANE,
    ),
    Drill(
        "SlurmMetricsStale",
        "the collector of Slurm metrics is stopped",
        head,
        Shell(f"systemctl stop {_COLLECTOR}", f"systemctl start {_COLLECTOR}"),
        names_node=False,
        lane=_LANE,
    ),
    Drill(
        "SlurmSourceFailed",
        "the exporter cannot run sdiag",
        head,
        Shell("chmod 750 /usr/bin/sdiag", "chmod 755 /usr/bin/sdiag"),
        {"source": "scheduler"},
        names_node=False,
        lane=_LANE,
    ),
    Drill(
        "MungeDown",
        "munge is stopped",
        other_worker,
        Shell("systemctl stop munge", "systemctl start munge"),
        lane=_LANE,
    ),
)
_DATABASE = (
    Drill(
        "MariadbDown",
        "MariaDB is stopped",
        head,
        Shell("systemctl stop mariadb", "systemctl start mariadb; systemctl restart slurmdbd"),
        lane=_LANE,
    ),
    Drill(
        "MariadbConnectionsNearlyFull",
        "nine of ten connections are in use",
        head,
        Shell(
            "mariadb -e 'SET GLOBAL max_connections = 10' && for number in 1 2 3 4 5 6 7; do systemd-run --quiet --collect "
            f"--unit={_NAME}-$number mariadb -e 'SELECT SLEEP(600)'; done",
            f"systemctl stop '{_NAME}-[1-7]' 2>/dev/null; mariadb -e 'SET GLOBAL max_connections = 151' || "
            "systemctl restart mariadb",
        ),
        lane=_LANE,
    ),
)
_NODES = (
    _of_other_worker("SlurmNodeDown", "a node is set DOWN", "state=down"),
    _of_other_worker("SlurmNodeDrainedLong", "a node stays drained", "state=drain"),
    _of_other_worker("SlurmNodesUnavailable", "half of the nodes are drained", "state=drain", named=False),
    Drill(
        "SlurmNodeNotResponding",
        "slurmd hangs",
        other_worker,
        Shell(
            "systemctl kill -s STOP slurmd",
            "systemctl kill -s CONT slurmd; sleep 2; scontrol update nodename=$(hostname -s) state=resume 2>/dev/null || :",
        ),
        lane=_LANE,
    ),
)
_JOBS = (
    Drill(
        "SlurmQueueStuck",
        "both schedulers are disabled",
        head,
        _settings(_NO_SCHEDULER, after=f"{_SUBMIT} --wrap true"),
        names_node=False,
        lane=_LANE,
    ),
    Drill(
        "SlurmBackfillStopped",
        "both schedulers are disabled while jobs wait",
        head,
        _settings(_NO_SCHEDULER, before=f"{_FILL}; {_FILL}; {_UNTIL_BACKFILL}"),
        names_node=False,
        lane=_LANE,
    ),
    Drill(
        "SlurmGpusBelowDeclaration",
        "slurm.conf declares one GPU per node",
        head,
        _settings("s/\\(Gres=gpu:[^:]*\\):[0-9]*/\\1:1/"),
        names_node=False,
        lane=_LANE,
    ),
    _job("JobGpusIdle", "a job that sleeps on a GPU"),
    _job(
        "JobStalled",
        "a job on a GPU that is busy but draws no power",
        fields("0 DEV_GPU_UTIL 100", of="job"),
    ),
)
SLURM_DRILLS: tuple[Drill, ...] = (*_SERVICES, *_DATABASE, *_NODES, *_JOBS)
