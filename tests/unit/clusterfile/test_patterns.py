"""No message shows a regular expression: every pattern of the format has a sentence and an example that fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from rackwright.clusterfile.json_schema import cluster_schema
from rackwright.clusterfile.patterns import PATTERNS, in_words
from tests.unit.clusterfile.base_file import change, problems_of


def patterns(value: Any) -> Iterator[tuple[str, list[str] | None]]:
    """Each pattern of the schema with the examples beside it."""
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"], value.get("examples")
        for pattern in value.get("patternProperties", {}):
            yield pattern, None
        for inner in value.values():
            yield from patterns(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from patterns(inner)


FOUND = sorted({(pattern, tuple(examples or ())) for pattern, examples in patterns(cluster_schema())})


def test_the_schema_has_patterns():
    assert len(FOUND) > 30


@pytest.mark.parametrize(("pattern", "examples"), FOUND, ids=[pattern for pattern, _ in FOUND])
def test_every_pattern_has_an_example_that_fits(pattern, examples):
    if not examples:
        assert pattern in PATTERNS, "add a sentence and an example to rackwright/clusterfile/patterns.py"
        examples = (PATTERNS[pattern][1],)
    for example in examples:
        assert re.search(pattern, example), example


@pytest.mark.parametrize(("sentence", "example"), PATTERNS.values(), ids=list(PATTERNS))
def test_a_sentence_is_one_and_shows_no_pattern(sentence, example):
    assert sentence.endswith(".")
    assert not re.search(r"\[[^]]*\]|\\|\^|\$|\{\d", f"{sentence} {example}")


def test_a_pattern_without_a_row_is_not_shown_either():
    message, hint = in_words(r"^strange[0-9]+$")
    assert "strange" not in message
    assert hint is None


@pytest.mark.parametrize(
    ("section", "path", "message", "hint"),
    [
        (
            "{srun_port_range: 60001 to 63000}",
            "srun_port_range",
            "Not a valid range of ports.",
            "e.g. `60001-63000`",
        ),
        ("{state_dir: var/state}", "state_dir", None, "e.g. `/var/spool/slurmctld`"),
        ("{partitions: {train: {qos: Gold}}}", "partitions.train.qos", None, "e.g. `physics`"),
        ("{partitions: {9lives: {}}}", "partitions.9lives", None, "e.g. `train`"),
    ],
)
def test_what_a_user_sees(tmp_path, section, path, message, hint):
    (found, *_) = problems_of(tmp_path, change(("munge: {}", f"munge: {{}}\n  slurm: {section}")))
    assert (found.path, found.hint) == (f"roles.slurm.{path}", hint)
    assert message is None or found.message == message
    assert "^" not in found.message
