"""Writes what docs/ has of the documents of `--json`: `python -m tests.json_schemas`. A test compares it with the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rackwright.schemas.known import names, schema

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, FOLDER = DOCS / "json.md", DOCS / "schemas"
_ELSEWHERE = {"cluster": "../inventory/cluster.schema.json", "plan": "plan.schema.json"}
_TABLE = re.compile(r"(<!-- documents: [^\n]*-->\n).*(<!-- end -->\n)", re.DOTALL)


def files() -> dict[Path, str]:
    """The text of each generated file."""
    found = {
        FOLDER / f"{name}.json": json.dumps(schema(name), indent=2) + "\n"
        for name in names()
        if name not in _ELSEWHERE
    }
    return {**found, PAGE: _TABLE.sub(lambda match: match[1] + _table() + match[2], PAGE.read_text())}


def _table() -> str:
    rows = ["| document | printed by |", "|---|---|"]
    for name, command in names().items():
        place = _ELSEWHERE.get(name, f"schemas/{name}.json")
        rows.append(f"| [{name}]({place}) | {_command(command)} |")
    return "\n".join(rows) + "\n"


def _command(command: str) -> str:
    written, _, rest = command.partition(", ")
    if not written.startswith("the "):
        written = f"`rackwright {written}`".replace("|", r"\|")
    return f"{written}, {rest}" if rest else written


def main() -> None:
    """Write them all, and remove schemas of documents that are gone."""
    found = files()
    FOLDER.mkdir(exist_ok=True)
    for path in set(FOLDER.glob("*.json")) - set(found):
        path.unlink()
    for path, text in found.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
