"""Scratch on drives of a node's own: a drive fails, is reported, is replaced; and limits that hold users."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.racks.patience import until
from tests.racks.site import Site, operations
from tests.racks.slurm_jobs import in_service, run_job
from tests.racks.storage.conftest import HEAD
from tests.racks.verified import results

pytestmark = [pytest.mark.lab, pytest.mark.proof]
WHOLE = "the arrays are complete and use their declared disks"
NODE = "worker2"


def array(site: Site, node: str = NODE) -> str:
    (found,) = [
        status
        for status, rows in results(site, None, "--role", "storage_layout", "--limit", node).items()
        for one in rows
        if one["check"] == WHOLE
    ]
    return found


def the_third_drive(content: dict[str, Any], node: str = NODE) -> None:
    disks = content["roles"]["storage_layout"]["disks"]
    disks["b"]["serials"][node], disks["c"]["serials"][node] = f"{node}-data2", f"{node}-data1"


def test_jobs_and_containers_use_scratch(rack: Site) -> None:
    in_service(rack, "worker1")
    script = (
        "echo $SCRATCH; stat -c '%a %U' $SCRATCH; stat -c %d /scratch $SCRATCH /tmp | uniq | wc -l; "
        "fallocate -l 900M $SCRATCH/small && rm $SCRATCH/small; fallocate -l 1100M $SCRATCH/big"
    )
    said = run_job(rack, "worker1", "--mem=128", script).splitlines()
    folder, access, filesystems, refused = said[:4]
    assert folder.startswith("/scratch/jobs/")
    assert (access, filesystems) == ("700 ada", "1")
    assert "No space left on device" in refused
    assert said[-1] == "status 1"
    until(lambda: rack.on("worker1", f"ls -d {folder} 2>/dev/null || echo gone").strip() == "gone", "removal")
    # containerd has its data there, and does not start without it
    shown = rack.on(
        "worker1", "containerd config dump | grep ^root; systemctl show -P RequiresMountsFor containerd"
    )
    assert "/scratch/containerd" in shown.splitlines()[0]
    assert "/scratch" in shown.splitlines()[1]


def test_a_drive_of_scratch_fails_and_is_replaced(rack: Site) -> None:
    rack.on(NODE, "echo kept >/scratch/kept && sync /scratch/kept")
    rack.cli("lab", "fault", NODE, "disk:fail", "1", "--file", str(rack.file))
    # md notices with the next write
    until(
        lambda: rack.on(NODE, "date >/scratch/written; sync; echo done") != "" and array(rack) == "FAIL",
        "failure",
    )
    assert rack.on(NODE, "cat /scratch/kept").strip() == "kept"
    rack.declare(the_third_drive)
    rack.cli("apply", str(rack.file), "--yes")
    until(lambda: array(rack) == "PASS", "rebuilt array")
    assert operations(rack.plan(0)) == set()
    assert rack.on(NODE, "cat /scratch/kept").strip() == "kept"


def test_a_working_drive_serves_until_its_data_is_on_the_one_declared_in_its_place(rack: Site) -> None:
    node = "worker1"
    rack.on(node, "echo kept >/scratch/kept && sync /scratch/kept")
    rack.declare(partial(the_third_drive, node=node))
    rack.cli("apply", str(rack.file), "--yes")
    assert operations(rack.plan(0)) == set()  # while it is copied, and when the other has left
    until(lambda: array(rack, node) == "PASS", "array of the declared drives")
    assert operations(rack.plan(0)) == set()
    kept = "cat /scratch/kept; cat /sys/block/md*/md/degraded; ls -d /sys/block/md*/md/dev-* | wc -l"
    assert rack.on(node, kept).split() == ["kept", "0", "2"]


def test_a_user_cannot_keep_more_than_the_quota(rack: Site) -> None:
    big = "cd /shared/home/ada && fallocate -l 1100M big 2>&1; rm -f big"
    said = rack.on("worker1", f"runuser -u ada -- sh -c {big!r}")
    assert "quota exceeded" in said.lower(), said
    rack.on("worker1", "runuser -u ada -- sh -c 'cd /shared/home/ada && fallocate -l 100M small && rm small'")
    # a limit lifted by hand is drift, and fails a check
    rack.on(HEAD, "xfs_quota -x -c 'limit -u bhard=0 ada' /srv")
    assert results(rack, None, "--limit", HEAD).get("FAIL")
    assert (HEAD, "home") in {(node, role) for node, role, _ in operations(rack.plan(2))}
    rack.converge()
