"""How MPI is told to use the declared RDMA devices. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.burnin.rails import Rail
from rackwright.model.types import LinkKind


def over_verbs(rails: Sequence[Rail]) -> dict[str, str]:
    """Variables by which Open MPI uses these devices and nothing else between nodes: without them the run fails.

    Open MPI 4.1 and 5.0 use UCX by themselves for devices called `mlx*` alone (opal/mca/common/ucx/common_ucx.c, default of
    `devices`; read 2026-11-25), so that software devices need `any`. UCX drives InfiniBand and RoCE, not iWARP or EFA.
    """
    if not rails or not all(rail.kind is LinkKind.INFINIBAND or rail.kind.converged for rail in rails):
        return {}
    return {
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_pml_ucx_tls": "any",
        "OMPI_MCA_pml_ucx_devices": "any",
        "UCX_TLS": "rc,ud,sm,self",
        "UCX_NET_DEVICES": ",".join(f"{rail.device}:{rail.port}" for rail in rails),
    }
