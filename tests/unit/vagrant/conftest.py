"""The Vagrantfile, run by ruby without Vagrant: what it would set."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli import run

ROOT = Path(__file__).resolve().parents[3]
VAGRANTFILE = ROOT / "vagrant" / "Vagrantfile"
Calls = dict[str, list[list[Any]]]
"""Path of a setting or call to its arguments, once for each time."""


@pytest.fixture(scope="session")
def ruby() -> str:
    """Ruby's path; the tests that need it are skipped, and listed, where it is not installed."""
    found = shutil.which("ruby")
    if found is None:
        pytest.skip("UNKNOWN: ruby is not installed (apt install ruby), so the Vagrantfile was not run")
    return found


@pytest.fixture
def load(
    ruby: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Loads the Vagrantfile for a cluster file and a provider."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RACKWRIGHT", "VAGRANT"))}

    def load(
        cluster_file: Path, provider: str = "libvirt", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        program = _answering_as_now(tmp_path / "rackwright", cluster_file, capsys)
        own = {"RACKWRIGHT": str(program), "RACKWRIGHT_CLUSTER": str(cluster_file)}
        return subprocess.run(
            [ruby, str(Path(__file__).with_name("recorder.rb")), str(VAGRANTFILE), provider],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**kept, **own, **variables},
        )

    return load


def _answering_as_now(program: Path, cluster_file: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A program that answers what `rackwright show FILE --json` answers, and is quick to start."""
    status = run(["show", str(cluster_file), "--json"])
    answer = capsys.readouterr()
    program.with_suffix(".out").write_text(answer.out)
    program.with_suffix(".err").write_text(answer.err)
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$*" = "show {cluster_file} --json" ] || exit 99\n'
        f"cat {program}.out; cat {program}.err >&2; exit {status}\n"
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def calls(load: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Calls]:
    """What the Vagrantfile sets, by path; paths of a VM begin with its name."""

    def calls(cluster_file: Path, provider: str = "libvirt", **variables: str) -> Calls:
        done = load(cluster_file, provider, **variables)
        assert done.returncode == 0, done.stderr
        found: Calls = {}
        for path, arguments in json.loads(done.stdout):
            found.setdefault(path, []).append(arguments)
        return found

    return calls
