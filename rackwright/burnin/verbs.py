"""Settings that make MPI use the declared RDMA devices. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.burnin.rails import Rail
from rackwright.model.types import LinkKind

LINGER_SECONDS = 3
"""A process that exits destroys its queue pairs, and rdma_rxe may not have sent the last acknowledgement yet: the other end
then retries."""


def linger_seconds(rails: Sequence[Rail]) -> int:
    """How long processes stay after their last message: longer than UCX's timeout before a retry, 1 s."""
    return LINGER_SECONDS if any(rail.software for rail in rails) else 0


def over_verbs(rails: Sequence[Rail]) -> dict[str, str]:
    """Variables by which Open MPI uses these devices and nothing else between nodes: without them the run fails.

    Open MPI 4.1 and 5.0 use UCX by themselves for devices called `mlx*` alone (opal/mca/common/ucx/common_ucx.c, default of
    `devices`; read 2026-11-25), so that software devices need `any`. UCX drives InfiniBand and RoCE, not iWARP or EFA.

    Software devices find each other by TCP: UD over rdma_rxe times out, RC carries the data (UCX 1.18.1 on Debian 13,
    2026-11-25). That TCP carried none of it, the devices' counters prove (rackwright.burnin.proof). At the end
    UCX aborts if rdma_rxe reports IBV_EVENT_QP_LAST_WQE_REACHED twice, so it does not listen for events. rdma_rxe takes a
    retry count of 7, UCX's default, as unlimited (drivers/infiniband/sw/rxe/rxe_comp.c, read 2026-11-25).
    """
    software = [rail.netdev for rail in rails if rail.software and rail.netdev is not None]
    if not rails or not all(rail.kind is LinkKind.INFINIBAND or rail.kind.converged for rail in rails):
        return {}
    return {
        **({"UCX_IB_ASYNC_EVENTS": "n", "UCX_RC_RETRY_COUNT": "6"} if software else {}),
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_pml_ucx_tls": "any",
        "OMPI_MCA_pml_ucx_devices": "any",
        "UCX_TLS": "rc_verbs,tcp,sm,self" if software else "rc,ud,sm,self",
        "UCX_NET_DEVICES": ",".join([*(f"{rail.device}:{rail.port}" for rail in rails), *software]),
    }
