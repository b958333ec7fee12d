"""Words and turns of phrase that product text does not use, and where a tree still has them.

    python -m tests.english [FOLDER_OR_FILE ...]    each place, then the count of each pattern

Product text is what a user or an operator may read: strings, docstrings and comments of Python, names in Python for
the words that have one right replacement, and all of templates, documentation and cluster files.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = (
    "rackwright", "roles", "templates", "deploys", "inventory", "vagrant", "docs",
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml",
)  # fmt: skip
_TEXT = {".py", ".md", ".j2", ".yaml", ".yml", ".toml", ".sh", ".css", ".js", ""}
_GENERATED = {"docs/proof.md", "docs/proof.json"}

WORDS = {
    "books": r"\bbooks?\b|\bbookkeep\w*",
    "wish": r"\bwish(?:e[sd]|es)?\b",
    "duty": r"\bdut(?:y|ies)\b",
    "landing": r"\blandings?\b",
    "glance": r"\bglance[sd]?\b",
    "pace": r"\bpaced?\b",
    "watched": r"\bwatched\b",
    "told": r"\btold\b",
    "tells": r"\btells?\b|\btelling\b",
    "says": r"\bsays?\b|\bsaid\b|\bsaying\b",
    "nobody": r"\bnobody\b|\bno one\b",
    "somebody": r"\bsomebody\b|\bsomeone\b",
    "whoever": r"\bwhoever\b|\bwhomever\b",
    "whatever": r"\bwhatever\b",
    "is no X": r"\b(?<!there )(?:is|are|was|were) no\b(?! longer| more\b| later\b| other\b| fewer\b| greater\b)",
    "none of the": r"\bnone of the (?:allowed|values)\b",
    "so many": r"\bso many\b|\bso much as\b",
    "believe": r"\bbeliev\w+\b",
    "lest": r"\blest\b",
    "be it": r"\bbe it\b",
    "of its own": r"\bof (?:its|their|his|her|one's|our|your) own\b|\bof ours\b",
    "at its place": r"\bat its place\b",
    "in words": r"\bin words\b",
    "an aim": r"\ban aim\b|\baims\b",
    "a truth": r"\ba truth\b",
    "the way": r"\bthe way\b",
    "no such": r"\bno such\b(?! file| process| device| command)",
    "again and again": r"\bagain and again\b",
    "stands in": r"\bstands? in\b",
    "regardless of who": r"\bregardless of who\b",
}
"""Name -> regular expression, ignoring case."""
NAMES = ("wish", "duty", "landing", "glance", "pace", "told", "nobody", "somebody", "whoever", "lest")
"""Those that no name in Python has either, as one of its words."""
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in WORDS.items()}


@dataclass(frozen=True)
class Place:
    """One use of such a word."""

    word: str
    path: str
    line: int
    text: str


def places(roots: Iterable[str] = PRODUCT) -> Iterator[Place]:
    """Each use in the tracked files below these folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *roots],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split("\n"):
        path = ROOT / name
        if (
            not name
            or name in _GENERATED
            or path.suffix not in _TEXT
            or path.is_symlink()
            or not path.is_file()
        ):
            continue
        pieces = _pieces(path)
        for line, text, is_name in pieces:
            for word, pattern in _PATTERNS.items():
                if is_name and word not in NAMES:
                    continue
                if pattern.search(text):
                    yield Place(word, name, line, text.strip())


def _pieces(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Line number, text, whether it is a name of Python."""
    text = path.read_text(errors="replace")
    if path.suffix != ".py":
        yield from ((number, line, False) for number, line in enumerate(text.splitlines(), 1))
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line, False
        elif token.type == tokenize.NAME:
            yield token.start[0], re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", token.string), True


def main(arguments: list[str]) -> int:
    """Print each place and the counts."""
    counts: Counter[str] = Counter()
    for place in places(arguments or PRODUCT):
        counts[place.word] += 1
        print(f"{place.path}:{place.line}: [{place.word}] {place.text[:160]}")
    for word, count in counts.most_common():
        print(f"{count:6} {word}")
    print(f"{counts.total():6} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
