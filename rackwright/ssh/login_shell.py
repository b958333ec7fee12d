"""Commands as the login shell of `ssh.user` gets them, and their output without what that shell prints before.

sshd hands every command to the login shell, which may be bash, zsh or fish, may print a greeting from its start
file, and has whatever locale PAM set. So a command begins in a shell and a locale of our choice, a mark separates
its output from greetings, and no backslash is inside single quotes, where fish alone would interpret it
(fishshell.com, "The fish language: Quotes", read 2026-11-23).
"""

from __future__ import annotations

from shlex import quote

MARK = "rackwright-output-begins"
_IN_ANY_SHELL = "'\"\\\\\"'"
"""A backslash within a single-quoted word: the quotes end, a double-quoted backslash, the quotes begin again."""


def command_line(command: str, *, sudo: bool) -> str:
    """What to send for a shell command: POSIX sh, English messages, and as root with `sudo`."""
    script = quote(f"echo {MARK}\n{command}").replace("\\", _IN_ANY_SHELL)
    return f"exec {'sudo -n -H ' if sudo else ''}env LC_ALL=C sh -c {script}"


def without_greeting(stdout: bytes) -> bytes:
    """The output of the command alone; all of it where the command was not reached, e.g. because sudo refused."""
    before, mark, after = stdout.partition(f"{MARK}\n".encode())
    return after if mark else before
