"""A fabric whose faults are known: what runs of the search would reach on it, with noise."""

import random
from dataclasses import dataclass

from rackwright.burnin.culprit import Search
from rackwright.burnin.runs import Reading

USUAL_GBS = 400.0
PORT_GBPS = 390.0
PAIR_NOISE = 0.01
RUN_NOISE = 0.02


@dataclass(frozen=True)
class Fault:
    """`share` of the usual bandwidth is left; an uplink is of the leaf of a unit and a rail."""

    kind: str
    node: str | None = None
    rail: int | None = None
    unit: int | None = None
    share: float = 0.6


class SimulatedFabric:
    """Units of nodes below the same leaves, one leaf a rail; traffic of a leaf spreads over all of its uplinks."""

    def __init__(self, units=16, size=32, rails=8, faults=(), seed=0):
        self.units = [[f"n{unit * size + n:03}" for n in range(size)] for unit in range(units)]
        self.unit_of = {node: number for number, nodes in enumerate(self.units) for node in nodes}
        self.rails, self.faults, self.random = rails, faults, random.Random(seed)
        self.dead = set()

    def seeded(self, kinds, share=None):
        """One fault of each of the kinds, anywhere."""
        faults = []
        for kind in kinds:
            left = share or self.random.uniform(0.3, 0.75)
            node = self.random.choice([node for unit in self.units for node in unit])
            rail, unit = self.random.randrange(self.rails), self.random.randrange(len(self.units))
            faults.append(
                Fault("uplinks", rail=rail, unit=unit, share=left)
                if kind == "uplinks"
                else Fault(kind, node, rail if kind == "rail" else None, share=left)
            )
        self.faults = tuple(faults)
        return self

    def share(self, pair, rail):
        """Of the usual bandwidth, between two nodes on a rail."""
        units = {self.unit_of[node] for node in pair}
        shares = [1.0]
        for fault in self.faults:
            there = fault.rail in (None, rail)
            if there and (fault.node in pair or (len(units) > 1 and fault.unit in units)):
                shares.append(fault.share)
        return min(shares)

    def reading(self, run):
        if self.dead & set(run.nodes):
            return Reading(problem="srun exited 1")
        if run.kind == "ports":
            noisy = {
                (pair, rail): PORT_GBPS * self.share(pair, rail) * self.random.gauss(1, PAIR_NOISE)
                for pair in run.pairs
                for rail in range(self.rails)
                if not any(
                    fault.kind == "node" and fault.node in pair and fault.share > 0.7 for fault in self.faults
                )
            }
            return Reading(ports=noisy)
        slowest = min(
            min(self.share(pair, rail) for rail in range(self.rails)) * self.random.gauss(1, PAIR_NOISE)
            for pair in run.pairs
        )
        return Reading(USUAL_GBS * slowest * self.random.gauss(1, RUN_NOISE))

    def search(self, limit=None, **options):
        """The whole search on this fabric."""
        search = Search(self.units, limit=limit, **options)
        for _ in range(1000):
            runs = search.next_round()
            if not runs:
                return search.found
            nodes = [node for run in runs for node in run.nodes]
            assert len(nodes) == len(set(nodes)), "the runs of a round share a node"
            search.tell([self.reading(run) for run in runs])
        raise AssertionError("the search does not end")

    def named(self, found):
        """What was found in the words of the faults."""
        named = set()
        for culprit in found.culprits:
            if culprit.kind == "uplinks":
                named |= {
                    ("uplinks", unit, rail) for unit in culprit.units for rail in culprit.rails or (None,)
                }
            elif culprit.kind == "rail":
                named |= {("rail", culprit.nodes[0], culprit.rails[0])}
            else:
                named |= {("node", *culprit.nodes)}
        return named

    def truth(self):
        """What must be found: a node that is slow hides its slow rails."""
        slow = {fault.node for fault in self.faults if fault.kind == "node"}
        true = set()
        for fault in self.faults:
            if fault.kind == "uplinks":
                true.add(("uplinks", fault.unit, fault.rail))
            elif fault.kind == "node":
                true.add(("node", fault.node))
            elif fault.node not in slow:
                true.add(("rail", fault.node, fault.rail))
        return true


def nodes_of(fabric):
    return sum(map(len, fabric.units))
