"""NFS on three machines: mounted as declared after boots in any order, and nothing hangs while the server is away."""

from __future__ import annotations

import time
from base64 import b64encode
from shlex import quote

import pytest

from rackwright.factcache.answers import pack
from rackwright.factcache.helper_base import WAITS
from rackwright.node_programs import FACT_HELPER, one_text
from tests.racks.patience import settled, until
from tests.racks.site import Site, operations
from tests.racks.slurm_jobs import as_ada, in_service, wait_for
from tests.racks.storage.conftest import HEAD, SHARED, WORKERS
from tests.racks.verified import named, results

pytestmark = [pytest.mark.lab, pytest.mark.proof]
MOUNTED = "NFS filesystems are mounted as declared"
ANSWER = "NFS filesystems answer within their deadlines"
_TYPE = "findmnt -no FSTYPE {path} | tail -n 1"


def power(site: Site, node: str, action: str) -> None:
    site.cli("lab", "power", node, action, "--file", str(site.file))


def all_mounted(site: Site) -> None:
    """Without any hand: each use mounts it, and the kernel shows what is declared."""
    settled(site, HEAD, *WORKERS)
    in_service(site, *WORKERS)
    found = results(site, None, "--role", "nfs_client")
    assert set(found) == {"PASS"}, found
    assert {one["node"] for one in found["PASS"] if one["check"] == MOUNTED} == set(WORKERS)
    for worker in WORKERS:
        for path in SHARED:
            assert site.on(worker, _TYPE.format(path=path)).strip() == "nfs4"


def asked_of(site: Site, node: str, path: str) -> str:
    """Output about a path of the program with which a plan reads a node, until it is killed."""
    question = b64encode(b"-\n" + pack([{"kind": "path", "path": path, "digest_only": True}])).decode()
    program = quote(one_text(FACT_HELPER))
    script = f"echo {question} | base64 -d | timeout -s KILL 60 python3 -IS -c {program} 2>&1 || :"
    return site.on(node, script)


def test_a_second_apply_is_empty_and_every_check_passes(rack: Site) -> None:
    assert operations(rack.plan(0)) == set()
    found = results(rack, 0)
    assert set(found) <= {"PASS", "OUT OF SCOPE"}, found
    assert {one["role"] for one in found["PASS"]} >= {"nfs_server", "nfs_client", "storage_layout", "slurm"}


def test_what_one_node_writes_another_reads(rack: Site) -> None:
    rack.on("worker1", "runuser -u ada -- sh -c 'umask 077; echo of-ada >/shared/data/from-ada'")
    assert rack.on("worker2", "runuser -u ada -- cat /shared/data/from-ada").strip() == "of-ada"
    # root of a worker is squashed, and a read-only filesystem is
    refused = "if {} 2>/dev/null; then echo it went; else echo refused; fi"
    assert rack.on("worker2", refused.format("cat /shared/data/from-ada")).strip() == "refused"
    assert rack.on("worker2", refused.format("touch /shared/software/one")).strip() == "refused"


@pytest.mark.parametrize("order", ["server first", "clients first", "all at once"])
def test_every_mount_is_there_after_a_power_cut_in_any_order(rack: Site, order: str) -> None:
    for node in (HEAD, *WORKERS):
        power(rack, node, "off")
    if order == "all at once":
        rack.cli("lab", "up", str(rack.file))
    else:
        nodes = (HEAD, *WORKERS) if order == "server first" else (*WORKERS, HEAD)
        for node in nodes:
            power(rack, node, "on")
            settled(rack, node)
    all_mounted(rack)
    assert operations(rack.plan(0)) == set()


def test_a_server_that_dies_hangs_nothing_and_jobs_go_on_when_it_is_back(rack: Site) -> None:
    script = "for i in $(seq 60); do echo $i >>/shared/data/counted || exit 1; sync /shared/data/counted; sleep 2; done"
    rack.on("worker1", "rm -f /shared/data/counted")
    line = f"sbatch --parsable -D / -o /dev/null -t 30 -n 1 --mem=128 -w worker1 --wrap '{script}'"
    job = as_ada(rack, HEAD, line).split()[0]
    wait_for(rack, job, "RUNNING")
    until(
        lambda: rack.on("worker1", "wc -l </shared/data/counted || echo 0").strip() > "2", "line of the job"
    )
    rack.fault(HEAD, "kill")
    try:
        began = time.monotonic()
        found = results(rack, None, "--role", "nfs_client", "--limit", "worker[1-2]")
        took = time.monotonic() - began
        silent = [one for one in found["UNKNOWN"] if one["check"] == ANSWER]
        assert {one["node"] for one in silent} == set(WORKERS), found
        assert all("/shared/data does not answer within 5 s" in one["evidence"] for one in silent), silent
        assert not [one for one in found.get("PASS", []) if one["check"] == ANSWER]
        assert "FAIL" not in found, found["FAIL"]  # what cannot be asked is not known to be wrong
        # deadlines of 5 s with a time factor of 10, four checks of two nodes side by side, and the logins
        assert took < 400, took
        # what reads nodes goes on: plan names the server that is away, and none of the workers
        planned = rack.cli("plan", str(rack.file), expect=4, timeout=600)
        assert "worker" not in planned.out.partition("unknown:")[2], planned.out
        assert f"{WAITS}/shared/data/counted" in asked_of(rack, "worker1", "/shared/data/counted")
        # repeated questions do not pile up processes
        results(rack, None, "--role", "nfs_client", "--limit", "worker1")
        left = int(rack.on("worker1", "pgrep -fc 'import errno, json' || :").strip())
        assert left <= len(SHARED), left
    finally:
        rack.heal(HEAD)
    settled(rack, HEAD)
    until(lambda: set(results(rack, None, "--role", "nfs_client")) == {"PASS"}, "answer of the server")
    wait_for(rack, job, "COMPLETED")
    assert rack.on("worker1", "tail -n 1 /shared/data/counted").strip() == "60"
    assert int(rack.on("worker1", "wc -l </shared/data/counted").strip()) == 60
    in_service(rack, *WORKERS)


def test_each_fault_of_a_mount_is_named(rack: Site) -> None:
    """Seeded on worker2, where no job runs."""
    node = "worker2"

    def verdict(check: str) -> set[str]:
        found = results(rack, None, "--role", "nfs_client", "--limit", node)
        return {status for status, rows in found.items() if (node, "nfs_client", check) in named(rows)}

    # another server's folder in its place
    rack.on(node, "umount /shared/data; mount -t nfs4 10.89.0.10:/srv/home /shared/data")
    assert verdict(MOUNTED) == {"FAIL"}
    plan = rack.plan(2)
    assert (node, "nfs_client", "Mount /shared/data") in operations(plan)
    rack.cli("apply", str(rack.file), "--yes")
    assert verdict(MOUNTED) == {"PASS"}
    # other options than declared
    rack.on(node, "umount /shared/data; mount -t nfs4 -o soft 10.89.0.10:/srv/data /shared/data")
    assert verdict(MOUNTED) == {"FAIL"}
    rack.converge()
    # its automount unit no longer starts at boot
    rack.on(node, "systemctl disable --now shared-data.automount; umount /shared/data || :")
    assert verdict("NFS mount units are as declared and start at boot") == {"FAIL"}
    rack.converge()
    # the server exports it read-only
    rack.on(HEAD, "sed -i '/^.srv.data/s/(rw,/(ro,/' /etc/exports.d/rackwright.exports; exportfs -ra")
    assert "FAIL" in verdict("NFS filesystems are writable")
    assert (HEAD, "nfs_server") in {(one, role) for one, role, _ in operations(rack.plan(2))}
    rack.converge()
    assert verdict("NFS filesystems are writable") == {"PASS"}


def test_a_stale_handle_is_named(rack: Site) -> None:
    node = "worker2"
    rack.on(node, "ls /shared/data")
    rack.on(HEAD, "mv /srv/data /srv/data.away; mkdir -m 1777 /srv/data; exportfs -ra")
    try:
        found = results(rack, None, "--role", "nfs_client", "--limit", node)
        said = " ".join(one["evidence"] for one in found["FAIL"])
        assert "stale file handle" in said, found
    finally:
        rack.on(HEAD, "rmdir /srv/data; mv /srv/data.away /srv/data; exportfs -ra")
    until(lambda: set(results(rack, None, "--role", "nfs_client")) == {"PASS"}, "end of the stale handle")
