"""Secrets of Kubernetes: the commands run by a shell beside a kubectl that keeps what it is given."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from rackwright.operations.kubernetes_secret import digest_of, manifest, read_command, write_command

DATA = {"munge.key": b"\x00\x01\xff", "note": b"a b"}
KUBECTL = """\
#!/usr/bin/env python3
import json, os, pathlib, sys
kept = pathlib.Path(sys.argv[0]).with_name("kept.yaml")
with pathlib.Path(sys.argv[0]).with_name("calls").open("a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
words = sys.argv[3:]
if os.environ.get("DOWN"):
    sys.exit(1)
if words[0] == "apply":
    kept.write_text(sys.stdin.read())
elif words[:2] == ["get", "secret"]:
    if not kept.exists():
        sys.exit(1)
    import yaml
    data = yaml.safe_load(kept.read_text())["data"] | json.loads(os.environ.get("MORE", "{}"))
    print(len(data), end="") if "len" in words[-1] else [print(key, value) for key, value in reversed(data.items())]
elif words[:2] == ["get", "namespace"]:
    sys.exit(1)
"""


@pytest.fixture
def shell(tmp_path):
    """Runs a command with that kubectl; (exit status, output)."""
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)

    def run(command, stdin="", **environment):
        done = subprocess.run(
            ["sh", "-c", command],
            input=stdin,
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    run.calls = lambda: (tmp_path / "calls").read_text()
    return run


def written(shell, **environment):
    return shell(
        write_command("slurm", "munge", len(DATA)),
        manifest("r", "slurm", "munge", DATA, "Opaque"),
        **environment,
    )


def test_what_is_written_is_what_is_read(shell):
    assert shell(read_command("slurm", "munge")) == (0, "absent")
    assert written(shell) == (0, "")
    assert shell(read_command("slurm", "munge")) == (0, digest_of(DATA))
    assert digest_of({**DATA, "note": b"a c"}) != digest_of(DATA)


def test_no_value_is_an_argument(shell):
    written(shell)
    calls = shell.calls()
    assert "create namespace slurm" in calls
    assert "--server-side" in calls
    for secret in ("AAH/", "YSBi"):
        assert secret not in calls
        assert secret not in write_command("slurm", "munge", 2) + read_command("slurm", "munge")


def test_an_api_that_does_not_answer_is_not_an_absent_secret(shell):
    assert shell(read_command("slurm", "munge"), DOWN="1") == (0, "")
    assert written(shell, DOWN="1")[0] == 1


def test_a_key_of_another_manager_is_named(shell):
    status, said = written(shell, MORE=json.dumps({"other": "eA=="}))
    assert status == 1
    assert said == "secret munge in slurm has keys that another manager added: remove it and apply again"
