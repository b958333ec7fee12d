"""What the login shell of ssh.user makes of a command: noise before it, its locale, and its quoting."""

import shutil
import subprocess

import pytest

from rackwright.ssh.login_shell import MARK, command_line, without_greeting

ODD = r"""printf '%s|' 'a\\b' "it's" 'c\nd' '\'"'"'x' "\$HOME" '!' '*' '~'; printf '\136' | sed 's/\^/\\1/'"""
"""A shell command full of what shells interpret in different ways."""


def ran(*command, **environment):
    done = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, check=False, timeout=60
    )
    return without_greeting(done.stdout).decode()


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish"])
def test_every_login_shell_hands_on_the_same_command(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here; tests/racks/control_side has it on a node")
    assert ran(shell, "-c", command_line(ODD, sudo=False)) == ran("sh", "-c", ODD)


def test_no_backslash_is_left_inside_single_quotes():
    """fish interprets them there, and POSIX shells do not."""
    line = command_line(r"sed 's/\(a\)\\/\1/'", sudo=True)
    quoted = False
    for at, one in enumerate(line):
        if one == "'" and not line[:at].endswith('"'):
            quoted = not quoted
        assert one != "\\" or line[at - 1] in '"\\', line[max(0, at - 10) : at + 10]


def test_messages_are_english_whatever_the_locale():
    assert (
        ran("sh", "-c", command_line("echo $LC_ALL", sudo=False), LANG="de_DE.UTF-8", LC_ALL="de_DE.UTF-8")
        == "C\n"
    )


@pytest.mark.parametrize(
    ("stdout", "left"),
    [
        (f"hello\nhello again\n{MARK}\nout\n", "out\n"),
        (f"{MARK}\n", ""),
        (f"{MARK}\n{MARK}\n", f"{MARK}\n"),
        ("sudo: a password is required\n", "sudo: a password is required\n"),
        ("", ""),
    ],
)
def test_what_comes_before_the_output_is_left_out(stdout, left):
    assert without_greeting(stdout.encode()).decode() == left


def test_root_is_asked_for_without_a_password():
    assert command_line("true", sudo=True).startswith("exec sudo -n -H env LC_ALL=C sh -c ")
