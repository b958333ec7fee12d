"""rackwright under plain pytest: `pytest --cluster FILE DIR` gives testinfra's `host` each node of a cluster file.

pytest loads this module in every session of the environment (entry point `pytest11`), so it loads nothing else:
rackwright.verify.pytest_plugin follows where `--cluster` is given.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator

import pytest

_PLUGIN = "rackwright.verify.pytest_plugin"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --cluster and --nodes."""
    group = parser.getgroup("rackwright")
    group.addoption(
        "--cluster", metavar="FILE", help="run tests that use `host` on each node of this cluster file"
    )
    group.addoption(
        "--nodes", metavar="NODESET", help="with --cluster: only these nodes, e.g. gpu[001-016],login1"
    )
    group.addoption("--rackwright-results", metavar="FILE", help=argparse.SUPPRESS)  # for `rackwright verify`


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Read the cluster file before pytest-xdist reads how many processes to start."""
    _follow(config)
    return (yield)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse the roles' checks without a cluster file."""
    if "ask_check" in metafunc.fixturenames and metafunc.config.getoption("--cluster") is None:
        raise pytest.UsageError("rackwright's checks need --cluster FILE")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """The same where pytest is embedded and no command line was read."""
    _follow(config)


def _follow(config: pytest.Config) -> None:
    if config.getoption("--cluster") is not None and not config.pluginmanager.has_plugin(_PLUGIN):
        config.pluginmanager.import_plugin(_PLUGIN)
        config.pluginmanager.get_plugin(_PLUGIN).prepare(config)  # type: ignore[union-attr]
