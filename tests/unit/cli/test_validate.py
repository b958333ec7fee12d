"""rackwright validate."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from tests.unit.clusterfile.base_file import BASE, change

BAD = change(("user: admin", "user: root"), ("munge: {}", "munge: {password: hunter2}"))


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text(BASE)
    return path


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    return path


def test_a_correct_file(rackwright, good):
    result = rackwright("validate", good)
    assert (result.status, result.out, result.err) == (0, f"{good}: correct, 5 nodes\n", "")


def test_a_wrong_file(rackwright, bad):
    result = rackwright("validate", bad)
    assert result.status == 1
    assert result.out == (
        f"{bad}:29:9: ssh.user: "
        "rackwright logs in as an unprivileged user and becomes root with sudo, never as root.\n"
        "  value: root\n"
        "  hint: name an unprivileged user, e.g. `admin`\n"
        "\n"
        f"{bad}:60:21: roles.munge.password: Secret in plaintext.\n"
        "  hint: remove it and treat it as leaked; rackwright generates secrets and keeps them encrypted\n"
    )
    assert result.err == f"\n{bad}: 2 mistakes\n"


def test_json_of_a_correct_file(rackwright, good):
    result = rackwright("validate", good, "--json")
    assert result.status == 0
    assert json.loads(result.out) == {"version": 1, "file": str(good), "valid": True, "problems": []}


def test_json_of_a_wrong_file(rackwright, bad):
    result = rackwright("validate", bad, "--json")
    assert result.status == 1
    document = json.loads(result.out)
    assert {key: document[key] for key in ("version", "file", "valid")} == {
        "version": 1,
        "file": str(bad),
        "valid": False,
    }
    assert document["problems"][0] == {
        "file": str(bad),
        "line": 29,
        "column": 9,
        "path": "ssh.user",
        "value": "root",
        "message": "rackwright logs in as an unprivileged user and becomes root with sudo, never as root.",
        "hint": "name an unprivileged user, e.g. `admin`",
    }
    assert document["problems"][1]["value"] is None
    assert "hunter2" not in result.out


def ranges(count: int) -> str:
    return change(
        ("10.1.0.0/24", "10.1.0.0/18"),
        ("10.3.0.0/24", "10.3.0.0/17"),
        ("rail_prefix: 25", "rail_prefix: 18"),
        ("nodes: w[1-4]", f"nodes: w[1-{count}]"),
    )


def singles(count: int) -> str:
    entries = "".join(
        f"  - nodes: w{number}\n"
        "    roles: [worker]\n"
        "    sku: own-node\n"
        f"    addresses: {{mgmt: 10.1.{4 + number // 250}.{1 + number % 250}}}\n"
        f"    macs: ['52:54:00:00:{number // 256:02x}:{number % 256:02x}']\n"
        f"    rack: r{number // 40}\n"
        f"    position: {number % 40}\n"
        for number in range(count)
    )
    before, _, after = ranges(4).partition("  - nodes: w[1-4]\n")
    return before + entries + after[after.index("\nroles:") :]


@pytest.mark.parametrize("text", [ranges(1000), singles(1000)], ids=["ranges", "singles"])
def test_a_thousand_nodes_take_about_a_second_and_no_pyinfra(tmp_path, text):
    """CPU seconds, with room for a busy machine; the modules are what makes it slow or fast."""
    path = tmp_path / "large.yaml"
    path.write_text(text)
    program = (
        "import sys; from rackwright.cli import run; status = run(['validate', sys.argv[1]]);"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'pyinfra', 'testinfra', 'gevent', 'paramiko', 'rich', 'jinja2', 'pyrage'})); sys.exit(status)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=240, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout == f"{path}: correct, 1001 nodes\n[]\n", done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3
