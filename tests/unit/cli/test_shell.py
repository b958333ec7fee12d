"""The program around its commands: lazy loading, errors, exit statuses."""

from __future__ import annotations

import signal
import subprocess
import sys
import types

import pytest
import typer

from rackwright import __version__
from rackwright.cli import _COMMANDS, _SECTIONS
from rackwright.errors import ConnectionFailed, ExitCode


@pytest.fixture
def command(monkeypatch):
    """A command `probe` that runs the given function."""

    def register(function):
        module = types.ModuleType("rackwright.cli.probe")
        module.probe_command = function
        monkeypatch.setitem(sys.modules, "rackwright.cli.probe", module)
        monkeypatch.setitem(_COMMANDS, "probe", "A command for tests.")

    return register


def test_version(rackwright):
    assert rackwright("--version").out == f"rackwright {__version__}\n"


def test_help_names_every_command_and_the_exit_statuses(rackwright):
    result = rackwright("--help")
    assert result.status == 0
    sections = result.out.partition("--help")[2].partition("\n\n")[2].partition("\n\n  Exit status")[0]
    listed = [line.split()[0] for line in sections.splitlines() if line.startswith("  ")]
    assert listed == list(_COMMANDS)
    assert [line for line in sections.splitlines() if line and not line.startswith("  ")] == [
        f"{heading}:" for heading in _SECTIONS.values()
    ]
    assert "..." not in sections, "a summary is cut off"
    assert "64 usage" in result.out


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["vaildate"], "There is no command vaildate.", "did you mean `validate`?"),
        (["validate"], "Missing argument 'FILE'.", "see `rackwright validate --help`"),
        (["validate", "--quick"], "No such option: --quick", "see `rackwright validate --help`"),
        (["--quick"], "No such option: --quick", "see `rackwright --help`"),
    ],
)
def test_usage(rackwright, arguments, message, hint):
    result = rackwright(*arguments)
    assert (result.status, result.out, result.err) == (64, "", f"error: {message}\nhint: {hint}\n")


def test_no_arguments_is_a_usage_error_that_shows_the_help(rackwright):
    result = rackwright()
    assert result.status == ExitCode.USAGE
    assert "Describe:" in result.err + result.out


def test_an_error_of_ours(rackwright, command):
    def fail() -> None:
        raise ConnectionFailed("gpu001 refused our key.", hint="ask its admin")

    command(fail)
    result = rackwright("probe")
    assert (result.status, result.out) == (1, "")
    assert result.err == "error: gpu001 refused our key.\nhint: ask its admin\n"


@pytest.mark.parametrize("status", list(ExitCode))
def test_exit_statuses_of_commands_pass_through(rackwright, command, status):
    def leave() -> None:
        raise typer.Exit(int(status))

    command(leave)
    assert rackwright("probe").status == status


def test_ctrl_c_is_one_line(rackwright, command):
    def interrupted() -> None:
        raise KeyboardInterrupt

    command(interrupted)
    result = rackwright("probe")
    assert (result.status, result.out, result.err) == (130, "", "interrupted\n")


def test_a_bug_shows_a_traceback_without_local_variables(tmp_path):
    program = (
        "import sys, types; from rackwright.cli import _COMMANDS, main;"
        "module = types.ModuleType('rackwright.cli.probe');"
        "exec('def probe_command() -> None:\\n    key = \"hunter\" + str(2)\\n    raise ZeroDivisionError', vars(module));"
        "sys.modules[module.__name__] = module; _COMMANDS['probe'] = 'x'; sys.argv = ['rackwright', 'probe']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


def test_the_help_loads_no_command():
    program = (
        "import sys; from rackwright.cli import run; run(['--help']);"
        "print(sorted(name for name in sys.modules if name.startswith('rackwright.cli.') or name == 'pyinfra'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout.endswith("['rackwright.cli.groups', 'rackwright.cli.lines']\n"), "no command"


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m rackwright schema | head -1"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_sigint_to_the_process():
    program = (
        "import sys, types, time; from rackwright.cli import _COMMANDS, main;"
        "module = types.ModuleType('rackwright.cli.probe');"
        "exec('import time\\ndef probe_command() -> None:\\n    print(\"ready\", flush=True)\\n    time.sleep(600)', vars(module));"
        "sys.modules[module.__name__] = module; _COMMANDS['probe'] = 'x'; sys.argv = ['rackwright', 'probe']; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert (process.returncode, err) == (130, "interrupted\n")
