"""Errors of other programs say which command it was and what it wrote."""

import os
import time

import pytest

from rackwright.errors import LabError
from rackwright.lab import process


def test_a_failure_shows_command_and_output():
    with pytest.raises(LabError) as caught:
        process.run(["sh", "-c", "echo no such thing >&2; exit 3"], timeout=240)
    assert caught.value.message == (
        "sh -c 'echo no such thing >&2; exit 3' failed with exit code 3\nno such thing"
    )


def test_a_timeout_ends_the_children_too():
    started = time.monotonic()
    with pytest.raises(LabError, match=r"took more than 0\.2 s"):
        process.run(["sh", "-c", "sleep 600 & sleep 600"], timeout=0.2)
    assert time.monotonic() - started < 120


def test_missing_programs_name_their_packages_all_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(process.shutil, "which", lambda name, path: None)
    with pytest.raises(LabError) as caught:
        process.require(["systemd-nspawn"])
    assert caught.value.message == "systemd-nspawn is missing: apt-get install systemd-container"
    with pytest.raises(LabError) as caught:
        process.require(["systemd-nspawn", "ip", "unshare", "nsenter"])
    assert caught.value.message == (
        "systemd-nspawn, ip, unshare, nsenter are missing: apt-get install iproute2 systemd-container util-linux"
    )


def test_not_root_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError) as caught:
        process.require([])
    assert (caught.value.message, caught.value.hint) == (
        "the lab needs root",
        "run the same command with sudo",
    )
