"""The P_Keys of a node's InfiniBand ports, compared with those that the cluster's subnet managers give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.claims.check import CheckContext, NotInScope, Undetermined, fail
from rackwright.model.hcas import Hca, RunsSubnetManager
from rackwright.model.types import LinkKind

if TYPE_CHECKING:
    from rackwright.roles.rdma.options import RdmaOptions


def parse_pkeys(text: str) -> frozenset[int]:
    """The P_Keys of a port's table, `cat .../ports/N/pkeys/*`; Undetermined where it is not that.

    0x0000 and 0x8000 are empty entries (IBTA: a P_Key whose low 15 bits are 0 is not valid).
    """
    words = text.split()
    try:
        found = [int(word, 16) for word in words if word.startswith("0x")]
    except ValueError:
        found = []
    if not words or len(found) != len(words):
        raise Undetermined(f"not a table of P_Keys: {text.strip()[:60]!r}")
    return frozenset(key for key in found if key & 0x7FFF)


def differences(wanted: frozenset[int], found: frozenset[int]) -> list[str]:
    """Sentences about what is not as declared."""
    wrong = []
    for key in sorted(wanted - found, key=lambda key: key & 0x7FFF):
        other = key ^ 0x8000
        partition = f"{key & 0x7FFF:#06x}"
        if other in found:
            wrong.append(f"it is a {_member(other)} member of {partition}, not {_member(key)}")
        else:
            wrong.append(f"it is not in the partition {partition}")
    wrong += [
        f"it is in the partition {key & 0x7FFF:#06x}, undeclared"
        for key in sorted(found)
        if key not in wanted and key ^ 0x8000 not in wanted
    ]
    return wrong


def _member(key: int) -> str:
    return "full" if key & 0x8000 else "limited"


def pkeys(context: CheckContext[RdmaOptions]) -> str:
    """Each InfiniBand port has exactly the declared P_Keys; out of scope where no role declares any."""
    wrong, good = [], []
    for hca in context.options.hcas(context.cluster, context.node):
        wanted = _wanted(context, hca)
        if wanted is None:
            continue
        path = f"/sys/class/infiniband/{hca.name}/ports/{hca.port}/pkeys"
        found = parse_pkeys(context.output("sh -c %s", f"cat {path}/*"))
        wrong_keys = differences(wanted, found)
        if wrong_keys:
            wrong.append(f"{hca.name} (rail {hca.rail} of {hca.network}): {', '.join(wrong_keys)}")
        good.append(hca.name)
    if wrong:
        fail("; ".join(wrong))
    if not good:
        raise NotInScope(
            "the subnet manager is not one of this cluster file's, which would declare partitions"
        )
    return f"{', '.join(good)} as partitions.conf has them"


def _wanted(context: CheckContext[RdmaOptions], hca: Hca) -> frozenset[int] | None:
    if context.cluster.networks[hca.network].kind is not LinkKind.INFINIBAND:
        return None
    for node in context.cluster.nodes:
        manager = node.offers(RunsSubnetManager)
        if manager is not None and manager.subnet_managers(hca.network):
            return manager.pkeys(context.cluster, context.node, hca.network)
    return None
