"""The section `fabrics:` and its cable list: what they mean, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.clusterfile.cable_list import read_cable_list
from rackwright.clusterfile.load import load_cluster
from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from tests.unit.clusterfile.base_file import change, problems_of

LEAVES = ("    switch: s[1-2]\n", '    switch: ["a[1-2]", "b[1-2]"]\n')
"""Two units of two nodes, with a leaf for each of their two rails."""
HEADER = "from,from_port,to,to_port"
LIST = "fabrics:\n  ib: {cables: cables.csv}\n"


def section(text: str) -> tuple[str, str]:
    return "ssh:\n  user", f"{text}\nssh:\n  user"


def fabric_of(folder: Path, text: str, *edits: tuple[str, str]) -> Fabric:
    path = folder / "demo.yaml"
    path.write_text(change(section(text), *edits))
    return load_cluster(path).fabrics["ib"]


def said(folder: Path, text: str, *edits: tuple[str, str]) -> list[tuple[int, str, str | None]]:
    """Line, message and hint of each mistake."""
    return [(one.line, one.message, one.hint) for one in problems_of(folder, change(section(text), *edits))]


def listed(folder: Path, *rows: str, header: str = HEADER) -> None:
    (folder / "cables.csv").write_text("\n".join((header, *rows)) + "\n")


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


def test_a_list_of_windows_reads_the_same(tmp_path):
    (tmp_path / "cables.csv").write_bytes(b"\xef\xbb\xbf" + f"{HEADER}\r\nw1,rail1,b1,40\r\n".encode())
    found = read_cable_list(tmp_path / "cables.csv", frozenset({"w1"}))
    assert found.mistakes == []
    assert [str(cable.far) for cable in found.cables] == ["b1 port 40"]


SECTION_LINE = 29
"""Of what stands first below `fabrics:`."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "fabrics:\n  ibb:\n",
            (SECTION_LINE, "There is no network ibb.", "did you mean `ib`?"),
        ),
        (
            "fabrics:\n  ib: {spines: t1}\n",
            (
                SECTION_LINE,
                "Nothing says how the leaves are cabled to these spines.",
                "e.g. `uplinks: {each: 8, leaf_first: 33}`, or a cable list under `cables`",
            ),
        ),
        (
            "fabrics:\n  ib: {uplinks: {each: 1, leaf_first: 33}}\n",
            (SECTION_LINE, "There are no spines.", "add `spines: spine[1-4]`"),
        ),
        (
            "fabrics:\n  ib: {ports: 1}\n",
            (
                SECTION_LINE,
                "w2 rail 0 -> a1 port 2 (by rule) ends in a1 port 2, but the switch has 1 ports.",
                "correct `leaf_ports`, `uplinks` or `ports`",
            ),
        ),
        (
            "fabrics:\n  ib: {spines: t1, uplinks: {each: 1, leaf_first: 2}}\n",
            (
                SECTION_LINE,
                "Two cables end in a1 port 2: w2 rail 0 -> a1 port 2 (by rule) and a1 port 2 -> t1 port 1 (by rule).",
                "correct the rule or the cable list",
            ),
        ),
        (
            "fabrics:\n  ib: {switches: {a9: {firmware: '1'}}}\n",
            (SECTION_LINE, "No cable of ib ends in a9.", "switches: a1, b1, a2, b2"),
        ),
        (
            "fabrics:\n  ib: {spines: w1, uplinks: {each: 1, leaf_first: 33}}\n",
            (SECTION_LINE, "w1 is the name of a switch and of a node.", "rename one of them"),
        ),
    ],
)
def test_mistakes_of_the_section(tmp_path, text, expected):
    assert expected in said(tmp_path, text, LEAVES)


def test_ports_without_a_cable_are_named_together(tmp_path):
    assert said(tmp_path, "fabrics:\n  ib:\n", ("    switch: s[1-2]\n", "")) == [
        (
            SECTION_LINE,
            "No cable is declared for rails 0, 1 of w[1-4].",
            "set `switch` on the group, or list the cables under `cables`",
        )
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("w1,rail5,b1,40", "cables.csv:2: w1 rail 5 has no address on ib."),
        ("w1,port1,b1,40", "cables.csv:2: port1 is not a rail of w1, e.g. rail0."),
        ("w1,rail0,b1,swp4", "cables.csv:2: swp4 is not a port of b1, e.g. 12."),
        ("w1,rail0,b1,0", "cables.csv:2: 0 is not a port of b1, e.g. 12."),
        ("w1,rail0,b1,\u0661", "cables.csv:2: \u0661 is not a port of b1, e.g. 12."),
        ("w1,rail0,w2,rail0", "cables.csv:2: w1 rail 0 and w2 rail 0 are both ports of nodes."),
        ("b1,4,b1,4", "cables.csv:2: b1 port 4 is at both ends."),
        (",,b1,4", "cables.csv:2: A cable has two ends, each with a name and a port."),
        ("w1,rail0,b1,4,K1", "cables.csv:2 has more columns than the first line."),
        ("w1,rail0", "cables.csv:2: A cable has two ends, each with a name and a port."),
        ('w1,rail0,b1,"4', "cables.csv is not a CSV file: unexpected end of data."),
    ],
)
def test_mistakes_of_a_row(tmp_path, row, message):
    listed(tmp_path, row)
    assert message in [one for _, one, _ in said(tmp_path, LIST, LEAVES)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("fast,4", "fast is not a speed in Gb/s, e.g. 400."),
        ("nan,4", "nan is not a speed in Gb/s, e.g. 400."),
        ("4_00,4", "4_00 is not a speed in Gb/s, e.g. 400."),
        ("-1,4", "-1 is not a speed in Gb/s, e.g. 400."),
        ("9999,4", "9999 is not a speed in Gb/s, e.g. 400."),
        ("400,3", "3 is not a number of lanes: 1, 2, 4, 8, 12."),
    ],
)
def test_speeds_and_lanes_of_a_row(tmp_path, value, message):
    listed(tmp_path, f"w1,rail0,b1,4,{value}", header=f"{HEADER},speed_gbps,lanes")
    found = read_cable_list(tmp_path / "cables.csv", frozenset({"w1"}))
    assert (found.cables, found.mistakes) == ([], [f"cables.csv:2: {message}"])


def test_two_rows_with_one_port_name_both_lines(tmp_path):
    listed(tmp_path, "w1,rail0,a1,9", "w2,rail0,a1,9")
    assert [message for _, message, _ in said(tmp_path, LIST, LEAVES)] == [
        "Two cables end in a1 port 9: w1 rail 0 -> a1 port 9 (cables.csv:2) and w2 rail 0 -> a1 port 9 (cables.csv:3)."
    ]


COLUMNS = "cables.csv: the first line names the columns from, from_port, to, to_port; this one"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", f"{COLUMNS} lacks from, from_port, to, to_port."),
        (b"from,to\nw1,b1\n", f"{COLUMNS} lacks from_port, to_port."),
        (f"{HEADER},colour\n".encode(), f"{COLUMNS} has colour."),
        (f"{HEADER},to\n".encode(), f"{COLUMNS} has one twice."),
        (b"from,\xff\n", "cables.csv is not a text in UTF-8."),
        (b"x" * 200_000, "cables.csv is not a CSV file: field larger than field limit (131072)."),
    ],
)
def test_lists_that_are_none(tmp_path, content, message):
    (tmp_path / "cables.csv").write_bytes(content)
    assert read_cable_list(tmp_path / "cables.csv", frozenset()).mistakes == [message]


def test_a_list_that_is_not_there_or_no_file(tmp_path):
    path = tmp_path / "cables.csv"
    assert read_cable_list(path, frozenset()).mistakes == [
        f"{path} cannot be read: No such file or directory."
    ]
    path.mkdir()
    assert read_cable_list(path, frozenset()).mistakes == [f"{path} is not a file."]
    assert read_cable_list(Path("/dev/zero"), frozenset()).mistakes == ["/dev/zero is not a file."]


def test_all_mistakes_of_a_list_are_named_at_once_up_to_a_limit(tmp_path):
    listed(tmp_path, *(f"w1,rail0,b1,x{n}" for n in range(25)))
    messages = [message for _, message, _ in said(tmp_path, LIST, LEAVES)]
    assert messages[0] == "cables.csv:2: x0 is not a port of b1, e.g. 12."
    assert messages[20] == "The cable list has 5 further mistakes."
    assert len(messages) == 21
