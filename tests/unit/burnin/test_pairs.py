"""Pairing and triage, over every size and every single bad node."""

from itertools import combinations

import pytest

from rackwright.burnin.pairs import PairFigure, pair_rounds, triage


@pytest.mark.parametrize("count", range(2, 40))
def test_pairs_of_a_round_are_disjoint_and_none_comes_twice(count):
    nodes = [f"n{number}" for number in range(count)]
    rounds = pair_rounds(nodes)
    for pairs in rounds:
        names = [name for pair in pairs for name in pair]
        assert len(names) == len(set(names))
    played = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert len(played) == len(set(played))
    partners = {node: {other for pair in played if node in pair for other in pair - {node}} for node in nodes}
    assert min(map(len, partners.values())) >= min(2, count - 1)


def test_too_few_nodes_make_no_pairs():
    assert pair_rounds([]) == []
    assert pair_rounds(["n1"]) == []


@pytest.mark.parametrize("count", range(3, 20))
def test_one_bad_node_is_the_one_suspect(count):
    nodes = [f"n{number:02}" for number in range(count)]
    for bad in nodes:
        figures = [
            PairFigure(pair, 20.0 if bad in pair else 40.0 + index % 3)
            for index, pair in enumerate(pair for pairs in pair_rounds(nodes) for pair in pairs)
        ]
        found = triage(figures)
        assert found.suspects == (bad,)
        assert bad in found.slowest.nodes


def test_no_suspect_when_all_are_alike():
    figures = [PairFigure(pair, 40.0) for pair in combinations("abcd", 2)]
    found = triage(figures)
    assert (found.suspects, found.slow) == ((), ())
    assert found.slowest.busbw_gbs == 40.0


def test_all_slow_against_the_floor_are_all_suspects():
    figures = [PairFigure(pair, 40.0) for pair in combinations("abc", 2)]
    assert triage(figures, floor_gbs=50).suspects == ("a", "b", "c")


def test_a_pair_without_a_figure_is_the_slowest():
    figures = [
        PairFigure(("a", "b"), 1.0),
        PairFigure(("b", "c"), None, "srun exited 1"),
        PairFigure(("a", "c"), 40.0),
    ]
    found = triage(figures)
    assert found.slowest.nodes == ("b", "c")
    assert found.suspects == ("b",)


def test_two_nodes_name_a_pair_and_accuse_nobody():
    found = triage([PairFigure(("a", "b"), 1.0)], floor_gbs=2.0)
    assert found.slowest.nodes == ("a", "b")
    assert found.suspects == ()
    assert triage([]).slowest is None
