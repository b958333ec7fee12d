"""The cable list: what a row means, and every mistake in it with its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rackwright.clusterfile.cable_list import Names, read_cable_list
from rackwright.clusterfile.csv_table import MAX_BYTES
from rackwright.model.fabric import Cable, NodePort, SwitchPort
from tests.unit.clusterfile.fabric_files import (
    HEADER,
    LEAVES,
    LIST,
    SECTION_LINE,
    fabric_of,
    listed,
    said,
)

NAMES = Names("ib", ("w1", "w2"), (NodePort("w1", 0), NodePort("w1", 1)))
COLUMNS_HINT = f"start the list with the header `{HEADER}`; optional: speed_gbps, lanes, label"
QUOTES_HINT = 'quote text that contains commas or quotes, and double each quote in it: "K17 ""spare"""'
UPLINKS = "fabrics:\n  ib: {spines: t1, uplinks: {each: 1, leaf_first: 33}, cables: cables.csv}\n"


def read(folder: Path, content: bytes) -> tuple[list[Cable], list[tuple[str, str | None]]]:
    path = folder / "cables.csv"
    path.write_bytes(content)
    found = read_cable_list(path, NAMES)
    return found.cables, [(one.message, one.hint) for one in found.mistakes]


ROW = Cable(NodePort("w1", 1), SwitchPort("b1", 40), 200.0, 4, "K17", "cables.csv:2")


@pytest.mark.parametrize(
    "content",
    [
        b"from,from_port,to,to_port,speed_gbps,lanes,label\nw1,rail1,b1,40,200,4,K17\n",
        b"\xef\xbb\xbffrom,from_port,to,to_port,speed_gbps,lanes,label\r\nw1,RAIL_1,b1,40,200.0,4,K17\r\n",
        b"from,from_port,to,to_port,speed_gbps,lanes,label\rw1,1,b1,40,200,4,K17\r",
        b"Label, Lanes, Speed_Gbps, To, To_port, From, From_port\n K17 , 4, 200, w1, rail 1, b1, 40",
        b'"from","from_port","to","to_port","speed_gbps","lanes","label"\n"b1","40","w1","1","200","4","K17"',
        b"from,from_port,to,to_port,speed_gbps,lanes,label,,\nw1,rail-1,b1,40,200,4,K17,,\n,,,\n\n  \n# end",
    ],
)
def test_a_row_as_programs_write_it(tmp_path, content):
    assert read(tmp_path, content) == ([ROW], [])


def test_comments_and_blank_lines_count_as_lines(tmp_path):
    content = f'# of the builder\n\n{HEADER},label\n\n  # w1\nw1,rail0,b1,4,"K1, ""spare"" \u00e9"\n'
    [cable], mistakes = read(tmp_path, content.encode())
    assert (cable.label, cable.origin, mistakes) == ('K1, "spare" \u00e9', "cables.csv:6", [])


def test_a_list_without_rows_declares_nothing(tmp_path):
    assert read(tmp_path, HEADER.encode()) == ([], [])


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"", "cables.csv is empty.", COLUMNS_HINT),
        (b"\n# later\n", "cables.csv is empty.", COLUMNS_HINT),
        (
            b"from,to\nw1,b1\n",
            "cables.csv:1: Missing columns in the header: from_port, to_port.",
            COLUMNS_HINT,
        ),
        (
            b"w1,0,b1,4\n",
            "cables.csv:1: Missing columns in the header: from, from_port, to, to_port.",
            COLUMNS_HINT,
        ),
        (
            b"#\nfrom;from_port;to;to_port\n",
            "cables.csv:2: Missing columns in the header: from, from_port, to, to_port.",
            "separate the columns with commas",
        ),
        (f"{HEADER},labels\n".encode(), "cables.csv:1: Unknown column labels.", "did you mean `label`?"),
        (f"{HEADER},to\n".encode(), "cables.csv:1: The header has to twice.", "remove one"),
        (
            f"{HEADER},,label\n".encode(),
            "cables.csv:1: A column has no name.",
            "columns: from, from_port, to, to_port, speed_gbps, lanes, label",
        ),
        (b'from,"to\n', "cables.csv:1: The line has an unclosed quote.", QUOTES_HINT),
        (b"x" * 200_000, "cables.csv:1: The line is longer than 1000 characters.", None),
        (
            f"{HEADER}\r\nw1,0,b1,4\r\nw1,1,b1,\xe9".encode("latin-1"),
            "cables.csv:3: The file is not valid UTF-8: byte 0xe9 is invalid.",
            "save the file as UTF-8",
        ),
        (
            HEADER.encode("utf-16"),
            "cables.csv:1: The file is not valid UTF-8: byte 0xff is invalid.",
            "save the file as UTF-8",
        ),
        (b"#" * (MAX_BYTES + 1), "cables.csv is larger than 16 MiB.", None),
    ],
    ids=range(13),
)
def test_files_that_are_no_list(tmp_path, content, message, hint):
    assert read(tmp_path, content) == ([], [(message, hint)])


def test_a_list_that_is_not_there_or_no_file(tmp_path):
    path = tmp_path / "cables.csv"
    relative = "the path is relative to the cluster file"
    assert said(tmp_path, LIST, LEAVES) == [(SECTION_LINE, f"{path} does not exist.", relative)]
    path.mkdir()
    assert said(tmp_path, LIST, LEAVES) == [
        (SECTION_LINE, f"{path} is not a file.", "name a file in this directory")
    ]
    path.rmdir()
    os.mkfifo(path)
    assert said(tmp_path, LIST, LEAVES) == [(SECTION_LINE, f"{path} is not a file.", None)]
    path.unlink()
    path.symlink_to(path)
    assert said(tmp_path, LIST, LEAVES) == [
        (SECTION_LINE, f"Cannot read {path}: too many levels of symbolic links.", None)
    ]
    long = tmp_path / ("long-" * 60)
    [mistake] = read_cable_list(long, NAMES).mistakes
    assert mistake.message == f"Cannot read {long}: file name too long."


SWITCH_HINT = "switch ports are numbered from 1, e.g. `12`"


@pytest.mark.parametrize(
    ("row", "message", "hint"),
    [
        ("w1,rail5,b1,40", "w1 rail 5 has no address on ib.", "rails of w1: 0, 1"),
        ("w2,0,b1,40", "w2 rail 0 has no address on ib.", None),
        ("w1,port1,b1,40", "port1 is not a rail of w1.", "e.g. `rail0`"),
        ("w1,\u0661,b1,40", "\u0661 is not a rail of w1.", "e.g. `rail0`"),
        ("w1,rail0,b1,swp4", "swp4 is not a valid port of b1.", SWITCH_HINT),
        ("w1,rail0,b1,\u0661", "\u0661 is not a valid port of b1.", SWITCH_HINT),
        ("w1,rail0,b1,10000", "10000 is not a valid port of b1.", SWITCH_HINT),
        ("W1,rail0,b1,4", "Unknown node W1.", "did you mean `w1`?"),
        ("w9,rail0,b1,4", "Unknown node w9.", "switch ports are numbered from 1"),
        (
            "w9,3,b1,4",
            "Unknown node w9.",
            "declare a switch that only the list names: `switches: {w9: {}}`",
        ),
        (
            "w1,rail0,Leaf 1,4",
            "Leaf 1 is not a valid switch name.",
            "a name may contain only lower-case letters, digits and inner hyphens, at most 40 characters",
        ),
        ("w1,rail0,w1,rail1", "w1 rail 0 and w1 rail 1 are both node ports.", "one end of a node's cable must be a switch"),
        ("b1,4,b1,5", "Both ends of the cable are on b1.", "a cable connects two different switches"),
        (",,b1,4", "A cable needs a name and a port at both ends.", "e.g. `gpu017,rail3,su1-leaf4,12`"),
        ("w1,rail0,b1", "A cable needs a name and a port at both ends.", "e.g. `gpu017,rail3,su1-leaf4,12`"),
        ("w1,rail0,b1,4,,,K1,2", "The row has 8 columns, but the header has 7.", "quote text that contains commas"),
        ('w1,rail0,b1,"4', "The line has an unclosed quote.", QUOTES_HINT),
        ('w1,rail0,b1,"4"x', "A quote closes before the end of the cell.", QUOTES_HINT),
        ("w1,rail0,b1,4,,," + "x" * 65, "The label is longer than 64 characters.", "shorten it"),
        ("w1,rail0,b1,4,,,\x1b[2J", "The column label contains the control character \\x1b.", "remove it"),
        ("w1,rail0,b1,4,,,x\u2028y", "The column label contains a line break.", "write it on one line, in quotes"),
        (
            "w1,rail0,b1\u202e,4",
            "The column to contains the invisible character \\u202e.",
            "remove it; retype the text if it was pasted",
        ),
        ("w1,rail0,b1,4,,," + "x" * 1000, "The line is longer than 1000 characters.", None),
        ("w1,rail0,b1,4,fast", "fast is not a valid speed in Gb/s.", "e.g. `400`"),
        ("w1,rail0,b1,4,nan", "nan is not a valid speed in Gb/s.", "e.g. `400`"),
        ("w1,rail0,b1,4,4_00", "4_00 is not a valid speed in Gb/s.", "e.g. `400`"),
        ("w1,rail0,b1,4,-1", "-1 is not a valid speed in Gb/s.", "e.g. `400`"),
        ("w1,rail0,b1,4,0", "0 is not a valid speed in Gb/s.", "e.g. `400`"),
        ("w1,rail0,b1,4,\u0661", "\u0661 is not a valid speed in Gb/s.", "e.g. `400`"),
        ("w1,rail0,b1,4,9999", "9999 is not a valid speed in Gb/s.", "e.g. `400`"),
        ("w1,rail0,b1,4,400,3", "3 is not a valid number of lanes.", "use one of: 1, 2, 4, 8, 12"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named_and_the_next_is_read(tmp_path, row, message, hint):
    content = f"{HEADER},speed_gbps,lanes,label\n\n{row}\nw1,1,b1,9\n"
    cables, mistakes = read(tmp_path, content.encode())
    assert mistakes == [(f"cables.csv:3: {message}", hint)]
    assert [cable.origin for cable in cables] == ["cables.csv:4"]


def test_a_row_that_is_there_twice(tmp_path):
    _, mistakes = read(tmp_path, f"{HEADER}\nw1,0,b1,4\nb1,4,w1,rail0\n".encode())
    assert mistakes == [("cables.csv:3: This cable is already on line 2.", "remove one of the rows")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ("w1,rail0,a1,9", "w2,rail0,a1,9"),
            "a1 port 9: w1 rail 0 -> a1 port 9 (cables.csv:2) and w2 rail 0 -> a1 port 9 (cables.csv:3).",
        ),
        (
            ("w1,rail0,a1,9", "w1,rail0,a2,9"),
            "w1 rail 0: w1 rail 0 -> a1 port 9 (cables.csv:2) and w1 rail 0 -> a2 port 9 (cables.csv:3).",
        ),
        (
            ("w1,rail0,a1,2",),
            "a1 port 2: w1 rail 0 -> a1 port 2 (cables.csv:2) and w2 rail 0 -> a1 port 2 (by rule).",
        ),
    ],
)
def test_a_port_with_two_cables_is_named_with_both(tmp_path, rows, message):
    listed(tmp_path, *rows)
    hint = "correct the rule or the cable list"
    assert [one[1:] for one in said(tmp_path, LIST, LEAVES)] == [(f"Two cables end in {message}", hint)]


@pytest.mark.parametrize(
    ("text", "row", "message", "hint"),
    [
        (LIST, "w1,rail0,bb1,4", "Unknown switch bb1.", "did you mean `b1`?"),
        (UPLINKS, "a1,60,tt1,60", "Unknown switch tt1.", "did you mean `t1`?"),
        (
            UPLINKS,
            "a1,60,core-switch,60",
            "Unknown switch core-switch.",
            "declare a switch that only the list names: `switches: {core-switch: {}}`",
        ),
        (
            LIST,
            "core1,1,t1,2",
            "Neither core1 nor t1 is a leaf: no node is cabled to them.",
            "declare only cables between leaves and spines",
        ),
    ],
)
def test_switches_that_are_not_declared(tmp_path, text, row, message, hint):
    listed(tmp_path, row)
    assert said(tmp_path, text, LEAVES) == [(SECTION_LINE, f"cables.csv:2: {message}", hint)]


def test_a_switch_of_the_list_alone_is_declared_under_switches(tmp_path):
    listed(tmp_path, "w1,rail0,spare1,4", "spare1,33,t1,9")
    text = UPLINKS.replace("spines: t1", "spines: t1, switches: {spare1: {}}")
    fabric = fabric_of(tmp_path, text, LEAVES)
    assert fabric.leaves == ("a1", "b1", "a2", "b2", "spare1")
    assert fabric.by_end[SwitchPort("t1", 9)].near == SwitchPort("spare1", 33)


def test_a_row_in_a_port_that_the_switch_does_not_have(tmp_path):
    listed(tmp_path, "w1,rail0,a1,41")
    assert said(tmp_path, "fabrics:\n  ib: {cables: cables.csv, ports: 40}\n", LEAVES) == [
        (
            SECTION_LINE,
            "w1 rail 0 -> a1 port 41 (cables.csv:2): a1 has only 40 ports.",
            "correct `leaf_ports`, `uplinks`, `ports` or the cable list",
        )
    ]


def test_all_mistakes_of_a_list_are_named_at_once_up_to_a_limit(tmp_path):
    listed(tmp_path, *(f"w1,rail0,b1,x{n}" for n in range(24)), "w1,rail9,b1,4")
    messages = [message for _, message, _ in said(tmp_path, LIST, LEAVES)]
    assert messages[:2] == [
        "cables.csv:2: x0 is not a valid port of b1.",
        "cables.csv:3: x1 is not a valid port of b1.",
    ]
    assert messages[20:] == ["The cable list has 5 more mistakes."]
