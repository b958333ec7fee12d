"""On which ports Slurm listens. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.services import Listener
from rackwright.model.types import NetworkPurpose
from rackwright.roles.slurm import placement

if TYPE_CHECKING:
    from rackwright.model.cluster import Node
    from rackwright.roles.slurm.options import SlurmOptions

EPHEMERAL = (32768, 60999)
"""net.ipv4.ip_local_port_range as Linux ships it (Documentation/networking/ip-sysctl.rst, read 2026-11-24)."""
_INNER = frozenset({NetworkPurpose.MANAGEMENT, NetworkPurpose.FABRIC, NetworkPurpose.STORAGE})


def listeners_of(options: SlurmOptions, node: Node) -> tuple[Listener, ...]:
    """Its daemons on the management network; what steps open by any of the cluster's networks.

    slurmstepd opens ports for PMIx, srun for the steps it starts; both may be root's, as in an acceptance run.
    """
    ports = {
        "slurmctld": (placement.runs_slurmctld(node, options), options.slurmctld_port),
        "slurmdbd": (placement.runs_slurmdbd(node, options), options.slurmdbd_port),
        "slurmd": (placement.runs_slurmd(node), options.slurmd_port),
    }
    daemons = tuple(Listener(program, (port, port)) for program, (runs, port) in ports.items() if runs)
    srun = EPHEMERAL
    if options.srun_port_range is not None:
        first, _, last = options.srun_port_range.partition("-")
        srun = (int(first), int(last))
    steps = (Listener("slurmstepd", EPHEMERAL, purposes=_INNER),) if placement.runs_slurmd(node) else ()
    return (*daemons, *steps, Listener("srun", srun, purposes=_INNER))
