"""Where boxes are: inside their rack, at their unit, never on top of each other, whatever is declared."""

from __future__ import annotations

from itertools import combinations

import pytest

from rackwright.drawing.model import Box, Look, Rack, Room
from rackwright.drawing.racks import SMALL_FROM, elevation, labels, scale_of


def box(name, unit=None, height=1, **more):
    return Box(name, Look.GOOD, "good", "dgx-h100, 10.2 kW", unit=unit, height=height, **more)


def drawn(*boxes, others=0):
    rack = Rack("r1", boxes)
    crowd = Rack("r2", tuple(box(f"x{n}", n + 1) for n in range(others)))
    scale = scale_of([Room("", (rack, crowd) if others else (rack,))])
    return scale, elevation(rack, scale)


CASES = {
    "stacked": [box("a", 1, 8), box("b", 11, 8), box("c", 21, 8)],
    "no unit": [box("a"), box("b", height=4), box("c")],
    "mixed": [box("a", 3, 2), box("b"), box("c", 1)],
    "same unit": [box("a", 1), box("b", 1), box("c", 1), box("d", 2)],
    "overlap": [box("a", 1, 4), box("b", 3, 4), box("c", 6, 2), box("d", 9)],
    "alone": [box("a", 40, 8)],
}


@pytest.mark.parametrize("small", [0, SMALL_FROM])
@pytest.mark.parametrize("boxes", CASES.values(), ids=CASES)
def test_boxes_are_inside_and_apart(boxes, small):
    scale, found = drawn(*boxes, others=small)
    assert scale.small == bool(small)
    assert sorted(place.box.name for place in found.places) == sorted(one.name for one in boxes)
    for place in found.places:
        assert scale.gutter <= place.x
        assert place.x + place.width <= scale.width
        assert place.y >= 0
        assert place.y + place.height <= found.height + 0.1
        assert place.height >= 9
    for one, other in combinations(found.places, 2):
        beside = one.x + one.width <= other.x + 0.11 or other.x + other.width <= one.x + 0.11
        above = one.y + one.height <= other.y + 0.11 or other.y + other.height <= one.y + 0.11
        assert beside or above, (one, other)


@pytest.mark.parametrize("small", [0, SMALL_FROM])
def test_higher_units_are_higher_up(small):
    _, found = drawn(*CASES["stacked"], others=small)
    heights = {place.box.name: place.y for place in found.places}
    assert heights["c"] < heights["b"] < heights["a"]


def test_to_scale_the_middle_of_a_box_is_at_its_units():
    scale, found = drawn(box("a", 1, 8), box("b", 11, 2))
    by_name = {place.box.name: place for place in found.places}
    assert by_name["a"].height == pytest.approx(8 * scale.unit, abs=2)
    bottom = by_name["a"].y + by_name["a"].height
    assert bottom - by_name["b"].y - by_name["b"].height == pytest.approx(10 * scale.unit, abs=0.5)
    assert [label.text for label in labels(scale)] == ["1", "5", "10"]


def test_without_positions_no_units_are_numbered():
    scale, _ = drawn(*CASES["no unit"])
    assert labels(scale) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [("gpu1", "gpu1"), ("a-very-long-name-of-a-node-in-one-unit-0042", "0042")],
)
def test_a_long_name_keeps_its_end(name, shown):
    for small in (0, SMALL_FROM):
        _, found = drawn(box(name, 1), others=small)
        [place] = found.places
        assert place.name.endswith(shown)
        assert len(place.name) * (4.9 if small else 7.1) <= place.width


def test_a_box_with_something_wrong_says_what_where_there_is_room():
    wrong = box(
        "a", 1, 8, anchor="w1", lines=("health: gpu-count FAIL: 7 of 8 GPUs are listed by nvidia-smi",)
    )
    _, found = drawn(wrong, box("b", 11, 8, lines=("worker",)))
    more = {place.box.name: place.more for place in found.places}
    assert more["a"].startswith("health: gpu-count FAIL")
    assert more["b"] == ""


def test_nothing_is_drawn_of_an_empty_room():
    scale = scale_of([])
    assert elevation(Rack("r1", ()), scale).places == ()
