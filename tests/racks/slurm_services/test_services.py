"""slurmdbd and its database on other heads than slurmctld; a pair of controllers and its shared state.

In file order: the second half declares another cluster on the same rack.
"""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.roles.slurm.standby import PATH_UNIT
from rackwright.status import Status
from tests.racks.patience import until
from tests.racks.site import Site
from tests.racks.slurm_services.conftest import share_state, verdicts

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_OVER = ("head1", "reservations are as declared")
_RECORDS = ("head1", "accounts, users and QOS are as declared")
_ROLE_AND_PROCESS = (
    "cat /run/slurmctld/role 2>/dev/null || echo; systemctl show --value --property=MainPID slurmctld"
)
_BACK_ONE_WEEK = (
    "update {}_job_table set time_submit=time_submit-604800, time_eligible=time_eligible-604800, "
    "time_start=time_start-604800, time_end=time_end-604800"
)


def with_a_pair(declared: dict[str, Any]) -> None:
    """slurmdbd on head1, its database still on head2, and slurmctld on both."""
    slurm = declared["roles"]["slurm"]
    slurm["accounting"] = {"dbd_host": "head1", "storage_host": "head2"}
    slurm["backups"] = ["head2"]
    slurm["state_dir"] = "/shared/slurmctld"
    slurm["state_mount"] = {"path": "/shared", "source": "shared", "fstype": "tmpfs"}
    slurm["timeouts"] = {"slurmctld": 30}


@pytest.mark.smoke
def test_slurmdbd_on_the_other_head_at_the_first_apply(rack: Site):
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    assert rack.on("head2", "systemctl is-active slurmdbd; systemctl is-active slurmctld || :").split() == [
        "active",
        "inactive",
    ]
    assert "inactive" in rack.on("head1", "systemctl is-active slurmdbd || :")
    assert verdicts(rack) == {_OVER: (Status.WARN, "gone is over: remove it from the cluster file")}


@pytest.mark.smoke
def test_what_is_not_declared_is_left_and_named(rack: Site):
    rack.on("head1", "sacctmgr -iQ add account rogue")
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    status, evidence = verdicts(rack)[_RECORDS]
    assert status is Status.WARN
    assert "account rogue" in evidence
    rack.on("head1", "sacctmgr -iQ remove account rogue")
    assert _RECORDS not in verdicts(rack)


def test_purged_jobs_are_in_the_archive_and_can_be_loaded_again(rack: Site):
    rack.on("head1", "srun -Q -t 1 -A burnin hostname")
    count = f"mariadb -BN slurm_acct_db -e 'select count(*) from {rack.name}_job_table'"
    before = int(rack.on("head2", f"sleep 2; {count}"))
    rack.on("head2", f'mariadb slurm_acct_db -e "{_BACK_ONE_WEEK.format(rack.name)}"')
    rack.on("head2", "sacctmgr -i archive dump Jobs PurgeJobAfter=2days")
    assert int(rack.on("head2", count)) < before
    (archived,) = rack.on("head2", "ls /var/lib/slurm/archive").split()
    assert archived.startswith(f"{rack.name}_job_table_archive_")
    rack.on("head2", f"sacctmgr -i archive load File=/var/lib/slurm/archive/{archived}")
    assert int(rack.on("head2", count)) == before


def test_a_reservation_that_was_changed_by_hand_is_put_right(rack: Site):
    rack.on(
        "head1", "scontrol update ReservationName=weekly Duration=120; scontrol delete ReservationName=maint"
    )
    document = rack.plan(2, role="slurm")
    changed = [
        change["target"]
        for node in document["nodes"]
        for one in node["operations"]
        for change in one["changes"]
    ]
    assert changed == ["reservation maint", "reservation weekly"]
    rack.converge()


def test_controllers_do_not_start_without_their_shared_state(rack: Site):
    rack.declare(with_a_pair)
    ran = rack.apply(expect=1)
    assert "/shared is not the declared tmpfs from shared (state_mount)" in ran.out + ran.err
    assert "inactive" in rack.on("head2", "systemctl is-active slurmctld || :")
    share_state(rack, "head1", "head2")
    rack.converge()
    assert verdicts(rack) == {_OVER: (Status.WARN, "gone is over: remove it from the cluster file")}
    assert rack.on("head1", "scontrol ping").count(" is UP") == 2
    hosts = rack.on("head2", "mariadb -BN -e \"select host from mysql.global_priv where user='slurm'\"")
    assert hosts.split() == ["10.93.0.10"]
    assert "inactive" in rack.on("head2", "systemctl is-active slurmdbd || :")  # it ran there before


def test_a_backup_takes_over_again_and_again_while_slurmdbd_is_away(rack: Site):
    """slurmdbd is on the primary head, and dies with it: the backup has to know the cluster's ID each time."""

    def backup(role: str, *, other_than: str = "") -> str:
        """The process of the backup, once it has this role."""
        found: list[str] = []

        def has_it() -> bool:
            found[:] = rack.on("head2", _ROLE_AND_PROCESS).splitlines()
            return found[0] == role and found[1] != other_than

        until(has_it, f"backup that is {role}")
        return found[1]

    rack.on("head1", "systemctl restart slurmctld")  # it writes its state: a cluster of five minutes has none
    before = backup("standby")
    rack.on("head2", "systemctl reload slurmctld")  # by which it forgets the ID, too
    for _ in range(2):
        standby = backup("standby", other_than=before)
        until(lambda: rack.on("head1", "timeout 10 scontrol ping || :").count(" is UP") == 2, "pair")
        rack.on("head1", "systemctl kill --signal=KILL slurmctld slurmdbd")
        assert backup("primary") == standby
        assert rack.on("head2", "timeout 60 sinfo -h -o %N").split() == ["worker1"]
        rack.on("head1", "systemctl start slurmdbd slurmctld")
        before = standby
    backup("standby", other_than=before)
    rack.converge()
    assert verdicts(rack) == {_OVER: (Status.WARN, "gone is over: remove it from the cluster file")}
    rack.on("head2", f"systemctl stop {PATH_UNIT}")
    status, evidence = verdicts(rack)["head2", "a standby slurmctld can take over more than once"]
    assert (status, evidence) == (Status.FAIL, f"{PATH_UNIT} is inactive")
    rack.converge()


def test_slurmctld_stops_with_its_mount_and_a_private_folder_is_found_out(rack: Site):
    rack.on("head2", "umount /shared; sleep 2")
    assert "inactive" in rack.on("head2", "systemctl is-active slurmctld || :")
    assert "refused" in rack.on("head2", "systemctl start slurmctld 2>&1 || echo refused")
    found = verdicts(rack)
    assert found["head2", "slurmctld's state is on its declared filesystem"][0] is Status.FAIL
    # Mounted, of the same name, and not the same: nothing but another controller's file shows it.
    rack.on("head2", "mount -t tmpfs shared /shared; install -d -m 700 -o slurm -g slurm /shared/slurmctld")
    status, evidence = verdicts(rack)["head1", "controllers share slurmctld's state"]
    assert (status, "head2 does not see what head1 writes" in evidence) == (Status.FAIL, True)
