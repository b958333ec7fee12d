"""Shell questions that the deploy asks before it starts slurmctld: is its state mounted, does slurmdbd answer."""

from __future__ import annotations

from shlex import quote

from rackwright.model.cluster import Cluster
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.services import StateMount

KNOWN = "knows this cluster and its QOS"
WAIT_SECONDS = 600
"""As long as the packages of the database may take to install on another node."""

# slurmctld refuses a partition whose QOS slurmdbd does not know; the cluster is registered before any QOS.
_KNOWN = """\
for name in {qos}; do
  timeout 10 sacctmgr -nP show qos format=name | grep -qxF "$name" || {{ echo "does not know the QOS $name"; exit; }}
done
timeout 10 sacctmgr -nP show cluster format=cluster | grep -qxF {cluster} || {{ echo "does not know {cluster}"; exit; }}
echo '{known}'"""

_WAIT = """\
end=$(($(date +%s) + {seconds}))
until answer=$({known}
) && [ "$answer" = '{want}' ]; do
  [ "$(date +%s)" -lt $end ] || {{
    echo "slurmdbd on {host} does not answer as declared after {seconds} s: $answer" >&2
    timeout 10 sacctmgr -nP show cluster >&2; exit 1
  }}
  sleep 2
done
"""


def known_records(cluster: Cluster, options: SlurmOptions) -> str:
    """Prints KNOWN where slurmdbd answers and has the cluster and the QOS of the partitions."""
    named = {
        qos
        for partition in options.partitions.values()
        for qos in (partition.qos, *partition.allow_qos)
        if qos is not None
    }
    qos = " ".join(sorted(named | {"normal"}))
    return _KNOWN.format(qos=qos, cluster=quote(cluster.name), known=KNOWN)


def wait_for(known: str, host: str, seconds: int = WAIT_SECONDS) -> str:
    """Until `known` prints KNOWN; an error after `seconds`."""
    return _WAIT.format(known=known, want=KNOWN, host=host, seconds=seconds)


def mounted(mount: StateMount) -> str:
    """Prints type and source of what is mounted there; an automount is triggered first, and is the lower of two."""
    path = quote(mount.path)
    return f"timeout 20 ls -d {path}/. >/dev/null; findmnt -n -r -o FSTYPE,SOURCE --mountpoint {path} | tail -n 1"


def refuse_unmounted(mount: StateMount) -> str:
    """The site makes the mount: reports what is missing and fails."""
    message = (
        f"{mount.path} is not the declared {mount.fstype} from {mount.source} (state_mount): mount it on every "
        "controller and apply again. slurmctld is left unchanged, since with another folder it would lose all jobs"
    )
    return f"echo {quote(message)} >&2; findmnt --mountpoint {quote(mount.path)} >&2; exit 1"
