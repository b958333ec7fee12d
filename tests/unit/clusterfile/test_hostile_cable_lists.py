"""Cable lists that are all wrong: read quickly, and refused in words."""

from __future__ import annotations

import random

import pytest

from rackwright.clusterfile.cable_list import MAX_MISTAKES, Names, read_cable_list
from tests.unit.clusterfile.fabric_files import HEADER, LEAVES, LIST, NO_LEAVES, listed, said

UPLINKS = "fabrics:\n  ib: {spines: t1, uplinks: {each: 1, leaf_first: 33}, cables: cables.csv}\n"


def test_hints_are_looked_for_only_where_they_are_shown(tmp_path):
    """Of a list of 20,000 rows that is all wrong, or of the wrong cluster."""
    nodes = [f"gpu{number:04}" for number in range(2000)]
    rows = "".join(f"gpv{number % 9999:04},rail0,b1,4\n" for number in range(20_000))
    (tmp_path / "cables.csv").write_text(f"{HEADER}\n{rows}")
    found = read_cable_list(tmp_path / "cables.csv", Names("ib", nodes, ()))
    assert (len(found.mistakes), found.mistakes[MAX_MISTAKES].hint) == (20_000, None)
    assert found.mistakes[0].hint == "did you mean `gpu0000`?"


WORDS = (
    "w1",
    "w9",
    "a1",
    "b2",
    "t1",
    "",
    "0",
    "1",
    "rail1",
    "33",
    "-1",
    '"',
    '"x',
    "\x00",
    "\ud7ff",
    "#",
    "é",
)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_list_holds_it_is_read_or_refused(tmp_path, seed):
    chance = random.Random(seed)
    rows = [",".join(chance.choices(WORDS[: chance.choice((5, 10, 17))], k=4)) for _ in range(30)]
    kept = chance.sample(rows, chance.choice((1, 3, 30)))
    listed(tmp_path, *kept, f"a1,{chance.randint(1, 40)},t1,7", "t1,9,core1,9")
    for text in (LIST, UPLINKS):
        for _, message, _ in said(tmp_path, text, chance.choice((LEAVES, NO_LEAVES))):
            assert message.isprintable()
            assert message.endswith(".")
