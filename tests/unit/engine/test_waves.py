"""Which nodes go together, and when to stop."""

from __future__ import annotations

import pytest

from rackwright.engine.waves import must_stop, plan_waves
from rackwright.model.settings import Waves
from rackwright.model.types import NodeRole
from tests.factories import make_node

HEAD = make_node("head1", 10, NodeRole.HEAD)
WORKERS = [
    make_node(f"w{number}", 20 + number, rack=f"r{(number - 1) // 4 + 1}", switch=f"leaf{number % 2}")
    for number in range(1, 11)
]
NODES = [HEAD, *WORKERS]


def _names(first, last):
    return tuple(f"w{number}" for number in range(first, last + 1))


@pytest.mark.parametrize(
    ("policy", "waves"),
    [
        ({}, [("head1", *_names(1, 10))]),
        ({"canary": 2}, [_names(1, 2), ("head1", *_names(3, 10))]),
        ({"size": 4}, [("head1", *_names(1, 3)), _names(4, 7), _names(8, 10)]),
        ({"size": "50%"}, [("head1", *_names(1, 4)), _names(5, 9), _names(10, 10)]),
        ({"size": "1%"}, [("head1",), *[_names(n, n) for n in range(1, 11)]]),
        ({"order": "heads-first"}, [("head1",), _names(1, 10)]),
        ({"order": "workers-first", "canary": 1}, [_names(1, 1), _names(2, 10), ("head1",)]),
        (
            {"size": "rack", "order": "heads-first"},
            [("head1",), _names(1, 4), _names(5, 8), _names(9, 10)],
        ),
        (
            {"size": "switch", "order": "heads-first"},
            [("head1",), ("w1", "w3", "w5", "w7", "w9"), ("w2", "w4", "w6", "w8", "w10")],
        ),
    ],
)
def test_waves(policy, waves):
    assert plan_waves(NODES, Waves(**policy)) == waves


def test_every_node_goes_exactly_once():
    for policy in ({"size": 3, "canary": 2}, {"size": "rack"}, {"size": "7%", "order": "workers-first"}):
        flat = [name for wave in plan_waves(NODES, Waves(**policy)) for name in wave]
        assert sorted(flat) == sorted(node.name for node in NODES)


def test_no_nodes_no_waves():
    assert plan_waves([], Waves(canary=2, size=3)) == []


@pytest.mark.parametrize(
    ("stop_after", "outcomes", "stops"),
    [
        (None, [False] * 10, False),
        (1, [True, True], False),
        (1, [True, False], True),
        (3, [False, False, True], False),
        (3, [False, False, False], True),
        ("10%", [False, *[True] * 9], False),
        ("10%", [False, False, *[True] * 8], True),
        ("10%", [], False),
    ],
)
def test_when_to_stop(stop_after, outcomes, stops):
    assert (must_stop(Waves(stop_after=stop_after), outcomes) is not None) is stops


def test_why_it_stops():
    said = must_stop(Waves(stop_after="10%"), [False, True])
    assert said == "1 of 2 nodes failed (waves.stop_after is 10%)"
