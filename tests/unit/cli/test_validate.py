"""rackwright validate."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from tests.unit.clusterfile.base_file import BASE, change

PLAIN = ("kind: infiniband", "kind: ethernet")  # the base file's InfiniBand is on SKUs without such a port
BAD = change(PLAIN, ("user: admin", "user: root"), ("munge: {}", "munge: {password: hunter2}"))


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text(change(PLAIN))
    return path


@pytest.fixture
def odd(tmp_path):
    path = tmp_path / "odd.yaml"
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
        "rackwright logs in as an unprivileged user and uses sudo; it never logs in as root.\n"
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
    assert json.loads(result.out) == {
        "kind": "rackwright.validate",
        "version": 1,
        "file": str(good),
        "valid": True,
        "problems": [],
        "warnings": [],
    }


WARNING = "nodes[1].addresses.ib: ib is InfiniBand, but cpu-16c-64g has no fabric port; its links cannot be checked."
HINT = "declare a site SKU with the actual ports under `skus`, e.g. `nics: [{purpose: fabric, kind: infiniband, speed_gbps: 400, rail: 0}, ...]`"


def test_a_file_with_a_warning_is_correct(rackwright, odd):
    result = rackwright("validate", odd)
    assert (result.status, result.err) == (0, "")
    assert result.out == (
        f"warning: {odd}:54:11: {WARNING}\n"
        "  value: 10.3.0.11\n"
        f"  hint: {HINT}\n"
        "\n"
        f"{odd}: correct, 5 nodes, 1 warning\n"
    )


def test_strict_fails_on_a_warning_and_only_then(rackwright, odd, good):
    strict, plain = rackwright("validate", odd, "--strict"), rackwright("validate", odd)
    assert (strict.status, strict.out) == (1, plain.out)
    assert rackwright("validate", good, "--strict").status == 0


def test_json_of_a_file_with_a_warning(rackwright, odd):
    result = rackwright("validate", odd, "--json")
    assert result.status == 0
    document = json.loads(result.out)
    assert (document["valid"], document["problems"]) == (True, [])
    assert document["warnings"] == [
        {
            "file": str(odd),
            "line": 54,
            "column": 11,
            "path": "nodes[1].addresses.ib",
            "value": "10.3.0.11",
            "message": WARNING.partition(": ")[2],
            "hint": HINT,
        }
    ]
    assert rackwright("validate", odd, "--json", "--strict").status == 1


def test_warnings_follow_mistakes(rackwright, tmp_path):
    path = tmp_path / "both.yaml"
    path.write_text(change(("user: admin", "user: root")))
    result = rackwright("validate", path)
    assert result.status == 1
    blocks = result.out.split("\n\n")
    assert blocks[0].startswith(f"{path}:29:9: ssh.user: ")
    assert blocks[1].startswith(f"warning: {path}:54:11: {WARNING}")
    assert result.err == f"\n{path}: 1 mistake, 1 warning\n"
    assert [one["path"] for one in json.loads(rackwright("validate", path, "--json").out)["warnings"]] == [
        "nodes[1].addresses.ib"
    ]


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
        "message": "rackwright logs in as an unprivileged user and uses sudo; it never logs in as root.",
        "hint": "name an unprivileged user, e.g. `admin`",
    }
    assert document["problems"][1]["value"] is None
    assert "hunter2" not in result.out


def ranges(count: int) -> str:
    return change(
        PLAIN,
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


LOCKED = (
    PLAIN,
    ("      ib: 10.3.0.11\n", ""),
    ("switch: s[1-2]", "sku: dgx-h100"),
    ("ssh:\n", "gpu_stack:\n  driver: {branch: '580'}\n\nssh:\n"),
    ("munge: {}", "munge: {}\n  nvidia_driver: {}\n  persistence: {}\n  fabricmanager: {}"),
)
AGAIN = "run: rackwright lock locked.yaml"


def entries(rackwright, path, *edits):
    path.write_text(change(*LOCKED, *edits))
    found = json.loads(rackwright("validate", path, "--json").out)["problems"]
    return [(one["path"], one["message"], one["hint"]) for one in found]


def test_a_missing_lock_is_one_entry_after_the_files_own_mistakes(rackwright, tmp_path):
    path = tmp_path / "locked.yaml"
    missing = f"The lock file {tmp_path}/locked.lock.yaml does not exist."
    *others, last = entries(rackwright, path)
    assert last == ("gpu_stack", missing, f"correct the mistakes above, then {AGAIN}")
    assert [where for where, _, _ in others] == ["roles.nvidia_driver.repository_key"]
    *others, last = entries(rackwright, path, ("user: admin", "user: root"))
    assert [where for where, _, _ in others] == ["ssh.user", "roles.nvidia_driver.repository_key"]
    assert last[1] == missing


def test_a_missing_lock_alone_names_the_command(rackwright, tmp_path):
    path = tmp_path / "locked.yaml"
    path.write_text(change(*LOCKED).replace("  nvidia_driver: {}\n", "").replace("  fabricmanager: {}", ""))
    (problem,) = json.loads(rackwright("validate", path, "--json").out)["problems"]
    assert problem["message"] == f"The lock file {tmp_path}/locked.lock.yaml does not exist."
    assert (problem["path"], problem["hint"]) == ("gpu_stack", AGAIN)


def test_a_damaged_lock_is_one_entry_after_the_mistakes(rackwright, tmp_path):
    path = tmp_path / "locked.yaml"
    (tmp_path / "locked.lock.yaml").write_text("no lock\n")
    found = entries(rackwright, path)
    assert [where for where, _, _ in found] == ["roles.nvidia_driver.repository_key", "gpu_stack"]
    path.write_text(change(*LOCKED).replace("  nvidia_driver: {}\n", ""))
    (problem,) = json.loads(rackwright("validate", path, "--json").out)["problems"]
    assert problem["message"] == f"The lock file {tmp_path}/locked.lock.yaml is damaged."
    assert (problem["path"], problem["hint"]) == ("gpu_stack", AGAIN)
