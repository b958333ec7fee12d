"""The only reader of templates/."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).resolve().parent / "templates"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES, followlinks=True),
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
