"""The search for a culprit on simulated fabrics: found in 40 runs, nothing invented, and what it says when it cannot."""

from itertools import combinations_with_replacement

import pytest

from rackwright.burnin.culprit import RUNS_MAX, Search
from rackwright.burnin.runs import Reading
from tests.unit.burnin.simulated import Fault, SimulatedFabric

KINDS = ("node", "rail", "uplinks")
MIXES = [mix for number in (1, 2, 3) for mix in combinations_with_replacement(KINDS, number)]
LIMIT_GBS = 345.0


def found_on(fabric, limit, **options):
    found = fabric.search(limit, **options)
    assert fabric.named(found) == fabric.truth(), (fabric.faults, found.culprits, found.stopped)
    assert len(found.steps) <= RUNS_MAX
    assert (found.unresolved, found.stopped) == ((), "")
    return found


@pytest.mark.parametrize("limit", [None, LIMIT_GBS])
@pytest.mark.parametrize("mix", MIXES, ids="+".join)
def test_faults_among_512_nodes_are_found_in_40_runs_and_none_is_invented(mix, limit):
    for seed in range(3):
        found_on(SimulatedFabric(seed=seed).seeded(mix), limit)


@pytest.mark.proof
@pytest.mark.parametrize("limit", [None, LIMIT_GBS])
@pytest.mark.parametrize("mix", MIXES, ids="+".join)
def test_faults_among_512_nodes_on_200_seeds(mix, limit):
    for seed in range(200):
        found_on(SimulatedFabric(seed=1000 + seed).seeded(mix, 0.6 if seed % 2 else None), limit)


def test_a_sound_fabric_has_no_culprit():
    for seed in range(20):
        found = found_on(SimulatedFabric(seed=seed), LIMIT_GBS)
        assert found.culprits == ()
        assert len(found.steps) == 2, "one run below the leaves, one across the spines"
        assert len(found_on(SimulatedFabric(seed=seed), None).steps) == 4


@pytest.mark.parametrize(
    ("units", "size"),
    [(units, size) for units in (1, 2, 3) for size in (1, 2, 3, 4, 5, 7) if units * size > 2],
)
@pytest.mark.parametrize("kind", ["node", "rail"])
def test_in_small_clusters_the_slow_node_is_named_where_another_node_can_tell(size, units, kind):
    for seed in range(10):
        found_on(SimulatedFabric(units, size, 2, seed=seed).seeded([kind]), LIMIT_GBS)


@pytest.mark.parametrize("size", [3, 4, 5, 6])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_without_a_floor_the_first_pairs_may_be_the_slow_ones(size, bad):
    for share in (0.1, 0.3, 0.6):
        found_on(SimulatedFabric(1, size, 2, (Fault("node", f"n{bad:03}", share=share),)), None)


def test_of_two_nodes_either_is_named():
    fabric = SimulatedFabric(1, 2, 2, (Fault("node", "n001"),))
    [culprit] = fabric.search(LIMIT_GBS).culprits
    assert (culprit.kind, culprit.nodes, culprit.rails) == ("node", ("n000", "n001"), ())


def test_of_two_units_the_leaves_of_either_are_named_with_their_rail():
    fabric = SimulatedFabric(2, 4, 8, (Fault("uplinks", rail=5, unit=1),))
    [culprit] = fabric.search(LIMIT_GBS).culprits
    assert (culprit.kind, culprit.units, culprit.rails) == ("uplinks", (0, 1), (5,))
    fabric = SimulatedFabric(3, 4, 8, (Fault("uplinks", rail=5, unit=1),))
    [culprit] = fabric.search(LIMIT_GBS).culprits
    assert (culprit.units, culprit.rails, culprit.nodes) == ((1,), (5,), ("n004", "n005", "n006", "n007"))


def test_without_ib_write_bw_the_node_is_named_and_no_rail():
    fabric = SimulatedFabric(4, 8, 8, (Fault("rail", "n011", 3),))
    found = fabric.search(LIMIT_GBS, ports=False)
    assert [(one.kind, one.nodes, one.rails) for one in found.culprits] == [("node", ("n011",), ())]
    assert all(step.run.kind == "collective" for step in found.steps)


def test_a_node_whose_jobs_fail_is_found_too():
    fabric = SimulatedFabric(4, 8, 8)
    fabric.dead = {"n013"}
    [culprit] = fabric.search(None).culprits
    assert (culprit.nodes, culprit.reached) == (("n013",), None)


def test_when_no_run_gives_a_figure_it_says_so_and_names_nothing():
    fabric = SimulatedFabric(4, 8, 8)
    fabric.dead = {node for unit in fabric.units for node in unit}
    found = fabric.search(None)
    assert (found.culprits, found.stopped) == ((), "no figure of any of the first pairs: srun exited 1")


def test_more_faults_than_the_runs_can_tell_stay_unresolved_by_name():
    faults = tuple(Fault("node", f"n{number:03}") for number in range(0, 64, 2))
    fabric = SimulatedFabric(4, 16, 8, faults)
    found = fabric.search(LIMIT_GBS)
    assert len(found.steps) <= RUNS_MAX
    assert found.stopped == "the search ends after 40 runs"
    bad = {fault.node for fault in faults}
    assert {node for one in found.culprits for node in one.nodes} <= bad
    assert found.unresolved
    assert all(bad & set(group) for group in found.unresolved)


def test_a_figure_near_the_limit_is_measured_again():
    search = Search([["a", "b", "c", "d"]], limit=100.0)
    [first] = search.next_round()
    search.tell([Reading(98.0)])
    assert search.next_round() == (first,)
    search.tell([Reading(104.0)])
    assert search.next_round() == ()
    assert search.found.culprits == ()


def test_disjoint_halves_run_side_by_side():
    faults = (Fault("node", "n003", share=0.6), Fault("node", "n100", share=0.4))
    steps = SimulatedFabric(16, 32, 8, faults).search(LIMIT_GBS).steps
    rounds = [step.round for step in steps]
    assert len(set(rounds)) < len(rounds)
