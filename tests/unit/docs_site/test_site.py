"""The site as `make docs` builds it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from rackwright.cli import _COMMANDS
from rackwright.clusterfile.roles import role_names

ROOT = Path(__file__).resolve().parents[3]
_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
pytestmark = pytest.mark.slow


class _Page(HTMLParser):
    """Anchors of a page, where it links to, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: Mapping[str, str | None] = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := given.get(key))}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if (key := _LOADED.get(tag)) and given.get(key):
            self.loaded.append(str(given[key]))


class _Site:
    """The built site."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[Path, _Page]:
        return {path: _Page(path.read_text()) for path in sorted(self.folder.rglob("*.html"))}

    def problem(self, page: Path, link: str) -> str | None:
        """Why a link of a page leads nowhere; None if it leads somewhere, or to another site."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.is_file():
            return f"{page.name}: there is no {link}"
        anchor = unquote(parts.fragment)
        if anchor and target in self.pages and anchor not in self.pages[target].anchors:
            return f"{page.name}: {target.name} has no anchor {anchor}"
        return None


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> _Site:
    folder = tmp_path_factory.mktemp("site").resolve()
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "docs/site/mkdocs.yml", "-d", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-4000:]
    return _Site(folder)


def test_each_command_and_each_role_has_a_page(site):
    for name in _COMMANDS:
        assert f"rackwright {name}" in (site.folder / "commands" / f"{name}.html").read_text()
    for role in role_names():
        text = (site.folder / "roles" / f"{role}.html").read_text()
        assert f"Role {role}" in text
        assert 'id="options"' in text


def test_every_link_and_anchor_leads_somewhere(site):
    wrong = {
        problem
        for path, page in site.pages.items()
        if path.name != "404.html"  # its links are those of a server's root
        for link in page.links
        if (problem := site.problem(path, link))
    }
    assert wrong == set()
    assert sum(len(page.links) for page in site.pages.values()) > 10_000


def test_a_wrong_link_is_found(site):
    page = site.folder / "index.html"
    assert site.problem(page, "nowhere.html") == "index.html: there is no nowhere.html"
    assert site.problem(page, "plan.html#nowhere") == "index.html: plan.html has no anchor nowhere"
    assert site.problem(page, "plan.html#before-and-after") is None


def test_a_browser_loads_nothing_from_elsewhere(site):
    elsewhere = {link for page in site.pages.values() for link in page.loaded if urlsplit(link).netloc}
    assert elsewhere == set()


def test_the_search_works_without_a_server(site):
    assert (site.folder / "search" / "search_index.js").read_text().startswith("var __index = {")
    assert "site/iframe-worker.js" in (site.folder / "index.html").read_text()
