"""What lands on a node of a certificate and its key, by the operation's own script in a real shell."""

from __future__ import annotations

import base64
import os
import subprocess
from datetime import UTC, datetime

import pytest

from rackwright.model.services import Certificate
from rackwright.operations import certificates
from tests.unit.certificates.authorities import NAMES, issuer

ISSUED = issuer().issue(NAMES, datetime.now(UTC))


@pytest.fixture
def folder(tmp_path):
    """A folder with an odd name, and a chown that a user may call."""
    (tmp_path / "bin").mkdir()
    chown = tmp_path / "bin/chown"
    chown.write_text('#!/bin/sh\necho "$1 ${2##*/}" >>"${0%/*}/../chowned"\n')
    chown.chmod(0o755)
    (tmp_path / "it's").mkdir()
    return tmp_path / "it's"


def wanted(folder):
    return Certificate(
        "registry", f"{folder}/site ca.key", f"{folder}/site ca.crt", NAMES, group="docker-registry"
    )


def write(folder, stdin):
    script = certificates._script(wanted(folder))
    path = f"{folder.parent}/bin:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script],
        input=stdin,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
        env={"PATH": path},
    )


def test_key_and_certificate_land_with_their_access(folder):
    (folder / "site ca.key").write_text("old")
    (folder / ".site ca.key.rackwright-999999999").write_text("left by a power cut")
    done = write(folder, certificates._stdin(ISSUED))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    there = {path.name: (path.read_text(), oct(path.stat().st_mode)[-3:]) for path in folder.iterdir()}
    assert there == {"site ca.key": (ISSUED.key, "640"), "site ca.crt": (ISSUED.chain, "644")}
    chowned = (folder.parent / "chowned").read_text().splitlines()
    assert [line.split()[0] for line in chowned] == ["root:docker-registry", "root:root"]
    assert (folder / "site ca.crt").stat().st_mtime_ns >= (folder / "site ca.key").stat().st_mtime_ns


@pytest.mark.parametrize("kept", [0, 10, 300, -1, -200])
def test_what_did_not_arrive_whole_changes_nothing(folder, kept):
    """A sender that is killed sends half of it; what a plan makes sends nothing."""
    (folder / "site ca.key").write_text("old")
    stdin = certificates._stdin(ISSUED).rstrip("\n")[: kept or 0] if kept else ""
    assert write(folder, stdin).returncode != 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"site ca.key": "old"}


def test_the_command_holds_neither_key_nor_certificate(folder):
    script = certificates._script(wanted(folder))
    for text in (ISSUED.key, ISSUED.chain):
        assert base64.b64encode(text.encode()).decode()[:40] not in script
        assert text.splitlines()[1] not in script
    assert script == certificates._script(wanted(folder))
