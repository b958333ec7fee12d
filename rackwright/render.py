"""The only reader of templates/: those of rackwright, then those of the site at hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).resolve().parent / "templates"
_of_site = FileSystemLoader([])


@cache
def _environment() -> Environment:
    return Environment(
        loader=ChoiceLoader([FileSystemLoader(TEMPLATES, followlinks=True), _of_site]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def source(template: str) -> str:
    """The text of `templates/<role>/<name>.j2` itself, not rendered."""
    return (TEMPLATES / template).read_text(encoding="utf-8")


def render(template: str, **variables: Any) -> str:  # noqa: ANN401 - jinja2 takes anything
    """Render `templates/<role>/<name>.j2`; an undefined variable is an error."""
    return _environment().get_template(template).render(**variables)


def search_also(folder: Path) -> None:
    """Look in this folder of a site for templates that rackwright does not have, in place of another site's."""
    _of_site.searchpath[:] = [str(folder)]
    cache = _environment().cache
    if cache is not None:
        cache.clear()
