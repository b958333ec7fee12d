"""Wraps commands for the login shell of `ssh.user`, and strips what that shell prints before the output.

sshd passes every command to the login shell, which may be bash, zsh or fish, may print a greeting from its startup
file, and has the locale that PAM set. So each command starts in a shell and a locale of our choice, a marker separates
its output from greetings, and no backslash is inside single quotes, where only fish would interpret it
(fishshell.com, "The fish language: Quotes", read 2026-11-23).
"""

from __future__ import annotations

from shlex import quote

MARK = "rackwright-output-begins"
_IN_ANY_SHELL = "'\"\\\\\"'"
"""A backslash in a single-quoted word: close the quotes, add a double-quoted backslash, reopen the quotes."""


def command_line(command: str, *, sudo: bool) -> str:
    """What to send for a shell command: POSIX sh, English messages, as root with `sudo`."""
    script = quote(f"echo {MARK}\n{command}").replace("\\", _IN_ANY_SHELL)
    return f"exec {'sudo -n -H ' if sudo else ''}env LC_ALL=C sh -c {script}"


def without_greeting(stdout: bytes) -> bytes:
    """The output of the command itself; all output if the command never started, e.g. because sudo refused."""
    before, mark, after = stdout.partition(f"{MARK}\n".encode())
    return after if mark else before
