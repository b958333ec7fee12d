"""What mkdocs calls while it builds: it adds the generated pages and the navigation, and translates links."""

from __future__ import annotations

import logging
import re
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from rackwright.clusterfile.roles import role_names
from tests.docs_site import commands, links, roles
from tests.docs_site.effects import effects
from tests.docs_site.navigation import UNLISTED_FOLDERS, navigation

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_LANGUAGES = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".py": "python",
    ".json": "json",
    ".toml": "toml",
    ".j2": "jinja",
}
logging.getLogger("pyinfra").setLevel(logging.ERROR)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation is of all pages, the generated ones included."""
    config.nav = navigation([*written(), *generated()])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages; none of them is written to the repository."""
    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links into the repository lead to the site's pages, and names of commands and roles to theirs."""
    path = page.file.src_uri
    if path in written():
        markdown = links.readable(links.translated(markdown, f"docs/{path}", path, titles()))
    if path.startswith(("files/", "repository/changelog")):
        return markdown
    if path.startswith(UNLISTED_FOLDERS):
        page.meta["search"] = {"boost": 0.5}
    return links.linked(markdown, path, links.Site(commands.names(), role_names()))


@cache
def written() -> dict[str, str]:
    """The pages that are in docs/, by path below it."""
    return {str(path.relative_to(DOCS)): path.read_text() for path in sorted(DOCS.rglob("*.md"))}


@cache
def titles() -> dict[str, str]:
    """The title of each page that is in docs/."""
    return {name: found[1] for name, text in written().items() if (found := _TITLE.search(text))}


@cache
def generated() -> dict[str, str]:
    """The pages that are made here, by path below docs/."""
    return {
        **commands.pages(),
        **roles.pages(
            ROOT, effects(ROOT / "inventory"), roles.guides((ROOT / "README.md").read_text(), titles())
        ),
        **_of_the_repository(),
    }


def _of_the_repository() -> dict[str, str]:
    """Files outside docs/ that a page leads to, as pages."""
    wanted = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    for page, text in written().items():
        wanted |= links.outside(text, page)
    for path in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        wanted |= _outside_of(path)
    return {links.page_of(path): _page(path) for path in sorted(wanted) if (ROOT / path).exists()}


def _outside_of(path: str) -> set[str]:
    return {target.removeprefix("../") for target in links.outside((ROOT / path).read_text(), f"../{path}")}


def _page(path: str) -> str:
    source = ROOT / path
    if source.is_dir():
        names = sorted(one.name for one in source.iterdir() if one.is_file())
        return f"# {path}/\n\n" + "\n".join(f"- `{name}`" for name in names)
    text = source.read_text()
    if source.suffix == ".md":
        return links.readable(links.translated(text, path, links.page_of(path), titles()))
    return f"# {path}\n\n```{_LANGUAGES.get(source.suffix, 'text')}\n{text.rstrip()}\n```\n"
