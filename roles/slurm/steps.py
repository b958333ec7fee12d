"""Steps of the deploy that stand alone: logins of users with a job, and a head whose daemons run in pods."""

from __future__ import annotations

from pyinfra.context import host

from rackwright.data import Site
from rackwright.operations import files, units
from rackwright.roles.slurm import texts
from rackwright.roles.slurm.options import SlurmOptions


def stop_daemons() -> None:
    """Daemons that ran on the primary head before: two slurmctld would both act on the same nodes."""
    for daemon in host.loop(("slurmctld", "slurmdbd", "slurmd")):  # type: ignore[no-untyped-call]
        units.unit(
            name=f"Stop {daemon}, which runs in a pod", unit=f"{daemon}.service", running=False, enabled=False
        )


def adopt_logins(site: Site, options: SlurmOptions) -> None:
    """Only users with a job on a worker get in by ssh."""
    # The exceptions are written before logins are restricted.
    files.file(
        name="Write the list of users who may log in without a job",
        path="/etc/security/access-slurm.conf",
        content=texts.access_conf(site.cluster, options),
    )
    files.file(
        name="Restrict logins to users with a job",
        path="/etc/pam.d/sshd",
        content=texts.sshd_pam(site.node.family),
    )
