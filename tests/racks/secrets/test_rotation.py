"""The munge key and the database password are replaced under a running job, and after every interruption."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.racks.secrets.conftest import NODES, keys_on_nodes, stored
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_JOB = """\
cd /tmp
cat >/tmp/job.sh <<'END'
#!/bin/sh
#SBATCH -N2 -t 50 -o /dev/null
srun sh -c 'until [ -e /tmp/enough ]; do sleep 0.5; done'
END
runuser -u ada -- sbatch --parsable /tmp/job.sh
"""
_NO_RESTART = """\
mkdir /run/kept
cp /usr/bin/systemctl /run/kept/systemctl
cat >/run/kept/failing <<'END'
#!/bin/sh
case "$*" in "restart munge"*) echo "Job for munge.service failed" >&2; exit 1;; esac
exec /run/kept/systemctl "$@"
END
chmod 755 /run/kept/failing
mount --bind /run/kept/failing /usr/bin/systemctl
"""
"""munged cannot be restarted on this node; all other systemctl commands work."""
_SEEN: set[str] = set()
"""Every value that a secret of this rack has had."""


@contextmanager
def running_job(site: Site) -> Iterator[str]:
    """A step on both workers, which runs while the block does and must then complete."""
    for worker in NODES[1:]:
        site.on(worker, "rm -f /tmp/enough")
    job = site.on("head1", _JOB).split()[-1]
    _wait(site, f"squeue -h -s -j {job} | grep -q {job}[.]0")
    yield job
    assert site.on("head1", f"squeue -h -j {job} -o %T").strip() == "RUNNING"
    for worker in NODES[1:]:
        site.on(worker, "touch /tmp/enough")
    state = f"sacct -n -X -P -j {job} -o State,ExitCode"
    _wait(site, f"{state} | grep -q '^[A-Z]' && ! {state} | grep -q RUNNING")
    assert site.on("head1", state).strip() == "COMPLETED|0:0"


def _wait(site: Site, test: str, timeout: float = 180) -> None:
    site.on("head1", f"end=$(( $(date +%s) + {int(timeout)} )); until {test}; do "
            "[ $(date +%s) -lt $end ] || exit 1; sleep 0.5; done", timeout + 60)  # fmt: skip


def rotate(site: Site, name: str, expect: int = 0) -> str:
    """`rackwright secrets rotate`; all it printed."""
    _SEEN.update(stored(site)["secrets"].values())
    ran = site.cli("secrets", "rotate", name, str(site.file), "--confirm", site.name, expect=expect)
    content = stored(site)
    _SEEN.update(value for kind in ("secrets", "pending", "previous") for value in content[kind].values())
    return ran.out + ran.err


def assert_rotated(site: Site, before: str) -> None:
    """Every node has the store's key, which is not the one of before, and the nodes understand each other."""
    content = stored(site)
    assert content["secrets"]["munge_key"] != before
    assert content["previous"] == content["pending"] == {}
    key = hashlib.sha256(base64.b64decode(content["secrets"]["munge_key"])).hexdigest()
    assert keys_on_nodes(site) == dict.fromkeys(NODES, key)
    assert all("next" not in site.on(node, "ls -A /etc/munge") for node in NODES)
    assert site.cli("plan", str(site.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    site.cli("verify", str(site.file), "--role", "munge")


@pytest.mark.smoke
def test_the_munge_key_is_rotated_under_a_running_job(site: Site):
    before = stored(site)["secrets"]["munge_key"]
    asks = "for i in $(seq 3000); do s=$(date +%s.%N); timeout 5 squeue -h >/dev/null 2>&1 && r=ok || r=bad; "
    asks += 'echo "$s $r"; sleep 0.1; done'
    with running_job(site):
        asking = subprocess.Popen(
            site.rack.ssh_command("worker1", ("sudo", "sh", "-c", f"'{asks}'")),
            stdout=subprocess.PIPE,
            text=True,
        )
        said = rotate(site, "munge_key")
        asking.terminate()
        answers = [line.split() for line in asking.communicate(timeout=60)[0].splitlines()]
    assert_rotated(site, before)
    assert "canaries and waves do not apply" in said
    assert "restart its unit on all 3 nodes" in said
    bad = [float(at) for at, result in answers if result == "bad"]
    gap = max(bad) - min(bad) if bad else 0.0
    (site.outputs / "gap").write_text(f"{len(answers)} questions, {len(bad)} unanswered, {gap:.2f} s\n")
    assert len(answers) > 20
    assert gap < 30
    site.on("head1", "srun -Q -t 1 -N2 -A burnin hostname")


def test_killed_before_the_point_of_no_return_the_old_key_is_in_use(site: Site):
    before, on_nodes = stored(site)["secrets"]["munge_key"], keys_on_nodes(site)
    running = site.start("secrets", "rotate", "munge_key", str(site.file), "--confirm", site.name)
    site.wait_for_event(running, event="rotation", step="stage")
    running.kill(workers=True)
    running.wait()
    content = stored(site)
    assert (content["secrets"]["munge_key"], keys_on_nodes(site)) == (before, on_nodes)
    assert site.cli("plan", str(site.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    rotate(site, "munge_key")
    assert stored(site)["secrets"]["munge_key"] == content["pending"]["munge_key"], "the same value goes on"
    assert_rotated(site, before)


def test_killed_in_the_switch_it_is_finished_by_the_next_and_by_no_apply(site: Site):
    before = stored(site)["secrets"]["munge_key"]
    with running_job(site):
        running = site.start("secrets", "rotate", "munge_key", str(site.file), "--confirm", site.name)
        site.wait_for_event(running, event="rotation", step="switch")
        deadline = time.monotonic() + 30
        while stored(site)["secrets"]["munge_key"] == before:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        running.kill(workers=True)
        running.wait()
        assert stored(site)["previous"] == {"munge_key": before}
        refused = site.apply(1).err
        assert f"The rotation of munge_key of cluster {site.name} was interrupted" in refused
        assert "rackwright secrets rotate munge_key" in refused
        rotate(site, "munge_key")
    assert_rotated(site, before)


def test_a_node_on_which_it_fails_is_named_and_finished_later(site: Site):
    before = stored(site)["secrets"]["munge_key"]
    site.on("worker2", _NO_RESTART)
    try:
        said = rotate(site, "munge_key", expect=1)
    finally:
        site.on("worker2", "umount /usr/bin/systemctl; rm -r /run/kept")
    assert "munge_key was replaced in the store, but not on worker2" in said
    rotate(site, "munge_key")
    assert_rotated(site, before)


def test_the_database_password_is_rotated_under_a_running_job(site: Site):
    before = stored(site)["secrets"]["slurmdbd_password"]
    with running_job(site):
        said = rotate(site, "slurmdbd_password")
    assert "database user slurm@localhost" in said
    assert_new_password(site, before)


def test_killed_between_the_database_and_slurmdbd_it_is_finished_by_the_next(site: Site):
    before = stored(site)["secrets"]["slurmdbd_password"]
    running = site.start("secrets", "rotate", "slurmdbd_password", str(site.file), "--confirm", site.name)
    site.wait_for_event(running, event="finish", name="Create slurmdbd's database and user")
    running.kill(workers=True)
    running.wait()
    assert stored(site)["previous"] == {"slurmdbd_password": before}
    rotate(site, "slurmdbd_password")
    assert_new_password(site, before)


def assert_new_password(site: Site, before: str) -> None:
    """slurmdbd and MariaDB have the store's password, and the old one opens nothing."""
    content = stored(site)
    now = content["secrets"]["slurmdbd_password"]
    assert now != before
    assert content["previous"] == content["pending"] == {}
    assert f"StoragePass={now}\n" in site.on("head1", "cat /etc/slurm/slurmdbd.conf")
    login = "mariadb -u slurm -p'{}' slurm_acct_db -e 'select 1' 2>&1 || :"
    assert "Access denied" in site.on("head1", login.format(before))
    assert "Access denied" not in site.on("head1", login.format(now))
    assert "research" in site.on("head1", "sacctmgr -nP show account")
    assert site.cli("plan", str(site.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    site.cli("verify", str(site.file), "--role", "mariadb")


def test_no_output_journal_plan_or_log_holds_a_value(site: Site, tmp_path: Path):
    """Of all that was printed and kept above, and of a plan made for the purpose."""
    site.cli("plan", str(site.file), "--out", str(site.outputs / "plan.json"), "--full")
    site.cli("secrets", "list", str(site.file))
    patterns = tmp_path / "patterns"
    forms = {form for value in _SEEN for form in (value, base64.b64encode(value.encode()).decode())}
    parts = {form[at : at + 24] for form in forms for at in range(0, len(form) - 23, 8)}
    patterns.write_text("\n".join(sorted(parts)))
    assert len(_SEEN) > 4
    found = subprocess.run(
        ["grep", "-rlaF", "-f", str(patterns), str(site.folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (found.stdout, found.returncode) == ("", 1)
    leak = site.outputs / "leak"
    leak.write_text(min(_SEEN))
    again = subprocess.run(
        ["grep", "-rlaF", "-f", str(patterns), str(site.folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    leak.unlink()
    assert again.stdout.strip() == str(leak), "the search finds what is there"
