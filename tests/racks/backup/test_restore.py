"""A head that is emptied gets its job history, accounts and queue back; one that has them is not overwritten.

In file order: the later tests restore what the first one has made.
"""

from __future__ import annotations

import time

import pyrage
import pytest
import yaml

from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.backup.conftest import PLACE, asked, backups, empty_head, make_backup, unpack_site
from tests.racks.program import Running
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_HISTORY = "sacct -a -X -n -P -S 2020-01-01 -o jobid,jobname,user,account,state,exitcode"
_ACCOUNTS = "sacctmgr -nP show assoc format=cluster,account,user,share; sacctmgr -nP show user format=user,defaultaccount"
_QUEUE = "squeue -a -h -o '%A|%j|%u|%T|%r|%l|%P'"
_SCRIPT = "scontrol write batch_script {job} -"


def state(site: Site) -> dict[str, str]:
    """What must be the same afterwards, sorted by line."""
    questions = {"history": _HISTORY, "accounts": _ACCOUNTS, "queue": _QUEUE}
    return {name: "\n".join(sorted(asked(site, command).splitlines())) for name, command in questions.items()}


@pytest.fixture(scope="module")
def before(rack: Site) -> dict[str, str]:
    """Jobs that ran and failed, an account made by hand, a job of ada's that waits; all of it backed up."""
    rack.on("head1", "sacctmgr -iQ add account adhoc fairshare=7; sacctmgr -iQ add user grace account=adhoc")
    rack.on("head1", "srun -Q -A burnin -J first hostname; srun -Q -A burnin -J second false || :")
    rack.on(
        "head1", "cd /; runuser -u ada -- sbatch -Q -D / -o /dev/null -J waits -H -t 5 --wrap 'echo kept'"
    )
    time.sleep(6)  # slurmctld writes its state every five seconds at most
    name = make_backup(rack)
    found = state(rack)
    assert "first" in found["history"]
    assert "FAILED" in found["history"]
    assert "adhoc" in found["accounts"]
    assert "waits|ada|PENDING" in found["queue"]
    return {**found, "name": name}


@pytest.mark.smoke
def test_the_first_apply_makes_a_backup_and_nothing_is_left_to_change(rack: Site):
    assert len(backups(rack)) == 1
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 2 of 2 nodes"
    with rack.here():
        report = verify(rack.cluster, roles=frozenset({"backup"}))
    assert {one.status for one in report.results} == {Status.PASS}, report.results


@pytest.mark.smoke
def test_a_stolen_place_reveals_nothing(rack: Site, before: dict[str, str]):
    folder = f"{PLACE}/{rack.name}/{before['name']}"
    assert rack.on("head1", f"head -qc 21 {folder}/*.age | tr -d '\\n'") == "age-encryption.org/v1" * 4
    assert (
        rack.on("head1", f"stat -c '%a %U' {PLACE}/{rack.name} {folder}").split("\n")[:2] == ["700 root"] * 2
    )
    assert "not found" in rack.on(
        "head1", f"grep -rl AGE-SECRET-KEY /etc/rackwright {PLACE} || echo not found"
    )


def test_without_the_control_node_the_cluster_file_and_the_secrets_are_in_the_backup(
    rack: Site, before: dict[str, str]
):
    found = unpack_site(rack, before["name"])
    assert found["cluster.yaml"] == rack.file.read_bytes()
    key = (rack.config / "rackwright" / "identity.age.txt").read_text().splitlines()[-1]
    identity = pyrage.x25519.Identity.from_str(key)
    store = f"{rack.name}.secrets.age"
    assert pyrage.decrypt(found[store], [identity]) == pyrage.decrypt(
        (rack.folder / store).read_bytes(), [identity]
    )


@pytest.mark.smoke
def test_a_head_in_use_is_not_overwritten(rack: Site, before: dict[str, str]):
    ran = rack.cli("restore", str(rack.file), "--yes", expect=1)
    for line in (
        "head1: destroyed: 1 jobs in the queue",
        "jobs in the accounting records",
        "undeclared accounts: adhoc",
        "undeclared users: grace",
        f"run again with --confirm {rack.name}",
    ):
        assert line in ran.err, ran.err
    assert "not the cluster's name" in rack.cli("restore", str(rack.file), "--confirm", "yes", expect=1).err
    assert state(rack) == {key: before[key] for key in ("history", "accounts", "queue")}


def test_history_accounts_and_queue_come_back_on_an_emptied_head(rack: Site, before: dict[str, str]):
    job = before["queue"].split("|")[0]
    script = asked(rack, _SCRIPT.format(job=job))
    empty_head(rack)
    rack.apply()
    assert backups(rack)[-1] == before["name"]  # an emptied head adds no empty backup
    assert "earlier installation" in rack.on("head1", "cat /var/lib/rackwright/backup/last.json")
    assert "waits" not in state(rack)["queue"]
    ran = rack.cli("restore", str(rack.file), "--yes")
    assert f"restore {before['name']} to head1: database slurm_acct_db, state of slurmctld" in ran.err
    assert state(rack) == {key: before[key] for key in ("history", "accounts", "queue")}
    assert asked(rack, _SCRIPT.format(job=job)) == script
    access = "stat -c '%a %U:%G' /var/lib/slurm/slurmctld /var/lib/slurm/slurmctld/job_state"
    assert rack.on("head1", access).split("\n")[:2] == ["700 slurm:slurm", "600 slurm:slurm"]
    rack.on(
        "head1",
        f"scontrol release {job}; for try in $(seq 60); do squeue -h -j {job} -t PD,R,CG | grep . || break; sleep 1; done",
    )
    assert "COMPLETED" in rack.on("head1", f"sleep 3; sacct -X -n -P -j {job} -o state")
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 2 of 2 nodes"
    assert make_backup(rack) != before["name"]  # the restored head is the backed-up one, and goes on


def test_a_killed_restore_keeps_slurm_down_until_it_is_run_again(rack: Site, before: dict[str, str]):
    running = rack.start("restore", str(rack.file), "--from", before["name"], "--confirm", rack.name)
    wait_for_text(running, "restoring database")
    running.process.kill()
    running.process.wait()
    rack.on("head1", "sleep 5; systemctl start slurmctld slurmdbd || :")
    assert rack.on("head1", "systemctl is-active slurmctld slurmdbd || :").split() == ["inactive", "inactive"]
    assert "unfinished" in rack.on(
        "head1", "systemctl start rackwright-backup || :; cat /var/lib/rackwright/backup/last.json"
    )
    ran = rack.cli("restore", str(rack.file), "--from", before["name"], "--yes")
    assert "unfinished restore, which this one replaces" in ran.err
    assert state(rack) == {key: before[key] for key in ("history", "accounts", "queue")}
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 2 of 2 nodes"


def test_a_copy_on_the_control_node_is_enough(rack: Site, before: dict[str, str]):
    folder = rack.cli("restore", str(rack.file), "--fetch", "copies", "--from", before["name"]).out.strip()
    listed = rack.cli("restore", str(rack.file), "--list").out
    assert before["name"] in listed
    rack.on("head1", f"rm -rf {PLACE}/{rack.name}; scontrol hold 1 2>/dev/null || :")
    ran = rack.cli("restore", str(rack.file), "--from", folder, "--confirm", rack.name)
    assert before["name"] in ran.err
    assert state(rack) == {key: before[key] for key in ("history", "accounts", "queue")}


def test_damage_is_found(rack: Site, before: dict[str, str]):
    name = make_backup(rack)
    part = f"{PLACE}/{rack.name}/{name}/database.gz.age"
    rack.on("head1", f"printf x | dd of={part} bs=1 seek=400 conv=notrunc status=none")
    with rack.here():
        report = verify(rack.cluster, roles=frozenset({"backup"}))
    found = {one.check: one for one in report.results}["the newest backup is recent and complete"]
    assert (found.status, "does not match the manifest" in found.evidence) == (Status.FAIL, True)
    assert "damaged" in rack.cli("restore", str(rack.file), "--confirm", rack.name, expect=1).err
    assert yaml.safe_load(rack.file.read_text())["roles"]["backup"]["place"] == PLACE


def wait_for_text(running: Running, text: str, timeout: float = 300) -> None:
    """Until a command has printed this on standard error."""
    deadline = time.monotonic() + timeout
    while text not in running._paths[1].read_text():
        assert running.process.poll() is None, running.wait()
        assert time.monotonic() < deadline, f"{text!r} was not printed within {timeout} s"
        time.sleep(0.02)
