"""What --limit selects: only nodes of the cluster file, and never none."""

from __future__ import annotations

import ClusterShell.NodeSet
import pytest
from ClusterShell.NodeUtils import GroupResolverConfig

from rackwright.errors import RackwrightError
from rackwright.model.selection import pick
from tests.factories import make_cluster, make_node

CLUSTER = make_cluster(*(make_node(f"gpu{number}", 10 + number) for number in (1, 2, 3)))
HINT = "nodes of the cluster: gpu[1-3]"


def names(nodeset):
    return [node.name for node in pick(CLUSTER, nodeset)]


@pytest.mark.parametrize(
    ("nodeset", "expected"),
    [
        (None, ["gpu1", "gpu2", "gpu3"]),
        ("gpu[3,1]", ["gpu1", "gpu3"]),
        ("gpu2,gpu2", ["gpu2"]),
        ("gpu[1-3]!gpu2", ["gpu1", "gpu3"]),
        ("gpu[1-2]&gpu[2-3]", ["gpu2"]),
    ],
)
def test_nodes_in_the_order_of_the_file(nodeset, expected):
    assert names(nodeset) == expected


@pytest.mark.parametrize("nodeset", ["", " ", "gpu[1-2]&gpu3", "gpu1!gpu1"])
def test_a_selection_of_no_node_is_an_error(nodeset):
    with pytest.raises(RackwrightError) as caught:
        names(nodeset)
    assert caught.value.message == f"`{nodeset}` selects no nodes."
    assert caught.value.hint == f"{HINT}; omit the selection to use all of them"


@pytest.fixture
def groups_of_this_machine(tmp_path, monkeypatch):
    """ClusterShell's own configuration, in which every group has nodes of the cluster."""
    file = tmp_path / "groups.conf"
    file.write_text("[Main]\ndefault: here\n[here]\nmap: echo gpu1\nall: echo gpu1,gpu2\nlist: echo all\n")
    monkeypatch.setattr(ClusterShell.NodeSet, "RESOLVER_STD_GROUP", GroupResolverConfig([str(file)]))
    assert set(ClusterShell.NodeSet.NodeSet("@all")) == {"gpu1"}


@pytest.mark.parametrize("nodeset", ["*", "@all", "@here:gpu", "gpu1,@login", "gpu*", "@*"])
def test_groups_of_the_control_node_are_never_used(groups_of_this_machine, nodeset):
    with pytest.raises(RackwrightError) as caught:
        names(nodeset)
    assert (
        caught.value.message == f"`{nodeset}`: node groups and wildcards are not supported; name the nodes."
    )
    assert caught.value.hint == HINT


def test_what_is_no_nodeset_and_what_is_no_node():
    with pytest.raises(RackwrightError, match=r"`gpu\[1` is not a valid NodeSet"):
        names("gpu[1")
    with pytest.raises(RackwrightError, match="login1 is not in cluster"):
        names("gpu1,login1")
