"""The list of suites is sound."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.proof.runner import ROOT
from tests.proof.suites import SMOKE_LIMIT_SECONDS, SUITES, Suite, Tier, UnknownSuite, named
from tests.proof.tree import Tree

_BY_NAME = pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)


def test_names_are_unique():
    names = [suite.name for suite in SUITES]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)  # anchors, file names


@_BY_NAME
def test_it_says_what_it_proves_in_one_sentence(suite: Suite):
    assert suite.proves.endswith(".")
    assert "|" not in suite.proves
    assert "\n" not in suite.proves


@_BY_NAME
def test_each_path_is_in_the_tree(suite: Suite):
    assert [path for path in suite.paths if not Tree(ROOT).files([path])] == []


@_BY_NAME
@pytest.mark.parametrize("tier", Tier)
def test_the_tests_are_among_the_paths(suite: Suite, tier: Tier):
    targets = [word for word in suite.arguments(tier) if "/" in word]
    assert targets
    for target in targets:
        file = target.partition("::")[0]
        assert (ROOT / file).exists()
        assert any(f"{file}/".startswith(f"{path}/") for path in suite.paths)


@_BY_NAME
def test_what_its_tests_import_is_among_the_paths(suite: Suite):
    files = Tree(ROOT).files(suite.paths)
    missing = {
        f"{name} imports {module}"
        for name in files
        if name.startswith("tests/") and name.endswith(".py")
        for module in _imported_tests(ROOT / name)
        if not {f"{module}.py", f"{module}/__init__.py"} & set(files)
    }
    assert missing == set()


@_BY_NAME
def test_each_conftest_above_its_tests_is_among_the_paths(suite: Suite):
    files = Tree(ROOT).files(suite.paths)
    folders = {folder for name in files if name.startswith("tests/") for folder in Path(name).parents}
    conftests = {f"{folder}/conftest.py" for folder in folders if (ROOT / folder / "conftest.py").exists()}
    assert conftests <= set(files)


def _imported_tests(path: Path) -> set[str]:
    """Modules of ours below tests/ that a file imports, as paths without a suffix."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= {name for name in inner if (ROOT / f"{name.replace('.', '/')}.py").exists()} or {
                node.module
            }
    return {module.replace(".", "/") for module in modules if module.startswith("tests.")}


@_BY_NAME
def test_the_smoke_tier_is_smaller(suite: Suite):
    assert suite.smoke
    assert (suite.smoke, suite.knobs(Tier.SMOKE)) != (suite.tests, suite.knobs(Tier.FULL))
    assert suite.limit(Tier.SMOKE) == SMOKE_LIMIT_SECONDS


@_BY_NAME
def test_knobs_are_ours(suite: Suite):
    for tier in Tier:
        assert all(name.startswith("RACKWRIGHT_TEST_") for name in suite.knobs(tier))


def test_suites_are_chosen_by_name_in_the_order_of_the_list(make_suite):
    suites = (make_suite(name="a"), make_suite(name="b"), make_suite(name="c"))
    assert named([], suites) == suites
    assert [suite.name for suite in named(["c", "a", "c"], suites)] == ["a", "c"]


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(make_suite):
    with pytest.raises(UnknownSuite) as error:
        named(["b", "dkmz"], (make_suite(name="dkms"), make_suite(name="nodes")))
    assert error.value.message == "There is no proof suite b, dkmz."
    assert error.value.hint == "known suites: dkms, nodes"
    assert error.value.exit_code == 64
