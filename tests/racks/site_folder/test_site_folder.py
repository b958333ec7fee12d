"""From an empty folder with the wheel alone to an accepted rack with a role and a check of the site."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.racks.site_folder import own_role

ROOT = Path(__file__).resolve().parents[3]
NAME = f"site{os.getpid()}"

pytestmark = [pytest.mark.lab, pytest.mark.proof]


class Installed:
    """The wheel in a virtual environment, and a site folder; the checkout is not on any path."""

    def __init__(self, place: Path) -> None:
        self.bin = place / "venv" / "bin"
        self.folder = place / NAME  # which names the cluster
        self.environment = {
            **{
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("XDG_", "PYTHON", "VIRTUAL_"))
            },
            "PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin",
            "XDG_STATE_HOME": str(place / "state"),
            "XDG_CONFIG_HOME": str(place / "config"),
            "COLUMNS": "160",
        }

    def run(self, *command: object, status: int | None = 0, timeout: float = 1500) -> str:
        """Standard output and standard error of a program in the site's folder."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder if self.folder.exists() else self.folder.parent,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", place / "dist", ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = (place / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True, timeout=120)
    subprocess.run(
        [place / "venv/bin/pip", "-q", "install", wheel], check=True, capture_output=True, timeout=600
    )
    made = Installed(place)
    made.run("rackwright", "init", made.folder)
    yield made
    made.run("rackwright", "lab", "down", "cluster.yaml", status=None)


@pytest.fixture(scope="module")
def applied(installed):
    """The rack, with everything declared applied once."""
    own_role.add(installed.folder, "{path: /shared, quota_gib: 5}")
    installed.run("rackwright", "lab", "up", "cluster.yaml")
    installed.run("rackwright", "apply", "cluster.yaml", "--yes")
    return installed


def test_mistakes_in_the_own_role_have_their_line(installed):
    own_role.add(installed.folder, "{path: shared, quota_gb: 5}")
    out = installed.run("rackwright", "validate", "cluster.yaml", status=1)
    line = (installed.folder / "cluster.yaml").read_text().splitlines().index(
        "  shared: {path: shared, quota_gb: 5}"
    ) + 1
    assert f"cluster.yaml:{line}:18: roles.shared.path: Not an absolute path." in out
    assert f"cluster.yaml:{line}:26: roles.shared.quota_gb: Unknown key `quota_gb`." in out
    own_role.declare(installed.folder, "{path: /shared, quota_gib: 5}")
    assert "roles.shared.quota_gib" in installed.run("rackwright", "show", "cluster.yaml")


def test_a_second_apply_changes_nothing(applied):
    out = applied.run("rackwright", "apply", "cluster.yaml", "--yes")
    assert "plan: nothing to change on 3 of 3 nodes" in out


def test_role_and_check_are_in_the_report(applied):
    out = applied.run(
        "rackwright", "accept", "cluster.yaml", "--yes", "--report", applied.folder / "reports/one"
    )
    assert f"ACCEPTED: {NAME}, 3 nodes" in out
    report = json.loads((applied.folder / "reports/one/report.json").read_text())
    found = {(one["role"], one["check"], one["node"]): one for one in report["verify"]["results"]}
    assert found["shared", "every user can write to the shared folder", "worker1"]["status"] == "PASS"
    own = found["checks", "test_shared.py::test_ada_can_write", "worker2"]
    assert (own["status"], own["evidence"]) == ("PASS", "ada wrote /shared/of-ada")
    assert ("checks", "test_shared.py::test_ada_can_write", "head1") not in found
    page = (applied.folder / "reports/one/report.html").read_text()
    assert "test_ada_can_write" in page
    assert "every user can write to the shared folder" in page


def test_their_faults_are_found(applied):
    applied.run("rackwright", "lab", "exec", "worker2", "sh", "-c", "rm -f /shared/of-ada; chmod 755 /shared")
    verified = json.loads(applied.run("rackwright", "verify", "cluster.yaml", "--json", status=3))
    failed = {(one["role"], one["node"]) for one in verified["results"] if one["status"] == "FAIL"}
    assert failed == {("shared", "worker2"), ("checks", "worker2")}
    plan = applied.run("rackwright", "plan", "cluster.yaml", status=2)
    assert "worker2: Create the shared folder" in plan
    applied.run("rackwright", "apply", "cluster.yaml", "--yes")
    applied.run("rackwright", "verify", "cluster.yaml")


def test_plain_pytest_reaches_all_nodes(applied):
    out = applied.run("pytest", "--cluster", "cluster.yaml", "checks", "-rA")
    assert "test_shared.py::test_ada_can_write[rackwright://worker1]" in out
    assert "test_site.py::test_the_name_is_the_declared_one[rackwright://head1]" in out
    assert "3 workers" in out  # processes of pytest-xdist


def test_plain_pyinfra_runs_the_same_deploy(applied):
    applied.run("rackwright", "lab", "exec", "worker1", "rm", "/shared/README")
    out = applied.run("pyinfra", "@rackwright/cluster.yaml::worker1", "deploys/site.py", "--dry")
    assert "shared | Write its README" in out
    applied.run("rackwright", "apply", "cluster.yaml", "--yes")


def test_a_node_that_is_off_is_unknown(applied):
    applied.run("rackwright", "lab", "fault", "worker1", "kill")
    verified = json.loads(
        applied.run("rackwright", "verify", "cluster.yaml", "--role", "checks", "--json", status=4)
    )
    status = {(one["node"], one["status"]) for one in verified["results"]}
    assert ("worker1", "UNKNOWN") in status
    assert {node for node, one in status if one == "UNKNOWN"} == {"worker1"}
    applied.run("rackwright", "lab", "heal", "worker1")
