"""Tab in the shells themselves. A shell that is not installed here is skipped by name, as nothing is known of it then."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackwright.cli import run

ROOT = Path(__file__).resolve().parents[3]
SITE = """\
version: 1
nodes:
  - nodes: head1
  - nodes: gpu[001-003]
roles: {base: {}, slurm: {}}
"""
CONTROL = re.compile(r"\x1b(\[[0-9;?<>=]*[A-Za-z]|[()][A-Z0-9]|[=>]|\][^\x07]*\x07)|\r")
SECONDS = 60

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path):
    """A home with a cluster file, and `rackwright` on the PATH."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "rackwright"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m rackwright "$@"\n')
    program.chmod(0o755)
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "notes.txt").write_text("")
    return tmp_path


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": f"{home}/bin:{os.environ['PATH']}",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "XDG_CACHE_HOME": str(home / "cache"),
        "PS1": "$ ",
    }


def _script(shell: str, home: Path, capsys) -> Path:
    assert run(["completion", shell]) == 0
    path = home / f"rackwright.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


class Typing:
    """A shell on a terminal."""

    def __init__(self, command: list[str], home: Path) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execvpe(command[0], command, _environment(home))
        self.seen = ""

    def send(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def wait(self, pattern: str) -> str:
        """What is on the terminal since the last wait, once the pattern is in it."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if re.search(pattern, self.seen):
                seen, self.seen = self.seen, ""
                return seen
            if select.select([self._fd], [], [], 0.1)[0]:
                self.seen += CONTROL.sub("", os.read(self._fd, 4096).decode(errors="replace"))
        raise AssertionError(f"{pattern!r} is not in {self.seen!r}")

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


@pytest.fixture(params=["bash", "zsh"])
def shell(request, home, capsys):
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"UNKNOWN: {name} is not installed here")
    script = _script(name, home, capsys)
    typing = Typing({"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}[name], home)
    first = {
        "bash": "bind 'set show-all-if-ambiguous on'; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'",
        "zsh": "autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste prompt_sp; PS1='$ '",
    }[name]
    typing.send(f"{first}; source {script}; echo rea''dy\n")
    typing.wait("ready\n")
    yield typing
    typing.close()


def test_what_is_unique_is_written_out(shell):
    shell.send("rackwright app\t")
    shell.wait(r"rackwright apply ")
    shell.send("si\t")
    shell.wait(r"site\.yaml ")
    shell.send("--lim\t")
    shell.wait(r"--limit ")
    shell.send("he\t")
    shell.wait(r"head1 ")


def test_what_is_not_is_listed(shell):
    shell.send("rackwright why site.yaml gpu\t\t")
    assert re.search(r"gpu001\s+gpu002\s+gpu003", shell.wait("gpu003"))


def test_a_nodeset_with_brackets(shell):
    shell.send("rackwright verify site.yaml --limit head1,gpu\t\t")
    assert "head1,gpu" in shell.wait(r"gpu\\?\[001-003")


def test_words_with_colons(shell):
    shell.send("rackwright lab fault n1 disk:f\t")
    shell.wait(r"disk:fail ")
    shell.send("\x15rackwright lab fault n1 bmc:s\t\t")
    seen = shell.wait(r"(?s)slow.*swap|swap.*slow")
    assert "sel-full" in seen


def test_an_option_with_its_value_in_one_word(shell):
    shell.send("rackwright verify site.yaml --limit=he\t")
    shell.wait(r"--limit=head1 ")
    shell.send("\x15rackwright apply site.yaml --plan=not\t")
    shell.wait(r"notes\.txt ")


def test_nothing_is_printed_where_nothing_can_stand(shell):
    shell.send("rackwright nothing \t")
    shell.send("\x15echo pro''mpt\n")
    assert "rror" not in shell.wait("prompt\n")


def test_fish(home, capsys):
    if shutil.which("fish") is None:
        pytest.skip("UNKNOWN: fish is not installed here")
    script = _script("fish", home, capsys)

    def complete(line: str) -> list[str]:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f'source {script}; complete -C "{line}"'],
            capture_output=True, text=True, cwd=home, env=_environment(home), timeout=SECONDS, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.splitlines()

    assert complete("rackwright app") == ["apply\tShow the plan, confirm, bring nodes to the declared state."]
    assert [one.split("\t")[0] for one in complete("rackwright why si")] == ["site.yaml"]
    assert complete("rackwright why site.yaml gpu") == ["gpu001", "gpu002", "gpu003"]
    assert complete("rackwright verify site.yaml --limit=he") == ["--limit=head1"]
    assert complete("rackwright plan site.yaml --role ") == ["base", "slurm"]
    assert "disk:fail" in complete("rackwright lab fault n1 ")
    assert [one.split("\t")[0] for one in complete("rackwright apply site.yaml --plan no")] == ["notes.txt"]
    assert complete("rackwright nothing ") == []
    assert "apply\tShow the plan, confirm, bring nodes to the declared state." in complete("rackwright ")


def test_a_thousand_nodes_are_offered_at_once(home):
    (home / "large.yaml").write_text("version: 1\nnodes:\n" + "".join(
        f"  - nodes: r{rack:02}n[01-40]\n    rack: r{rack:02}\n    roles: [worker]\n" for rack in range(25)
    ))  # fmt: skip
    words = [str(home / "bin" / "rackwright"), "completion", "answer", "zsh", "--", "why", "large.yaml", "r"]

    def seconds() -> float:
        """Of the processor: other programs of this host do not count."""
        before = os.times()
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            cwd=home,
            env=_environment(home),
            timeout=SECONDS,
            check=True,
        )
        after = os.times()
        assert len(done.stdout.splitlines()) == 1001
        assert done.stderr == ""
        return after.children_user + after.children_system - before.children_user - before.children_system

    seconds()  # it loads the command, and keeps what it found
    assert min(seconds() for _ in range(3)) < 0.3
