"""Asking a service with a password: the password is in no argument."""

from __future__ import annotations

import os
import subprocess

import pytest

from rackwright.claims.web import ASK

CURL = """\
#!/bin/sh
printf 'arguments: %s\\n' "$*"
cat
"""


@pytest.fixture
def ask(tmp_path):
    """Asks with a `curl` that prints what it was given, and a password file that holds this."""
    (tmp_path / "curl").write_text(CURL)
    (tmp_path / "curl").chmod(0o755)

    def run(password):
        file = tmp_path / "password"
        if password is not None:
            file.write_text(password)
        return subprocess.run(
            ["sh", "-c", ASK, "sh", "prometheus", str(file), "https://head1/metrics"],
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )

    return run


def test_the_password_goes_to_curl_s_stdin_and_into_no_argument(ask):
    arguments, stdin = ask("open sesame\n").stdout.splitlines()
    assert arguments.endswith("https://head1/metrics")
    assert "sesame" not in arguments
    assert stdin == 'user = "prometheus:open sesame"'


def test_without_a_password_nothing_is_asked(ask):
    found = ask(None)
    assert found.returncode != 0
    assert "arguments:" not in found.stdout
