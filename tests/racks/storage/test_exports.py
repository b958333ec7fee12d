"""One filesystem of several loses its drive or its declaration; the server keeps exporting the others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.racks.patience import settled, until
from tests.racks.site import Site, operations
from tests.racks.storage.conftest import HEAD, WORKERS
from tests.racks.verified import results

pytestmark = [pytest.mark.lab, pytest.mark.proof]
LEFT = "every mount and export made by rackwright is declared"
REMOVE = "Remove undeclared mounts and exports"
_GONE = "/etc/systemd/system/spare.mount.d/gone.conf"


def failed(site: Site, role: str, *nodes: str) -> dict[str, str]:
    """Evidence of a role's failing checks, by check."""
    found = results(site, None, "--role", role, "--limit", ",".join(nodes))
    return {one["check"]: one["evidence"] for one in found.get("FAIL", [])}


def test_a_drive_that_is_gone_ends_no_other_export(rack: Site) -> None:
    """The head boots without the drive of /spare, which has the checkpoints."""
    try:
        rack.on(HEAD, f"mkdir -p {_GONE.rpartition('/')[0]}")
        rack.on(HEAD, f"printf '[Mount]\\nWhat=/dev/disk/by-label/gone\\n' >{_GONE}; sync")
        for action in ("off", "on"):
            rack.cli("lab", "power", HEAD, action, "--file", str(rack.file))
        settled(rack, HEAD)
        assert rack.on(HEAD, "systemctl is-active nfs-server || :").strip() == "active"
        assert " /spare " not in rack.on(HEAD, "cat /proc/self/mounts")
        # worker2 mounts both anew
        rack.on("worker2", "systemctl stop shared-ckpt.mount shared-data.mount")
        seen = "timeout 200 ls {0} >/dev/null 2>&1 || :; findmnt -no FSTYPE {0} | tail -n 1"
        until(lambda: rack.on("worker2", seen.format("/shared/data")).strip() == "nfs4", "the other export")
        assert rack.on("worker2", seen.format("/shared/ckpt")).strip() == "autofs"
        assert "/spare is not mounted" in str(failed(rack, "nfs_server", HEAD))
        assert "/shared/ckpt" in str(failed(rack, "nfs_client", "worker2"))
        assert "/shared/data" not in str(failed(rack, "nfs_client", "worker2"))
    finally:
        rack.on(
            HEAD, f"rm -rf {_GONE.rpartition('/')[0]}; systemctl daemon-reload; systemctl start spare.mount"
        )
    until(lambda: set(results(rack, None, "--role", "nfs_client")) == {"PASS"}, "answer of /spare")
    assert operations(rack.plan(0)) == set()


def test_what_leaves_the_declaration_is_unmounted_and_no_longer_exported(rack: Site) -> None:
    def without(content: dict[str, Any]) -> None:
        del content["storage"]["software"]

    worker, busy = "worker1", "worker2"
    rack.on(worker, "ls /shared/software")
    rack.on(busy, "systemd-run --quiet --unit=holder sh -c 'cd /shared/software && exec sleep infinity'")
    assert " /shared/software " in rack.on(busy, "cat /proc/self/mounts")
    with rack.declaring(without):
        # a node that serves nothing, with exports of a time when it did
        rack.on(worker, "mkdir -p /etc/exports.d; echo '# Written by rackwright' >/etc/exports.d/old.exports")
        said = failed(rack, "base", worker)
        assert "/etc/systemd/system/shared-software.mount" in said[LEFT]
        assert "/etc/exports.d/old.exports" in said[LEFT]
        plan = rack.plan(2)
        assert {(one, "base", REMOVE) for one in WORKERS} <= operations(plan)
        assert (HEAD, "base", REMOVE) not in operations(plan)  # it had no mount of it
        rack.converge()
        for node in WORKERS:
            assert "shared-software" not in rack.on(
                node, "systemctl list-units --all; ls /etc/systemd/system"
            )
            assert "/shared/software" not in rack.on(node, "cat /proc/self/mounts")
        # a process that works in this folder does not block the unmount, and keeps running
        assert rack.on(busy, "systemctl is-active holder; systemctl stop holder").strip() == "active"
        assert "/srv/software" not in rack.on(HEAD, "exportfs -s")
        assert not failed(rack, "base", *WORKERS)
        assert not failed(rack, "nfs_server", HEAD)
    rack.converge()
    assert (
        rack.on(
            worker, "ls /shared/software >/dev/null; findmnt -no FSTYPE /shared/software | tail -n 1"
        ).strip()
        == "nfs4"
    )
