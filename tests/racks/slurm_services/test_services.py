"""slurmdbd and its database on other heads than slurmctld; a pair of controllers and its shared state.

In file order: the second half declares another cluster on the same rack.
"""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.status import Status
from tests.racks.site import Site
from tests.racks.slurm_services.conftest import share_state, verdicts

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_OVER = ("head1", "reservations are as declared")
_RECORDS = ("head1", "accounts, users and QOS are as declared")
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


def test_slurmctld_stops_with_its_mount_and_a_private_folder_is_found_out(rack: Site):
    rack.on("head2", "umount /shared; sleep 2")
    assert "inactive" in rack.on("head2", "systemctl is-active slurmctld || :")
    assert "refused" in rack.on("head2", "systemctl start slurmctld 2>&1 || echo refused")
    found = verdicts(rack)
    assert found["head2", "slurmctld's state is on its declared file system"][0] is Status.FAIL
    # Mounted, of the same name, and not the same: nothing but another controller's file shows it.
    rack.on("head2", "mount -t tmpfs shared /shared; install -d -m 700 -o slurm -g slurm /shared/slurmctld")
    status, evidence = verdicts(rack)["head1", "controllers share slurmctld's state"]
    assert (status, "head2 does not see what head1 writes" in evidence) == (Status.FAIL, True)
