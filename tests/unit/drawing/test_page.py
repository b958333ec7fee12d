"""The page: nothing can break out of it, it loads nothing, and no look is a colour alone."""

from __future__ import annotations

import re

import pytest

from rackwright.drawing.model import Box, Look, Mark, Net, Picture, Rack, Room, Row, Switch, Trouble
from rackwright.drawing.page import html
from rackwright.render import TEMPLATES
from tests.unit.drawing.pages import Page

NASTY = "<script>alert(1)</script> & \"'</title></svg></style>"
THEMES = (":root { color-scheme: light;", "color-scheme: dark;")


def picture(*boxes, nets=(), text="plain", **changes):
    fields = {
        "title": text, "subtitle": text, "claim": text, "notes": (text,), "marks": (Mark(Look.GOOD, text, text, 1),),
        "rooms": (Room(text, (Rack(text, boxes, text, text),)),), "nets": nets,
        "troubles": (Trouble("w1", Look.FAILING, text, text, 2, ((text, text),)),),
        "others": ((Look.WARNING, text),), "footer": (text,),
    }  # fmt: skip
    return Picture(**{**fields, **changes})


def net(leaves, spines, text="x", cables=1):
    rows = tuple(Row(text, (Switch(f"{text}{n}", text, 5, (text,)),)) for n in range(leaves))
    tops = Row("spines", tuple(Switch(f"s{n}", text, 5, (text,)) for n in range(spines)))
    links = {(f"{text}{n}", f"s{m}"): cables for n in range(leaves) for m in range(spines)}
    return Net(text, text, tops, rows, links)


@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("leaves", [2, 40])
def test_every_text_is_escaped_and_nothing_is_loaded(count, leaves):
    boxes = [
        Box(f"{NASTY}{n}", Look.FAILING, NASTY, NASTY, NASTY, n + 1, 1, (NASTY, NASTY), "w1")
        for n in range(count)
    ]
    page = Page(html(picture(*boxes, nets=(net(leaves, 2, NASTY),), text=NASTY)))
    assert "script" not in page.tags
    assert "<script>alert(1)" in page.text
    assert all(place.startswith("#") for place in page.loads), page.loads
    assert "http" not in page.source
    assert not re.search(r"\son\w+=", re.sub(r"&[^;]+;", "", page.source).replace(NASTY, ""))


@pytest.mark.parametrize("look", list(Look))
def test_a_look_is_a_colour_and_a_glyph_and_they_are_defined_in_both_themes(look):
    page = Page(html(picture(Box("n1", look, "state", unit=1))))
    [box] = page.boxes
    assert box.look == look.value
    assert box.glyphs == ([] if look is Look.NEUTRAL else [look.value])
    assert all(f"g-{glyph}" in page.ids for glyph in box.glyphs)
    style = (TEMPLATES / "drawing/_style.css.j2").read_text()
    for theme in THEMES:
        start = style.index(theme)
        block = style[start : start + 1500]
        for part in ("", "-ink", "-line"):
            assert re.search(rf"--{look.value}{part}: #[0-9a-f]{{6}}", block), (theme, look, part)


def _luminance(colour):
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("look", list(Look))
def test_text_on_every_colour_can_be_read(theme, look):
    """WCAG 2.2, 1.4.3: contrast of 4.5 at least."""
    style = (TEMPLATES / "drawing/_style.css.j2").read_text()
    block = style[style.index(theme) :]
    fills = [re.search(rf"--{look.value}: (#[0-9a-f]{{6}})", block)[1]]
    if look is Look.UNKNOWN:
        fills.append(re.search(r"--unknown-hatch: (#[0-9a-f]{6})", block)[1])
    ink = _luminance(re.search(rf"--{look.value}-ink: (#[0-9a-f]{{6}})", block)[1])
    for fill in map(_luminance, fills):
        assert (max(ink, fill) + 0.05) / (min(ink, fill) + 0.05) >= 4.5


def test_hovering_says_name_state_and_lines_and_the_link_leads_to_the_list():
    page = Page(html(picture(Box("n1", Look.FAILING, "failing", lines=("why", "where"), anchor="w1"))))
    [box] = page.boxes
    assert box.hover == "n1: failing\nwhy\nwhere"
    assert box.href == "#w1"
    assert "w1" in page.ids


def test_few_switches_are_a_diagram_and_many_a_table():
    few = html(picture(nets=(net(8, 4, cables=8),)))
    assert few.count('<path d="M') >= 32
    assert "256 uplinks: 8 cables from leaf to spine, 32 pairs." in few
    many = Page(html(picture(nets=(net(40, 4),))))
    assert "dl" in many.tags
    assert "160 uplinks: 1 cable from leaf to spine, 160 pairs." in many.text


def test_small_racks_can_be_enlarged_without_a_script():
    crowd = [Box(f"n{n}", Look.GOOD, "good", unit=n + 1) for n in range(200)]
    page = Page(html(picture(*crowd)))
    assert len(page.boxes) == 200
    assert page.tags.count("input") == 3
    assert Page(html(picture(crowd[0]))).tags.count("input") == 0
