"""The code that the installed health check keeps between its starts: used when it is its own, else as if absent."""

from __future__ import annotations

import ast
import importlib.util
import os
import resource
import subprocess
import sys
import time

import pytest

from rackwright.health import loader
from rackwright.health.bundle import GUARD, script, sources_of
from rackwright.health.guard import places
from tests.unit.health.test_bundle import pythons

PLANTED = compile("def main(arguments):\n    print('kept')\n", "planted", "exec")


class Program:
    """The script at its installed place, its state in a folder of the test."""

    def __init__(self, folder):
        self.path, self.state = folder / "health-check", folder / "state"
        self.code = self.state / "health-check.code"
        self.state.mkdir(mode=0o755)
        self.install()

    def install(self, more=""):
        text = script(GUARD).replace(places.PROGRAM, str(self.path)).replace(places.STATE, str(self.state))
        self.path.write_text(text + more)

    def run(self, *options, python=sys.executable, **more):
        """What `show` prints; the verdict of a machine that does not know what it should be."""
        done = subprocess.run(
            [python, "-I", *options, self.path, "show"],
            capture_output=True, text=True, timeout=240, check=False, **more,
        )  # fmt: skip
        assert done.stderr == ""
        assert done.stdout == "kept\n" or '"outcome": "unknown"' in done.stdout
        return done.stdout

    def digest(self):
        return ast.literal_eval(self.path.read_text().rpartition("health-check.code', ")[2].partition(")")[0])

    def plant(self):
        """Keep code that is of this script by every mark, and says so when it runs."""
        loader.keep(
            str(self.code), loader.identity(str(self.path), self.digest()), {**MODULES, GUARD: PLANTED}
        )
        return self


MODULES = {
    name: compile("", name, "exec") for name in ("rackwright", "rackwright.health", "rackwright.health.guard")
}


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def test_the_first_start_keeps_its_code_and_the_next_uses_it(program):
    first = program.run()
    assert [path.name for path in program.state.iterdir()] == ["health-check.code"]
    assert program.code.stat().st_mode & 0o777 == 0o600
    kept = program.code.stat().st_mtime_ns
    assert program.run() == first
    assert program.code.stat().st_mtime_ns == kept, "it is not written again"
    assert program.plant().run() == "kept\n"


def edited(program):
    program.install("# edited\n")


def edited_to_the_same_size_and_time(program):
    before = program.path.stat()
    text = program.path.read_text()
    program.path.write_text(text.replace("Reads this node", "Heeds this node"))
    os.utime(program.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert program.path.stat().st_size == before.st_size


@pytest.mark.parametrize("change", [edited, edited_to_the_same_size_and_time])
def test_an_edited_script_is_compiled_again_into_the_same_file(program, change):
    program.plant()
    change(program)
    assert program.run() != "kept\n"
    assert [path.name for path in program.state.iterdir()] == ["health-check.code"]
    assert program.plant().run() == "kept\n"


def test_what_the_script_was_made_with_is_of_its_identity(program):
    program.plant()
    path = str(program.path)
    assert loader.kept(str(program.code), loader.identity(path, program.digest())) is not None
    assert loader.kept(str(program.code), loader.identity(path, program.digest()[::-1])) is None
    assert script(GUARD).count(program.digest()) == 1


def test_another_python_compiles_again(program, monkeypatch):
    with monkeypatch.context() as other:
        other.setattr(importlib.util, "MAGIC_NUMBER", b"\x00\x00\r\n")
        program.plant()
    assert program.run() != "kept\n"
    assert program.plant().run("-O") != "kept\n"
    for python in pythons()[1:]:
        assert program.plant().run(python=python) != "kept\n"


DAMAGES = {
    "a wrong byte that Python would run": lambda data: data.replace(b"kept", b"wept"),
    "its end is missing": lambda data: data[:-9],
    "its beginning alone": lambda data: data.partition(b"\n")[0] + b"\n",
    "nothing in it": lambda data: b"",
    "something else": lambda data: os.urandom(5000),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_ignored_and_replaced(program, damage):
    program.plant()
    program.code.write_bytes(DAMAGES[damage](program.code.read_bytes()))
    damaged = program.code.read_bytes()
    assert program.run() != "kept\n"
    assert program.code.read_bytes() != damaged


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_code_that_others_may_write_is_not_believed(program, mode):
    program.plant().code.chmod(mode)
    assert program.run() != "kept\n"
    assert program.code.stat().st_mode & 0o777 == 0o600


def test_code_of_another_user_is_not_believed(program, monkeypatch):
    program.plant()
    wanted = loader.identity(str(program.path), program.digest())
    assert loader.kept(str(program.code), wanted) is not None
    if os.geteuid() == 0:
        os.chown(program.code, 65534, 65534)
        assert program.run() != "kept\n"
        assert program.plant().run() == "kept\n"
    monkeypatch.setattr(os, "geteuid", lambda: 65533)
    assert loader.kept(str(program.code), wanted) is None


def test_a_link_or_a_pipe_in_its_place_is_not_read(program):
    program.plant()
    program.code.rename(program.state / "elsewhere")
    program.code.symlink_to("elsewhere")
    assert program.run() != "kept\n"
    program.code.unlink()
    os.mkfifo(program.code, 0o600)
    assert program.run() != "kept\n"
    assert program.plant().run() == "kept\n"


def no_folder(program):
    program.state.rmdir()


def a_folder_others_may_write(program):
    program.state.chmod(0o777)


def a_folder_in_its_place(program):
    program.code.mkdir()


@pytest.mark.parametrize("trouble", [no_folder, a_folder_others_may_write, a_folder_in_its_place])
def test_where_nothing_can_be_kept_the_verdict_is_the_same(program, trouble):
    told = program.run()
    program.code.unlink()
    trouble(program)
    assert program.run() == told
    assert not [path for path in program.state.parent.rglob("*.code*") if path.is_file()]


def test_a_full_disk_leaves_nothing_half_written(program):
    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    told = program.run()
    program.code.unlink()
    assert program.run(preexec_fn=full) == told
    assert list(program.state.iterdir()) == []


def test_a_folder_of_another_user_gets_nothing(program, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 65533)
    program.plant()
    assert list(program.state.iterdir()) == []


def test_what_a_killed_start_has_left_goes_away_and_another_one_is_not_disturbed(program):
    new = program.state / "health-check.code.new"
    new.write_text("another start writes this")
    program.run()
    assert [path.name for path in program.state.iterdir()] == [new.name]
    old = time.time() - 2 * loader.LEFTOVER_SECONDS
    os.utime(new, (old, old))
    program.run()
    program.run()
    assert [path.name for path in program.state.iterdir()] == [program.code.name]


def test_from_stdin_or_from_another_place_nothing_is_left_behind(program):
    done = subprocess.run(
        [sys.executable, "-I", "-", "show"],
        input=program.path.read_text(), capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (4, "")
    assert loader.load(f"{loader.MARK}one\n", None, None, str(program.code), "").keys() == {"one"}
    program.path = program.path.rename(program.path.parent / "copied")
    program.run()
    assert list(program.state.iterdir()) == []


def test_every_module_stands_in_the_script_as_it_is():
    text = script(GUARD)
    parts = loader.split(text.partition("SOURCES = r'''\n")[2].partition("'''")[0])
    assert {name: source.rstrip("\n") for name, source in parts.items()} == {
        name: source.rstrip("\n") for name, source in sources_of(GUARD).items()
    }
    assert all(f"\n{loader.MARK}{name}\n{source}" in text for name, source in sources_of(GUARD).items())
    assert text.startswith("#!/usr/bin/env -S python3 -IS\n")


def test_a_python_that_is_too_old_can_read_the_script_far_enough_to_say_so():
    """No future import, and no annotation that it would evaluate and stumble over."""
    tree = ast.parse(script(GUARD), feature_version=(3, 6))
    assert not [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    annotations = [one.annotation for node in functions for one in node.args.args]
    annotations += [node.returns for node in functions]
    assert functions
    assert not [one for one in annotations if isinstance(one, ast.Subscript | ast.BinOp)]
