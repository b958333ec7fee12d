"""A reviewed plan file is carried out exactly, or refused before anything is touched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.plan.document import check_plan
from tests.racks.site import Site, changed_by, operations

pytestmark = pytest.mark.lab

JOURNALD = "/etc/systemd/journald.conf.d/90-rackwright.conf"
BY_HAND = f"sed -i s/^SystemMaxUse=.*/SystemMaxUse=1G/ {JOURNALD}; printf 'a\\0b' >/etc/timezone"


@pytest.fixture
def reviewed(site: Site) -> Path:
    """The plan of two drifts on a node."""
    site.converge()
    site.on("worker1", BY_HAND)
    path = site.outputs / "reviewed.json"
    site.cli("plan", str(site.file), "--out", str(path), expect=2)
    return path


def _refused(site: Site, plan: Path, *said: str) -> None:
    known = len(site.runs())
    ran = site.cli("apply", str(site.file), "--yes", "--plan", str(plan), expect=1)
    for words in said:
        assert words in ran.err
    assert len(site.runs()) == known
    assert site.on("worker1", f"grep -c SystemMaxUse=1G {JOURNALD}") == "1\n"


def test_it_says_all_that_will_happen_and_that_happens(site: Site, reviewed: Path):
    plan = json.loads(reviewed.read_text())
    check_plan(plan)
    (_, mine) = plan["nodes"]
    by_name = {operation["name"]: operation for operation in mine["operations"]}
    written = by_name["Write journald's settings"]
    assert written["gates"] == [
        "tuning: Start journald with its settings (systemd-journald.service restarted)"
    ]
    assert any("mv -fT" in command for command in written["commands"])
    (restarted,) = by_name["Start journald with its settings"]["changes"]
    assert (restarted["after"], restarted["because"]) == (
        "restarted",
        "/etc/systemd/journald.conf.d changes",
    )
    (binary,) = by_name["Write /etc/timezone"]["changes"]
    assert binary["diff"] == []
    assert binary["before"].endswith(
        f", 3 bytes, sha256 {hashlib.sha256(b'a' + bytes(1) + b'b').hexdigest()[:12]}"
    )
    assert binary["after"].endswith(
        f", 4 bytes, sha256 {hashlib.sha256(b'UTC' + bytes([10])).hexdigest()[:12]}"
    )

    site.cli("apply", str(site.file), "--yes", "--plan", str(reviewed), expect=0)
    assert changed_by(site.runs()[-1]) == operations(plan)
    moved = site.cli("apply", str(site.file), "--yes", "--plan", str(reviewed), expect=1)
    assert "`base: Write /etc/timezone` is not needed any more" in moved.err


def test_it_is_refused_once_anything_moved(site: Site, reviewed: Path):
    known_hosts = site.folder / ".lab" / "known_hosts"
    moved = "rackwright's code, its templates, the secrets or the known host keys were changed"
    for path, said in ((site.file, f"{site.file} was changed"), (known_hosts, moved)):
        text = path.read_text()
        path.write_text(text + "# another line\n")
        try:
            _refused(site, reviewed, "nothing was changed", said)
        finally:
            path.write_text(text)
    site.on("head1", "rm /etc/timezone")
    _refused(site, reviewed, "nothing was changed", "head1: `base: Write /etc/timezone` is needed now")

    plan: dict[str, Any] = json.loads(reviewed.read_text())
    plan["nodes"][1]["operations"][0]["changes"][0]["kind"] = "mood"
    reviewed.write_text(json.dumps(plan))
    _refused(site, reviewed, "cannot be used: nodes.1.operations.0.changes.0.kind: Input should be 'file'")
    site.converge()
