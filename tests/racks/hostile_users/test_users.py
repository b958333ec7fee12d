"""Attacks of an unprivileged user, and of root on one worker: each is refused or has no effect."""

from __future__ import annotations

import json

import pytest

from rackwright.health.guard import places
from rackwright.lab import gpu_node
from tests.racks.site import Site
from tests.racks.watch import Watch

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_SSH = (
    "ssh -o BatchMode=yes -o PreferredAuthentications=hostbased -o HostbasedAuthentication=yes "
    "-o UserKnownHostsFile=none"
)
KEY = "/etc/munge/munge.key"
EXPORTER = places.TEXTFILES.rpartition("/")[0]
_STATE = f"sha256sum {KEY}; stat -c '%a %U' {KEY}"


def _as(user: str, command: str) -> str:
    """Shell: a command as a user, with its exit status; root may become any user of its node."""
    return f"runuser -u {user} -- {command} 2>&1 </dev/null && echo status 0 || echo status $?"


def _login(site: Site, source: str, user: str, target: str, command: str = "id -un") -> str:
    return site.on(source, _as(user, f"{_SSH} {target} {command}"))


@pytest.mark.smoke
@pytest.mark.parametrize("user", ["rack", "bob", "ada", "nobody", "root"])
def test_root_of_a_worker_becomes_no_user_of_the_head(user: str, site: Site) -> None:
    said = _login(site, "worker1", user, "head1", "sudo -n id")
    assert f"{user}@head1: Permission denied" in said, said
    assert "uid=0" not in said


@pytest.mark.smoke
@pytest.mark.parametrize("user", ["rack", "bob", "root"])
def test_root_of_a_worker_becomes_no_user_with_sudo_on_another_worker(user: str, site: Site) -> None:
    said = _login(site, "worker1", user, "worker2", "sudo -n id")
    assert f"{user}@worker2: Permission denied" in said, said


@pytest.mark.smoke
@pytest.mark.parametrize(("source", "target"), [("worker1", "worker2"), ("head1", "worker1")])
def test_ordinary_users_still_log_in_without_a_key(source: str, target: str, site: Site) -> None:
    """What mpirun needs."""
    assert _login(site, source, "ada", target) == "ada\nstatus 0\n"


def test_verify_tries_these_logins_too(site: Site) -> None:
    report = json.loads(site.cli("verify", str(site.file), "--role", "access", "--json").out)
    assert {one["status"] for one in report["results"]} == {"PASS"}, report
    site.on("head1", "echo worker1 >>/etc/ssh/shosts.equiv; echo 10.77.0.11 >>/etc/ssh/shosts.equiv")
    try:
        report = json.loads(site.cli("verify", str(site.file), "--role", "access", "--json", expect=3).out)
        failed = {(one["node"], one["check"]) for one in report["results"] if one["status"] == "FAIL"}
        assert failed == {
            ("head1", "nodes trusted for host-based logins are as declared"),
            ("worker1", "heads refuse host-based logins from this node"),
        }
    finally:
        site.converge()


_PLANTS = {
    "a link in the place of the file": f"ln -s {KEY} rackwright_health.prom",
    "a link in the place of the new file": f"ln -s {KEY} rackwright_health.prom.new",
    "a link in the place of the new link": f"ln -s {KEY} .rackwright_health.prom.new",
}


@pytest.mark.parametrize("plant", _PLANTS.values(), ids=_PLANTS)
def test_the_exporters_user_reaches_no_file_of_roots(plant: str, site: Site, watch: Watch) -> None:
    """Its folder is replaced by one that it owns, as it may: the one above belongs to it."""
    before = site.on("worker1", _STATE)
    swap = f"cd {EXPORTER} && mv node-exporter away && mkdir node-exporter && cd node-exporter && {plant}"
    assert site.on("worker1", _as("prometheus", f"sh -c '{swap}'")) == "status 0\n"
    try:
        watch.passes("worker1", 2)
        assert site.on("worker1", _STATE) == before
        link = site.on("worker1", f"readlink {places.TEXTFILES}/rackwright_health.prom")
        assert link == f"{places.METRICS}\n"
        assert "rackwright_health_acts 1" in site.on(
            "worker1", f"runuser -u prometheus -- cat {places.TEXTFILES}/rackwright_health.prom"
        )
    finally:
        site.on("worker1", f"cd {EXPORTER}; rm -rf node-exporter; mv away node-exporter")


def test_a_folder_of_roots_in_the_place_of_the_exporters_gets_nothing(site: Site, watch: Watch) -> None:
    before = site.on("worker1", "ls -A /etc/sudoers.d")
    swap = f"cd {EXPORTER} && mv node-exporter away && ln -s /etc/sudoers.d node-exporter"
    assert site.on("worker1", _as("prometheus", f"sh -c '{swap}'")) == "status 0\n"
    try:
        watch.passes("worker1", 2)
        assert site.on("worker1", "ls -A /etc/sudoers.d") == before
    finally:
        site.on("worker1", f"cd {EXPORTER}; rm -f node-exporter; mv away node-exporter")


def _job(site: Site, user: str, node: str, command: str) -> str:
    return site.on("head1", _as(user, f"srun -Q -t 1 -n 1 --mem=16 -w {node} {command}"))


def test_no_user_takes_the_folder_of_another_first(site: Site) -> None:
    folder = "/scratch/rootless/3000"
    site.on("worker2", f"rm -rf {folder}")
    said = site.on("worker2", _as("eve", f"mkdir {folder}"))
    assert "Permission denied" in said
    assert _job(site, "ada", "worker2", f"stat -c '%U %a' {folder}") == "ada 700\nstatus 0\n"


def test_a_folder_that_another_user_took_earlier_is_not_used(site: Site) -> None:
    folder = "/scratch/rootless/3000"
    site.on("worker2", f"rm -rf {folder}*; install -d -o eve -g eve -m 777 {folder}; touch {folder}/trojan")
    assert _job(site, "ada", "worker2", f"stat -c '%U %a' {folder}") == "ada 700\nstatus 0\n"
    assert site.on("worker2", f"ls -A {folder}") == ""
    assert site.on("worker2", f"ls {folder}.not-of-3000.*") == "trojan\n"
    assert "worker2" in site.on("head1", "sinfo -h -t idle,mixed,allocated,completing -N -o %N")
    site.on("worker2", f"rm -rf {folder}.not-of-3000.*")


def test_users_do_not_see_the_jobs_of_others(site: Site) -> None:
    made = site.on(
        "head1",
        "cd /tmp; runuser -u ada -- sbatch --parsable --mem=16 -t 2 -J secret-project --wrap 'sleep 90'",
    )
    job = made.strip()
    try:
        assert "secret-p" in site.on("head1", "runuser -u ada -- squeue -h -o %j")
        for command in (
            "squeue -h -o %j",
            "scontrol show job",
            f"scontrol show job {job}",
            "sacct -a -n -P -o jobname",
        ):
            assert "secret-project" not in site.on("head1", _as("eve", command)), command
    finally:
        site.on("head1", f"scancel {job}")


_SECRETS = (
    *(KEY, "/etc/shadow", "/etc/ssh/ssh_host_ed25519_key"),
    *(places.LAST, places.MEMORY, places.GPUS, places.WOULD),
)


@pytest.mark.smoke
def test_users_read_no_keys_and_no_kernel_log(site: Site) -> None:
    for path in _SECRETS:
        assert site.on("worker1", f"test -s {path} && echo there") == "there\n", path
        assert "Permission denied" in site.on("worker1", _as("eve", f"cat {path}")), path
    assert "Permission denied" in site.on("head1", _as("eve", "cat /etc/slurm/slurmdbd.conf"))
    assert "Pass" not in site.on("worker1", "runuser -u eve -- cat /etc/slurm/slurm.conf")


@pytest.mark.smoke
def test_users_write_nothing_of_ours(site: Site) -> None:
    look = "find /etc /usr/libexec /usr/local /var/lib/rackwright /var/cache ! -type l -writable"
    for node in site.nodes:
        assert site.on(node, f"runuser -u eve -- {look} 2>/dev/null || :") == "", node


_XID = "NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
_FORGED = (
    _XID,
    "mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 5: be00000000800400",
    "EXT4-fs error (device sda1): ext4_find_entry:1463: inode #2: comm ls: reading directory lblock 0",
)
# A program names itself in 15 characters, and the kernel writes that name.
_NAMES = ("NVRM: Xid (PCI:", "mce: [Hardware ", "EXT4-fs error (")
_BY_NAME = (
    "{0}[4711]: segfault at 0 ip 000055d0c1e0 sp 00007ffe31d0 error 4 in a.out[55d0c1e0f000+1000]",
    "Out of memory: Killed process 4711 ({0}) total-vm:8192kB, anon-rss:4096kB, file-rss:0kB, UID:3001",
    "traps: {0}[4711] general protection fault ip:55d0 sp:7ffe error:0 in a.out[55d0c1e0f000+1000]",
)


@pytest.mark.smoke
def test_a_forged_kernel_log_drains_no_node(site: Site, watch: Watch) -> None:
    watch.in_service("worker1")
    assert "Permission denied" in site.on("worker1", _as("eve", "sh -c 'echo x >/dev/kmsg'"))
    for line in _FORGED:
        quoted = line.replace("'", "")
        site.on("worker1", f"runuser -u eve -- logger -p kern.crit '{quoted}'")
        site.on("worker1", f"runuser -u eve -- logger -t kernel -p kern.crit '{quoted}'")
        gpu_node.write(site.name, "worker1", line, by_program=True)
    for name in _NAMES:
        for line in _BY_NAME:
            gpu_node.write(site.name, "worker1", line.format(name), by_program=False)
    assert "fallen off the bus" in site.on("worker1", "journalctl -k -b --no-pager")
    passes = watch.passes("worker1", 3)
    assert {one["action"] for one in passes} == {"none"} or not any(
        one["memory"]["drained"] for one in passes
    )
    assert watch.rows()["worker1"].state in ("idle", "mixed", "allocated")
    assert watch.last("worker1")["memory"]["reboots"] == []


def test_the_kernels_own_line_still_drains_it(watch: Watch) -> None:
    """So the test before could fail."""
    watch.fault("worker1", "gpu:xid:79")
    try:
        watch.drained("worker1", "xid")
    finally:
        watch.heal("worker1")
    watch.in_service("worker1")
