"""Clusters whose RDMA devices and cabling are declared."""

from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from rackwright.model.hcas import DeclaresHcas, Hca
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Burnin
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole
from tests.factories import RunsSlurm, make_address, make_cluster, make_network, make_node

RAILS = 2


class NamesDevices(RoleOptions, DeclaresHcas):
    """Stands for the role that names the RDMA devices."""

    prefix: str = "rxe_rail"

    def hcas(self, cluster, node):
        return tuple(
            Hca(f"{self.prefix}{rail}", "fabric", rail, netdev=f"eth{rail + 1}") for rail in range(RAILS)
        )


def address_of(number, rail):
    return f"10.1.{rail}.{number}"


def fabric_of(kind=LinkKind.ROCE, units=2, size=2, spines=2):
    """Leaf `leafU.R` has rail R of unit U on ports 1..size, and one cable to each spine from port 31 on."""
    cables = [
        Cable(
            NodePort(f"w{unit * size + n + 1}", rail),
            SwitchPort(f"leaf{unit}.{rail}", n + 1),
            label=f"c{unit}{n}{rail}",
        )
        for unit in range(units)
        for n in range(size)
        for rail in range(RAILS)
    ]
    leaves = [f"leaf{unit}.{rail}" for unit in range(units) for rail in range(RAILS)]
    cables += [
        Cable(SwitchPort(leaf, 31 + spine), SwitchPort(f"spine{spine}", number + 1))
        for number, leaf in enumerate(leaves)
        for spine in range(spines)
    ]
    return Fabric(
        network="fabric",
        kind=kind,
        rails=RAILS,
        leaves=tuple(leaves),
        spines=tuple(f"spine{n}" for n in range(spines)),
        cables=tuple(cables),
    )


def two_leaves(units=2, size=2, kind=LinkKind.ROCE, cabled=True, **settings):
    """`units` times `size` workers w1.. with two rails each, devices named by a role."""
    options = {"rdma": NamesDevices()}
    workers = [
        make_node(
            f"w{number}",
            20 + number,
            options=options,
            addresses=(
                make_address("management", f"10.9.0.{20 + number}"),
                *(make_address("fabric", address_of(number, rail), rail) for rail in range(RAILS)),
            ),
        )
        for number in range(1, units * size + 1)
    ]
    fabric = make_network(
        "fabric", "10.1.0.0/16", kind=kind, purpose=NetworkPurpose.FABRIC, rails=RAILS, rail_prefix=24
    )
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options={"slurm": RunsSlurm()}),
        *workers,
        networks={"management": make_network("management", "10.9.0.0/24"), "fabric": fabric},
        fabrics={"fabric": fabric_of(kind, units, size)} if cabled else {},
        burnin=Burnin(**{"floor_busbw_gbs": 1.0, "floor_source": "test"} | settings),
    )
