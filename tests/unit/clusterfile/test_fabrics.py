"""The section `fabrics:`: ports by rule, uplinks, rows that win over rules, and what is said of mistakes."""

from __future__ import annotations

from time import process_time

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.model.fabric import Cable, NodePort, SwitchPort
from tests.unit.clusterfile.base_file import change, problems_of
from tests.unit.clusterfile.fabric_files import (
    HEADER,
    LEAVES,
    LIST,
    NO_LEAVES,
    SECTION_LINE,
    fabric_of,
    listed,
    said,
    section,
)


def test_without_the_section_no_cabling_is_declared(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(change())
    assert load_cluster(path).fabrics == {}


def test_nodes_take_the_ports_of_their_leaves_in_file_order(tmp_path):
    fabric = fabric_of(tmp_path, "fabrics:\n  ib:\n", LEAVES)
    assert (fabric.leaves, fabric.spines, fabric.rails) == (("a1", "b1", "a2", "b2"), (), 2)
    places = {(str(cable.near), str(cable.far)) for cable in fabric.cables}
    assert places == {
        ("w1 rail 0", "a1 port 1"), ("w1 rail 1", "b1 port 1"), ("w2 rail 0", "a1 port 2"), ("w2 rail 1", "b1 port 2"),
        ("w3 rail 0", "a2 port 1"), ("w3 rail 1", "b2 port 1"), ("w4 rail 0", "a2 port 2"), ("w4 rail 1", "b2 port 2"),
    }  # fmt: skip
    assert fabric.rails_of("b2") == (1,)


def test_a_single_leaf_takes_every_rail(tmp_path):
    fabric = fabric_of(tmp_path, "fabrics:\n  ib: {leaf_ports: {first: 5, step: 2}}\n")
    ends = [str(cable.far) for cable in fabric.cables if isinstance(cable.near, NodePort)]
    assert ends[:4] == ["s1 port 5", "s1 port 7", "s1 port 9", "s1 port 11"]


def test_each_leaf_is_cabled_to_each_spine(tmp_path):
    text = "fabrics:\n  ib: {spines: 't[1-2]', uplinks: {each: 2, leaf_first: 33}, lanes: 4}\n"
    fabric = fabric_of(tmp_path, text, LEAVES)
    of_b1 = [
        (str(one.near), str(one.far), one.lanes) for one in fabric.cables if str(one.near).startswith("b1 ")
    ]
    assert of_b1 == [
        ("b1 port 33", "t1 port 3", 4), ("b1 port 34", "t1 port 4", 4),
        ("b1 port 35", "t2 port 3", 4), ("b1 port 36", "t2 port 4", 4),
    ]  # fmt: skip
    assert fabric.spines_of["b1"] == ("t1", "t2")


def test_rows_of_the_list_win_over_rules(tmp_path):
    listed(tmp_path, "w1,rail 1,b1,40,200,2,K17", header=f"{HEADER},speed_gbps,lanes,label")
    fabric = fabric_of(tmp_path, LIST, LEAVES)
    there = SwitchPort("b1", 40)
    assert fabric.by_end[NodePort("w1", 1)] == Cable(
        NodePort("w1", 1), there, 200.0, 2, "K17", "cables.csv:2"
    )
    assert fabric.leaf_of[NodePort("w2", 1)] == SwitchPort("b1", 2)
    assert len(fabric.cables) == 8


def test_a_list_may_declare_everything_in_any_direction_and_order(tmp_path):
    rows = [f"leaf{1 + rail},{node},w{node},{rail}" for node in (4, 3, 2, 1) for rail in (1, 0)]
    listed(tmp_path, "", "# uplinks", "spine1,1,leaf1,36", *rows, 'leaf2,36,"spine1",2')
    fabric = fabric_of(tmp_path, LIST, ("    switch: s[1-2]\n", ""))
    assert (set(fabric.leaves), fabric.spines) == ({"leaf1", "leaf2"}, ("spine1",))
    assert [str(cable.near) for cable in fabric.cables[:3]] == ["w1 rail 0", "w1 rail 1", "w2 rail 0"]
    uplinks = {(str(cable.near), str(cable.far)) for cable in fabric.cables if cable.uplink}
    assert uplinks == {("leaf1 port 36", "spine1 port 1"), ("leaf2 port 36", "spine1 port 2")}


def test_rules_cable_the_leaves_of_a_list_too(tmp_path):
    listed(tmp_path, *(f"w{node},{rail},leaf{rail},{node}" for node in (1, 2, 3, 4) for rail in (0, 1)))
    text = "fabrics:\n  ib: {spines: t1, uplinks: {each: 1, leaf_first: 33}, cables: cables.csv}\n"
    fabric = fabric_of(tmp_path, text, NO_LEAVES)
    assert fabric.leaves == ("leaf0", "leaf1")
    assert fabric.by_end[SwitchPort("t1", 2)].near == SwitchPort("leaf1", 33)


def test_a_row_between_switches_takes_the_place_of_the_rule_at_both_its_ports(tmp_path):
    listed(tmp_path, "t1,1,b2,60")
    text = "fabrics:\n  ib: {spines: t1, uplinks: {each: 1, leaf_first: 33}, cables: cables.csv}\n"
    up = [
        (str(one.near), str(one.far), one.origin)
        for one in fabric_of(tmp_path, text, LEAVES).cables
        if one.uplink
    ]
    assert up == [
        ("b1 port 33", "t1 port 2", "by rule"),
        ("a2 port 33", "t1 port 3", "by rule"),
        ("b2 port 33", "t1 port 4", "by rule"),
        ("b2 port 60", "t1 port 1", "cables.csv:2"),
    ]


def test_a_leaf_whose_nodes_have_all_moved_keeps_its_uplinks(tmp_path):
    listed(tmp_path, "w1,0,b1,11", "w2,0,b1,12")
    text = "fabrics:\n  ib: {spines: t1, uplinks: {each: 1, leaf_first: 33}, cables: cables.csv}\n"
    fabric = fabric_of(tmp_path, text, LEAVES)
    assert (fabric.leaves, fabric.rails_of("a1")) == (("a1", "b1", "a2", "b2"), ())
    assert fabric.by_end[SwitchPort("t1", 1)].near == SwitchPort("a1", 33)
    listed(tmp_path, "w1,0,b1,11", "w2,0,b1,12")
    assert fabric_of(tmp_path, LIST, LEAVES).leaves == ("b1", "a2", "b2")


def test_a_node_may_be_cabled_to_a_spine_by_a_row(tmp_path):
    listed(tmp_path, "w1,0,t1,40")
    text = "fabrics:\n  ib: {spines: t1, uplinks: {each: 1, leaf_first: 33}, cables: cables.csv}\n"
    fabric = fabric_of(tmp_path, text, LEAVES)
    assert (fabric.leaves, fabric.spines) == (("a1", "b1", "a2", "b2"), ("t1",))


def test_a_thousand_nodes_with_eight_rails_take_no_time(tmp_path):
    """Less than a second; with a pass over all ports for each uplink it was 23."""
    leaves = ", ".join(f'"l{rail}-[1-32]"' for rail in range(8))
    edits = (
        ("w[1-4]", "w[0001-1024]"),
        ("cidr: 10.1.0.0/24", "cidr: 10.1.0.0/16"),
        ("cidr: 10.3.0.0/24\n    rails: 2\n    rail_prefix: 25", "cidr: 10.128.0.0/13\n    rails: 8"),
        ("ib: 10.3.0.11", "ib: 10.128.0.11"),
        ("    switch: s[1-2]\n", f"    switch: [{leaves}]\n"),
    )
    before = process_time()
    fabric = fabric_of(
        tmp_path, "fabrics:\n  ib: {spines: 't[1-32]', uplinks: {each: 1, leaf_first: 33}}\n", *edits
    )
    assert len(fabric.cables) == 2 * 1024 * 8
    assert process_time() - before < 10


def test_speeds_are_the_rows_then_the_sections_then_the_skus(tmp_path):
    listed(tmp_path, "w1,0,a1,1,200", "w2,0,a1,2,", header=f"{HEADER},speed_gbps")
    text = "fabrics:\n  ib: {cables: cables.csv, speed_gbps: 100, lanes: 4}\n"
    of = fabric_of(tmp_path, text, LEAVES).by_end
    ends = [of[NodePort(node, 0)] for node in ("w1", "w2", "w3")]
    assert [(one.speed_gbps, one.lanes) for one in ends] == [(200.0, 4), (100.0, 4), (100.0, 4)]
    port = "{kind: infiniband, speed_gbps: 400, purpose: fabric, rail: %d}"
    nics = f"    nics: [{port % 0}, {port % 1}]\n"
    edits = (
        ("    memory_mib: 65536\n", f"    memory_mib: 65536\n{nics}"),
        ("    rack: r[1-2]", "    sku: own-node\n    rack: r[1-2]"),
    )
    assert fabric_of(tmp_path, "fabrics:\n  ib:\n", LEAVES, *edits).cables[0].speed_gbps == 400


def test_the_management_network_has_the_switch_of_groups_without_a_fabric(tmp_path):
    fabric = fabric_of(
        tmp_path,
        "fabrics:\n  mgmt:\n",
        ("addresses: {mgmt: 10.1.0.10}", "addresses: {mgmt: 10.1.0.10}\n    switch: m1"),
        ("      ib: 10.3.0.11\n", ""),
        network="mgmt",
    )
    assert fabric.leaves == ("m1", "s1", "s2")


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        (
            "ib: {spines: t1}",
            "The cables from the leaves to these spines are not declared.",
            "add e.g. `uplinks: {each: 8, leaf_first: 33}`, or a cable list under `cables`",
        ),
        ("ib: {uplinks: {each: 1, leaf_first: 33}}", "`uplinks` needs spines.", "add e.g. `spines: spine[1-4]`"),
        ("ib: {spines: 't[1-', uplinks: {each: 1, leaf_first: 33}}", "Unbalanced brackets in the range.", "e.g. `gpu[001-128]`"),
        (
            "ib: {spines: T1, uplinks: {each: 1, leaf_first: 33}}",
            "A name may contain only lower-case letters, digits and inner hyphens, at most 40 characters.",
            None,
        ),
        ("ib: {spines: a1, uplinks: {each: 1, leaf_first: 33}}", "a1 is a leaf (the `switch` of a group), not a spine.", "remove it from `spines`"),
        ("ib: {spines: [t1]}", "Expected text.", None),
        ("ib: {spines: t1, uplinks: 8}", "Expected a mapping.", "write `key: value` lines below it"),
        ("ib: {spines: t1, uplinks: {each: 1, leaf_first: 0}}", "The number must be at least 1.", None),
        ("ib: {spines: w1, uplinks: {each: 1, leaf_first: 33}}", "w1 is the name of both a switch and a node.", "rename one of them"),
        (
            "ib: {spines: t1, uplinks: {each: 1, leaf_first: 2}, leaf_ports: {first: 1, step: 9}, ports: 9}",
            "w2 rail 0 -> a1 port 10 (by rule): a1 has only 9 ports.",
            "correct `leaf_ports`, `uplinks`, `ports` or the cable list",
        ),
        ("ib: {leaf_ports: 0}", "The number must be at least 1.", None),
        ("ib: {switches: {a9: {firmware: '1'}}}", "No cable of ib ends in a9.", "switches: a1, b1, a2, b2"),
        ("ib: {switches: {a1: }}", "Expected a mapping.", "write `key: value` lines below it"),
        ("ib: {switches: {a1: {guid: '12'}}}", "Not a GUID: 16 hexadecimal digits in lower case.", "e.g. `0x0002c903000e0b72`"),
        ("ib: {switches: {a1: {guid: 0x0002c903000e0b72}}}", "Expected text.", "put it in quotes"),
        (
            "ib: {switches: {a1: {guid: '0x0002c903000e0b72'}, b1: {guid: '0002c903000e0b72'}}}",
            "a1 already has this GUID.",
            "each switch has a unique GUID",
        ),
        (
            "ib: {switches: {a1: {description: x}, b1: {description: x}}}",
            "a1 already has this description.",
            "each switch has a unique description",
        ),
        (
            "ib: {port_name: swp}",
            "Not a rule for names of ports: it contains `{port}` once, with letters, digits, spaces, `_`, `.`, `/` and `-`.",
            "e.g. `swp{port}`",
        ),
        ("ib: {lanes: 3}", "Not one of: 1, 2, 4, 8 or 12.", None),
        ("ib: {speed_gbps: .nan}", "Expected a number.", None),
        ("ib: {speed_gbps: -1}", "The number must be more than 0.", None),
        ("ib: {max_ber: 1}", "The number must be less than 1.", None),
        ("ib: {cables: 5}", "Expected a path.", "e.g. `/scratch`"),
        ("ib: {spine: t1}", "Unknown key `spine`.", "did you mean `spines`?"),
        ("ib: [a1]", "Expected a mapping.", "write `key: value` lines below it"),
        ("ibb:", "Network ibb does not exist.", "did you mean `ib`?"),
        (
            "store:",
            "No node has an address on store.",
            "give a group an address on it: `addresses: {store: ...}`, or remove the section",
        ),
    ],
)  # fmt: skip
def test_each_mistake_is_named_once_with_its_line(tmp_path, entry, message, hint):
    found = said(tmp_path, f"fabrics:\n  {entry}\n", LEAVES)
    assert (SECTION_LINE, message, hint) in found
    assert len(found) == 1 or "by rule" in message  # that one is named for each leaf


def test_the_section_is_a_mapping(tmp_path):
    expected = (28, "Expected a mapping.", "write `key: value` lines below it")
    assert said(tmp_path, "fabrics: [ib]\n", LEAVES) == [expected]


def test_one_port_for_a_node_and_an_uplink(tmp_path):
    text = "fabrics:\n  ib:\n    spines: t1\n    uplinks: {each: 1, leaf_first: 2}\n"
    assert said(tmp_path, text, LEAVES)[0] == (
        31,
        "Two cables end in a1 port 2: w2 rail 0 -> a1 port 2 (by rule) and a1 port 2 -> t1 port 1 (by rule).",
        "correct the rule or the cable list",
    )


def test_mistakes_of_one_file_are_named_at_once(tmp_path):
    listed(tmp_path, "w1,rail9,b1,40")
    text = "fabrics:\n  ib:\n    cables: cables.csv\n    ports: many\n    speed_gbps: 0\n  ibb: {}\n"
    assert said(tmp_path, text, LEAVES) == [
        (30, "cables.csv:2: w1 rail 9 has no address on ib.", "rails of w1: 0, 1"),
        (31, "Expected a whole number.", None),
        (32, "The number must be more than 0.", None),
        (33, "Network ibb does not exist.", "did you mean `ib`?"),
    ]


def test_what_follows_from_a_wrong_network_is_not_said(tmp_path):
    text = change(section("fabrics:\n  ib: {spines: t1}\n"), ("rails: 2", "rails: two"))
    assert "fabrics" not in " ".join(one.path for one in problems_of(tmp_path, text))


def test_ports_that_a_switch_does_not_have_are_listed_up_to_a_limit(tmp_path):
    text = "fabrics:\n  ib: {ports: 1}\n"
    found = said(tmp_path, text, LEAVES, ("w[1-4]", "w[1-40]"))
    assert len(found) == 21
    assert found[-1][1] == "56 more cables end in ports that are taken or do not exist."


@pytest.mark.parametrize(
    ("edits", "named", "hint"),
    [
        (
            ("    switch: s[1-2]\n", ""),
            "rails 0, 1",
            "set `switch` on the group, or list the cables under `cables`",
        ),
        (
            ("      ib: 10.3.0.11\n", "      ib: 10.3.0.11\n      two: 10.4.0.11\n"),
            "rails 0, 1",
            "the group's `switch` applies to its fabric network; list the cables of this one under `cables`",
        ),
    ],
)
def test_ports_without_a_cable_are_named_together(tmp_path, edits, named, hint):
    network = ("  ib:\n    purpose", "  two: {purpose: fabric, cidr: 10.4.0.0/24}\n  ib:\n    purpose")
    extra = (network,) if "two" in edits[1] else ()
    found = said(tmp_path, "fabrics:\n  ib:\n", edits, *extra)
    assert [one[1:] for one in found] == [(f"No cable is declared for {named} of w[1-4].", hint)]


def test_a_spine_without_a_cable(tmp_path):
    listed(tmp_path, "a1,33,t1,1")
    text = "fabrics:\n  ib: {spines: 't[1-3]', cables: cables.csv}\n"
    assert said(tmp_path, text, LEAVES) == [
        (SECTION_LINE, "No cable is declared for t[2-3].", "list its cables, or remove it")
    ]
