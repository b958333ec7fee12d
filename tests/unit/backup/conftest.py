"""A head in a folder of this machine: its places, its settings, and an `age` that only marks what it gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.backup import main, places

# the header of an encrypted file with two recipients, then the content in clear: what is written is looked at
AGE = """\
#!/bin/sh
[ "$1 $2" = "--encrypt -R" ] && [ -r "$3" ] || exit 2
printf 'age-encryption.org/v1\\n-> X25519 a\\nb\\n-> X25519 c\\nd\\n--- mac\\n'
cat
"""
HEADER = b"age-encryption.org/v1\n-> X25519 a\nb\n-> X25519 c\nd\n--- mac\n"


class Head:
    """Its folders, and what is declared of its backups."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "place"
        self.state = folder / "state"
        self.spool = folder / "spool"
        self.programs = folder / "bin"
        for made in (self.state, self.spool, self.programs):
            made.mkdir()
        (self.spool / "job_state").write_text("jobs")
        self.parts: list[dict[str, Any]] = [
            {"name": "database", "about": "database", "dump": "printf rows", "folder": None, "ready": "true"},
            {"name": "slurmctld", "about": "state", "dump": None, "folder": str(self.spool), "ready": "true"},
        ]
        self.declare()

    def declare(self, **changes: Any) -> None:
        declared = {
            "cluster": "test",
            "node": "head1",
            "place": str(self.place),
            "mount": None,
            "textfiles": str(self.folder / "exporter"),
            "keep": 2,
            "keep_weekly": 0,
            "recipients": ["age1a", "age1b"],
            "parts": self.parts,
            **changes,
        }
        (self.folder / "settings.json").write_text(json.dumps(declared))

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def last(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.state / "last.json").read_text())
        return found

    def backups(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir() if not path.name.startswith("."))


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    found = Head(tmp_path)
    found.program("age", AGE)
    monkeypatch.setenv("PATH", f"{found.programs}:/usr/bin:/bin")
    for name, path in {
        "SETTINGS": "settings.json",
        "RECIPIENTS": "settings.json",
        "STATE": "state",
        "LAST": "state/last.json",
        "INSTALLATION": "state/installation",
        "LOCK": "state/lock",
        "RESTORE": "restore",
        "UNFINISHED": "restore/unfinished.json",
        "RESTORE_LOCK": "restore/lock",
        "METRICS_FOLDER": "metrics",
        "METRICS": "metrics/backup.prom",
    }.items():
        monkeypatch.setattr(places, name, str(tmp_path / path))
    monkeypatch.setattr(places, "GUARD", str(tmp_path / "units/{unit}.d/guard.conf"))
    monkeypatch.setattr(main, "ROOT", found.folder.stat().st_uid)
    (tmp_path / "units").mkdir()
    return found
