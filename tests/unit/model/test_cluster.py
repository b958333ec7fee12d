"""Which roles a node has."""

from __future__ import annotations

from rackwright.model.options import RoleOptions
from tests.factories import make_cluster, make_node


class Picky(RoleOptions):
    """Runs on one node."""

    name: str

    def runs_on(self, node):
        assert node.options == {}, "asked before the node has any role"
        return node.name == self.name


def test_a_node_has_the_options_of_the_roles_that_run_on_it():
    options = {"first": Picky(name="n1"), "second": Picky(name="n2"), "everywhere": RoleOptions()}
    made = make_cluster(
        *(make_node(name, number, options=options) for number, name in enumerate(("n1", "n2"), 1))
    )
    assert {node.name: sorted(node.options) for node in made.nodes} == {
        "n1": ["everywhere", "first"],
        "n2": ["everywhere", "second"],
    }
    assert [node.name for node in made.running("second")] == ["n2"]
    assert made.running("third") == ()
    assert made.by_name["n1"].offers(Picky) == Picky(name="n1")
    assert make_node("n3", 3, options=options).offers(Picky) is None
