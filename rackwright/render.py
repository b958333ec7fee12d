"""The only reader of templates/: those of rackwright, then those of the site at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, FunctionLoader, StrictUndefined

from rackwright.shipped import TEMPLATES
from rackwright.site_folder import served


@cache
def _environment() -> Environment:
    return Environment(
        loader=ChoiceLoader([FileSystemLoader(TEMPLATES, followlinks=True), FunctionLoader(_of_site)]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, **variables: Any) -> str:  # noqa: ANN401 - jinja2 takes anything
    """Render `templates/<role>/<name>.j2`; an undefined variable is an error."""
    return _environment().get_template(template).render(**variables)


def _of_site(name: str) -> tuple[str, str, Callable[[], bool]] | None:
    """A template of the site at hand: its text, its path, and whether it is still the one to use."""
    site = served()
    path = site.templates / name if site is not None else None
    if path is None or not path.is_file():
        return None
    return path.read_text(), str(path), lambda: served() == site
