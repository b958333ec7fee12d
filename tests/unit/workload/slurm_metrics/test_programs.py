"""What is installed on a head: complete, of Python 3.9, and only with the packages that the role installs."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from rackwright.node_programs import package_files

ROOM = "rackwright.workload.slurm.metrics"
PACKAGES = {"collector": {"prometheus_client"}, "server": {"prometheus_client", "bcrypt", "yaml"}}


def imported(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("program", PACKAGES)
def test_it_loads_the_standard_library_and_the_packages_of_the_role(program):
    found = set()
    for text in package_files(f"{ROOM}.{program}").values():
        ast.parse(text, feature_version=(3, 9))
        found |= {module.partition(".")[0] for module in imported(text)}
    assert {name for name in found if name not in sys.stdlib_module_names} == {
        "rackwright",
        *PACKAGES[program],
    }


@pytest.mark.parametrize("program", PACKAGES)
def test_it_starts_from_its_own_files(program, tmp_path):
    for name, text in package_files(f"{ROOM}.{program}").items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from {ROOM}.{program} import main; main(['--help'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "--" in done.stdout
    assert "password" not in done.stdout


def test_the_collector_has_nothing_that_listens():
    texts = package_files(f"{ROOM}.collector")
    assert not [name for name in texts if name.endswith(("server.py", "access.py"))]
    loaded = {module for text in texts.values() for module in imported(text)}
    assert not loaded & {"asyncio", "http.server", "socket", "socketserver", "ssl"}


def test_the_server_has_nothing_that_asks_slurm():
    texts = package_files(f"{ROOM}.server")
    assert not [name for name in texts if name.endswith(("ask.py", "jobs.py", "collector.py"))]
    assert "subprocess" not in {module for text in texts.values() for module in imported(text)}
