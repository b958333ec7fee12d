"""Options of a role that exists only here: discovery, merging, messages, cross checks."""

from __future__ import annotations

import sys

import pytest

import rackwright.roles
from rackwright.clusterfile import roles
from rackwright.clusterfile.role_options import deep_merge, parse_path
from tests.unit.clusterfile.base_file import change, problems_of

OPTIONS = """
from __future__ import annotations
from collections.abc import Mapping
from typing import ClassVar, Literal
from pydantic import Field, field_validator, model_validator
from rackwright.model.types import NodeRole
from rackwright.model.options import Frozen, RoleOptions

class Queue(Frozen):
    nodes: str | None = None
    limit: int = 1

class Tree(Frozen):
    kind: Literal["tree"]
    width: int

class Flat(Frozen):
    kind: Literal["flat"]

class ProbeOptions(RoleOptions):
    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER, NodeRole.LOGIN})
    moved: ClassVar[Mapping[str, str]] = {"colour": "roles.paint", "shape.edge": "roles.edges.kind"}
    size: int
    shape: Tree | Flat | None = Field(default=None, discriminator="kind")
    ratio: float | Literal["auto"] = "auto"
    queues: dict[str, Queue] = {}
    names: list[str] = []

    @field_validator("names")
    @classmethod
    def _distinct(cls, names: list[str]) -> list[str]:
        if len(set(names)) < len(names):
            raise ValueError("names must be distinct")
        return names

    @model_validator(mode="after")
    def _fits(self) -> ProbeOptions:
        if self.size > 100:
            raise ValueError("The size is larger than the house.")
        return self

    def problems(self, cluster):
        cluster.management
        for name, queue in self.queues.items():
            if queue.nodes is not None and queue.nodes not in cluster.by_name:
                yield f"queues.{name}.nodes", f"Node {queue.nodes} does not exist.", "see `nodes:`"
"""


@pytest.fixture(autouse=True)
def probe(tmp_path, monkeypatch):
    package = tmp_path / "more" / "probe"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""probe."""\n')
    (package / "options.py").write_text(OPTIONS)
    monkeypatch.setattr(rackwright.roles, "__path__", [*rackwright.roles.__path__, str(package.parent)])
    roles.role_names.cache_clear()
    yield
    roles.role_names.cache_clear()
    roles.options_class.cache_clear()
    for name in [name for name in sys.modules if name.startswith("rackwright.roles.probe")]:
        del sys.modules[name]


def found(folder, section: str, override: str = "") -> list[tuple[str, str, str | None]]:
    edits = [("munge: {}", f"munge: {{}}\n  probe: {section}")]
    if override:
        edits.append(("position: 1", f"position: 1\n    options: {{probe: {override}}}"))
    return [(problem.path, problem.message, problem.hint) for problem in problems_of(folder, change(*edits))]


def test_a_role_is_found_by_its_folder():
    assert "probe" in roles.role_names()
    assert roles.options_class("probe").__name__ == "ProbeOptions"


def test_correct(tmp_path):
    section = "{size: 2, ratio: auto, shape: {kind: tree, width: 3}, queues: {a: {nodes: w1}}}"
    assert found(tmp_path, section, "{shape: {width: 4}, queues: {b: {limit: 2}}}") == []


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{}", ("roles.probe.size", "The key `size` is missing.", None)),
        ("{size: 101}", ("roles.probe", "The size is larger than the house.", None)),
        ("{size: 1, names: [a, a]}", ("roles.probe.names", "Names must be distinct.", None)),
        (
            "{size: 1, ratio: half}",
            (
                "roles.probe.ratio",
                "The value matches none of the accepted forms.",
                "Expected a number; or: Not one of: auto",
            ),
        ),
        (
            "{size: 1, queues: {a: {limit: x}}}",
            ("roles.probe.queues.a.limit", "Expected a whole number.", None),
        ),
        (
            "{size: 1, queues: {a: {limt: 1}}}",
            ("roles.probe.queues.a.limt", "Unknown key `limt`.", "did you mean `limit`?"),
        ),
        (
            "{size: 1, shape: {kind: tre}}",
            ("roles.probe.shape", "The key `kind` is not one of: tree, flat.", None),
        ),
        ("{size: 1, shape: {kind: tree}}", ("roles.probe.shape.width", "The key `width` is missing.", None)),
        (
            "{size: 1, shape: {width: 3}}",
            ("roles.probe.shape", "The key `kind` is missing.", None),
        ),
        (
            "{size: 1, queues: {a b: {nodes: w9}}}",
            ('roles.probe.queues["a b"].nodes', "Node w9 does not exist.", "see `nodes:`"),
        ),
    ],
)
def test_mistake_in_the_section(tmp_path, section, problem):
    assert found(tmp_path, section) == [problem]


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("{size: 101}", ("nodes[1].options.probe", "The size is larger than the house.", None)),
        ("{size: x}", ("nodes[1].options.probe.size", "Expected a whole number.", None)),
        ("{names: [a, a]}", ("nodes[1].options.probe.names", "Names must be distinct.", None)),
        (
            "{queues: {b: {nodes: w9}}}",
            ("nodes[1].options.probe.queues.b.nodes", "Node w9 does not exist.", "see `nodes:`"),
        ),
        (
            "{queues: {b: {limt: 9}}}",
            (
                "nodes[1].options.probe.queues.b.limt",
                "Unknown key `limt`.",
                "did you mean `limit`?",
            ),
        ),
    ],
)
def test_mistake_in_an_override_is_noted_there(tmp_path, override, problem):
    assert found(tmp_path, "{size: 2, queues: {a: {nodes: w1}}}", override) == [problem]


_MOVED = ("`colour` has moved to `roles.paint`.", "declare it under `roles.paint` and remove it here")


def test_a_key_that_moved_to_another_role(tmp_path):
    assert found(tmp_path, "{size: 2, colour: red}") == [("roles.probe.colour", *_MOVED)]


def test_a_key_that_moved_from_below_another_one(tmp_path):
    assert found(tmp_path, "{size: 2, shape: {kind: flat, edge: sharp}}") == [
        (
            "roles.probe.shape.edge",
            "`edge` has moved to `roles.edges.kind`.",
            "declare it under `roles.edges.kind` and remove it here",
        )
    ]


def test_a_key_that_moved_in_an_override(tmp_path):
    assert found(tmp_path, "{size: 2}", "{colour: {red: 1}}") == [("nodes[1].options.probe.colour", *_MOVED)]


def test_only_the_whole_path_of_a_moved_key_counts(tmp_path):
    section = "{size: 2, queues: {a: {colour: red}}}"
    assert [message for _, message, _ in found(tmp_path, section)] == ["Unknown key `colour`."]


def test_what_only_the_section_says_is_noted_there_once(tmp_path):
    section = "{size: 2, queues: {a: {nodes: w9}}}"
    assert found(tmp_path, section, "{ratio: 2}") == [
        ("roles.probe.queues.a.nodes", "Node w9 does not exist.", "see `nodes:`")
    ]


def test_cross_checks_never_hide_what_they_rely_on(tmp_path):
    text = change(("munge: {}", "munge: {}\n  probe: {size: 2}"), ("purpose: management", "purpose: storage"))
    assert [problem.path for problem in problems_of(tmp_path, text)] == ["networks"]


def test_cross_checks_wait_until_every_group_can_be_read(tmp_path):
    text = change(
        ("munge: {}", "munge: {}\n  probe: {size: 2, queues: {a: {nodes: w1}}}"),
        ("  - nodes: w[1-4]\n", "  - nods: w[1-4]\n"),
    )
    assert [problem.path for problem in problems_of(tmp_path, text)] == ["nodes[1].nodes", "nodes[1].nods"]


def test_a_role_that_no_node_holds(tmp_path):
    text = change(("munge: {}", "munge: {}\n  probe: {size: 2}"), ("roles: [worker]", "roles: [storage]"))
    (problem,) = problems_of(tmp_path, text)
    assert problem.message == "The role probe runs on login or worker nodes, but the cluster has none."


def test_deep_merge():
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert deep_merge(base, {"a": {"c": [3]}, "d": {"e": 1}}) == {"a": {"b": 1, "c": [3]}, "d": {"e": 1}}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 1}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("partitions[0].nodes", ("partitions", 0, "nodes")),
        ("users.ada", ("users", "ada")),
        ("partitions[gpu].nodes", ("partitions", "gpu", "nodes")),
    ],
)
def test_parse_path(text, path):
    assert parse_path(text) == path
