"""docs/security.md: every claim names a test, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PAGE = REPO / "docs" / "security.md"
_TEST = re.compile(r"`([\w/]+\.py)::([\w:]+)`")
_NO_TEST = "no test:"
"""How a row states that nothing proves it, and why."""


def rows(text: str) -> list[tuple[int, str, str]]:
    """(line, claim, proof) of every row of the tables of claims."""
    found, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[-1] == "test":
            inside = True
        elif inside and not set(cells[0]) <= {"-", ":"}:
            found.append((number, cells[0], cells[-1]))
    return found


@cache
def functions(path: Path) -> frozenset[str]:
    """Names of the test functions of a file, `Class::name` for methods."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return frozenset(names)


def problems(text: str) -> list[str]:
    """What is wrong with the page."""
    wrong = []
    for number, claim, proof in rows(text):
        tests = _TEST.findall(proof)
        if not tests and not proof.startswith(_NO_TEST):
            wrong.append(f"line {number}: `{claim}` names no test")
        for file, name in tests:
            path = REPO / "tests" / file
            if not path.is_file():
                wrong.append(f"line {number}: there is no tests/{file}")
            elif name not in functions(path):
                wrong.append(f"line {number}: tests/{file} has no {name}")
    return wrong


def test_every_claim_has_its_test() -> None:
    text = PAGE.read_text()
    assert len(rows(text)) > 30
    assert problems(text) == []


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("| A | |", "line 3: `A` names no test"),
        ("| A | `unit/nowhere.py::test_it` |", "line 3: there is no tests/unit/nowhere.py"),
        (
            "| A | `unit/test_security_page.py::test_none` |",
            "line 3: tests/unit/test_security_page.py has no test_none",
        ),
    ],
)
def test_a_claim_without_a_test_is_found(row: str, why: str) -> None:
    assert problems(f"| claim | test |\n|---|---|\n{row}\n") == [why]
