"""Commands that the docs name exist."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command

from rackwright.cli import app
from tests.racks.site import REPO

_NAMED = re.compile(r"`rackwright ([a-z][a-z-]*)(?=[ `])(?! \d)")
PAGES = sorted([*REPO.glob("*.md"), *(REPO / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page):
    known = set(get_command(app).list_commands(None))
    assert "apply" in known
    assert set(_NAMED.findall(page.read_text())) <= known
