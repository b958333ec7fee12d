"""The installed program: what it loads, what it leaves behind, and how it bears damage."""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import subprocess
import sys

import pytest

from rackwright.roles.health import texts
from tests.unit.health.test_programs import pythons


class Installed:
    """The program and its modules in a folder of the test, as the role lays them out."""

    def __init__(self, folder):
        self.program, self.modules = folder / "health-check", folder / "modules"
        self.verdict = self.modules / "rackwright/health/verdict.py"
        for name, text in texts.modules().items():
            path = self.modules / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.program.write_text(texts.program().replace(texts.modules_folder(), str(self.modules)))
        self.program.chmod(0o755)

    def run(self, *arguments, python=sys.executable, **more):
        return subprocess.run(
            [python, "-IS", self.program, *(arguments or ("show",))],
            capture_output=True, text=True, timeout=240, check=False, **more,
        )  # fmt: skip

    def shown(self, **more):
        """The verdict of a machine that does not know what it should be."""
        done = self.run(**more)
        assert (done.returncode, done.stderr) == (4, "")
        return json.loads(done.stdout)

    def cached(self):
        return sorted(self.modules.rglob("*.pyc"))


@pytest.fixture
def installed(tmp_path):
    return Installed(tmp_path)


def test_the_program_is_started_by_its_own_first_line(installed):
    done = subprocess.run(
        [installed.program, "show"], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (4, "unknown")
    assert texts.program().startswith("#!/usr/bin/env -S python3 -IS\n")


@pytest.mark.parametrize("python", pythons())
def test_it_loads_its_own_folder_and_the_standard_library_alone(installed, tmp_path, python):
    """Neither the caller's folder nor its environment brings in a module."""
    (tmp_path / "json.py").write_text("raise SystemExit('the caller came in')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    assert installed.shown(python=python, cwd=tmp_path, env=environment)["outcome"] == "unknown"
    done = installed.run("drain", python=python)
    assert (done.returncode, done.stderr) == (64, "usage: health-check [prolog|epilog|show]\n")
    assert {path.name.split(".")[0] for path in installed.cached()} >= {"main", "verdict", "nvlink"}


def test_what_python_keeps_is_used_again_and_written_by_root_alone(installed):
    first = installed.shown(umask=0)
    kept = {path: path.stat().st_mtime_ns for path in installed.cached()}
    assert len(kept) == len(texts.modules())
    assert all(path.stat().st_mode & 0o022 == 0 for path in (*kept, *{path.parent for path in kept}))
    assert installed.shown(umask=0) == first
    assert {path: path.stat().st_mtime_ns for path in installed.cached()} == kept


@pytest.mark.parametrize("length", [0, 15, 16, 40, -1])
def test_half_a_file_in_the_cache_is_not_stumbled_over(installed, length):
    before = installed.shown()
    (cached,) = (path for path in installed.cached() if path.name.startswith("verdict."))
    whole = cached.read_bytes()
    cached.write_bytes(whole[:length])
    assert installed.shown() == before
    assert installed.shown() == before
    assert cached.read_bytes() == whole


def test_an_edited_module_is_compiled_again(installed):
    installed.shown()
    installed.verdict.write_text(installed.verdict.read_text() + "raise SystemExit('edited')\n")
    assert installed.run().stderr == "edited\n"


@pytest.mark.parametrize("name", ["rackwright/health/verdict.py", "rackwright/health/guard/main.py"])
def test_a_missing_module_is_named_and_nothing_is_judged(installed, name):
    installed.shown()
    (installed.modules / name).unlink()
    done = installed.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert name.removesuffix(".py").replace("/", ".") in done.stderr


def test_a_full_disk_does_not_change_the_verdict_then_or_later(installed):
    """Python before 3.12.8 keeps as much of a file as the disk takes."""

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    before = installed.shown(preexec_fn=full)
    assert installed.shown(preexec_fn=full) == before
    assert installed.shown() == before
    assert installed.shown() == before
    assert len(installed.cached()) == len(texts.modules())
    assert min(path.stat().st_size for path in installed.cached()) > 64


def test_passes_at_the_same_time_do_not_disturb_each_other(installed):
    command = [sys.executable, "-IS", installed.program, "show"]
    passes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(6)
    ]
    for one in passes:
        out, err = one.communicate(timeout=240)
        assert (one.returncode, err, json.loads(out)["outcome"]) == (4, "", "unknown")
    assert len(installed.cached()) == len(texts.modules())


def test_a_program_of_another_version_goes_on_with_its_own_modules(installed, tmp_path):
    """The new version lies in another folder, so that no pass loads modules of both."""
    before = installed.shown()
    other = Installed(tmp_path / "other")
    other.verdict.write_text("raise SystemExit('another version')\n")
    assert installed.shown() == before
    shutil.copy(other.program, installed.program)
    assert installed.run().stderr == "another version\n"


def test_a_python_that_is_too_old_is_refused_with_a_sentence():
    tree = ast.parse(texts.program(), feature_version=(3, 6))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(guarded) == (
        "if sys.version_info < (3, 9):\n    sys.exit('this needs Python 3.9 or newer')"
    )
    assert [ast.unparse(node) for node in tree.body[: tree.body.index(guarded)]] == ["import sys"]
