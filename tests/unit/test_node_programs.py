"""What is sent to nodes or installed there: complete, standard library only, of Python 3.9."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

import rackwright
from rackwright.health.judge import all_checks
from rackwright.node_programs import (
    BACKUP,
    DRIFT_CHECK,
    FACT_HELPER,
    HEALTH_CHECK,
    LOCK_HOLDER,
    PROBE,
    PROBE_AND_JUDGE,
    PUT_BACK,
    RUNS_READER,
    _imports,
    _literal,
    one_text,
    package_files,
    sources,
)

OF_ROLES = ("rackwright.roles.scratch.node", "rackwright.roles.dataset_cache.node")
OF_LOGS = tuple(
    f"rackwright.logs.{name}"
    for name in ("read_journal", "read_loki", "read_search", "keeper", "gate", "objects")
)
ENTRIES = (
    FACT_HELPER,
    DRIFT_CHECK,
    PROBE,
    PROBE_AND_JUDGE,
    HEALTH_CHECK,
    LOCK_HOLDER,
    RUNS_READER,
    *OF_ROLES,
    *OF_LOGS,
    BACKUP,
    PUT_BACK,
    "rackwright.drill.receiver",
    "rackwright.job_metrics.client",
    "rackwright.job_metrics.server",
    "rackwright.prometheus.program",
)
STANDARD = {*sys.stdlib_module_names, "_sha2"}  # Python 3.12's


def imported(text):
    """Names that may be modules, from the syntax tree."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def is_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a name of a module
        return False


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_module_is_of_python_3_9_and_loads_the_standard_library_alone(entry):
    for name, text in {**sources(entry), "the text itself": one_text(entry)}.items():
        ast.parse(text, feature_version=(3, 9))
        for module in imported(text):
            top = module.split(".")[0]
            assert top in STANDARD or top == "rackwright", f"{name} imports {module}"


@pytest.mark.parametrize("entry", ENTRIES)
def test_whatever_a_module_imports_comes_along_before_it(entry):
    """The bundler looks for imports in lines; here they are of the syntax tree."""
    names = list(sources(entry))
    wanted = set()
    for name, text in sources(entry).items():
        needed = {other for other in imported(text) if other.startswith("rackwright") and is_module(other)}
        assert needed <= set(names[: names.index(name)])
        wanted |= needed
    parents = {name.rpartition(".")[0] for name in names}
    assert set(names) - wanted - parents == {entry}, "and nothing else"
    assert names[-1] == entry


def test_imports_are_followed_into_packages_and_functions():
    text = (
        "from rackwright.health.probe import (\n    gpus,  # of NVIDIA\n    pci as bus,\n)\n"
        "def f():\n    from rackwright.health.verdict import Action\n"
        "from rackwright import __version__\n"
    )
    assert dict.fromkeys(_imports(text)).keys() == {
        *("rackwright.health.probe.gpus", "rackwright.health.probe.pci", "rackwright.health.verdict"),
        *("rackwright.health.probe", "rackwright"),  # words of a comment are taken for names
    }


def test_the_judge_has_every_check():
    assert {check.function.__module__ for check in all_checks()} <= set(sources(PROBE_AND_JUDGE))


@pytest.mark.parametrize("text", ["x = '''no'''\n", "x = 1\\"])
def test_what_a_text_could_not_hold_is_refused(text):
    with pytest.raises(ValueError, match=r"^a\.b does not fit into a raw string"):
        _literal("a.b", text)


@pytest.mark.parametrize(
    "entry", [one for one in ENTRIES if one not in OF_ROLES]
)  # a role's program is one text
def test_modules_stand_there_as_they_are(entry):
    folder = Path(rackwright.__file__).parents[1]
    assert len(package_files(entry)) == len(sources(entry))
    for name, text in package_files(entry).items():
        assert (folder / name).read_text(encoding="utf-8") == text
        assert f"r'''{text}'''" in one_text(entry)


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_python_that_is_too_old_can_read_the_text_far_enough_to_say_so(entry):
    """No future import, and no annotation that it would evaluate and stumble over."""
    tree = ast.parse(one_text(entry), feature_version=(3, 6))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions] == ["module"]
    assert not [one.annotation for node in functions for one in node.args.args if one.annotation]
