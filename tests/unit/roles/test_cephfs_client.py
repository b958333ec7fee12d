"""The cephfs_client role.

What mount.ceph passes to mount(2) was recorded on 2026-11-26 with mount.ceph of Debian 12's ceph-common 16.2.15 and a
stand-in for mount(2); mountinfo's options are as public logs of the kernel client have them.
"""

from __future__ import annotations

import pytest

from rackwright.model.storage import FilesystemKind
from rackwright.model.types import Platform
from rackwright.mounts import differences, mount_text, parse_mountinfo
from rackwright.osfamily.known import RELEASES
from rackwright.roles.cephfs_client import verify
from rackwright.roles.cephfs_client.options import CephfsClientOptions
from rackwright.roles.cephfs_client.verify import CHECKS, STATUS
from rackwright.secrets.store import Secret
from tests.unit.roles.fake_facts import file
from tests.unit.roles.fake_facts import installed as have
from tests.unit.roles.fake_host import commands, errors_in, planned
from tests.unit.roles.mount_sites import KERNEL, filesystem, mounting_site, verdict
from tests.unit.roles.sites import worker
from tests.unit.roles.stack_tools import installed

NAMES = [check.name for check in CHECKS]
INSTALLED, MODULE, KEYS, SESSION = *NAMES[:3], NAMES[-1]
FSID = "00000000-0000-0000-0000-000000000001"
USER = {"user": "hpc", "stored_as": "cephfs_hpc"}
PLAIN = CephfsClientOptions.model_validate({"access": {"scratch": {**USER, "ms_mode": "legacy"}}})
NEW = CephfsClientOptions.model_validate({"access": {"scratch": {**USER, "fsid": FSID}}})
SCRATCH = filesystem(FilesystemKind.CEPHFS, "10.0.0.5", "10.0.0.6", fsname="lab", export="/vol")
KEY_FILE = "/etc/ceph/rackwright-scratch.secret"
ARCHIVE = {"url": "http://m/ceph/", "key_url": "http://m/ceph.asc", "fingerprint": "A" * 40}


class _Store:
    def get(self, name):
        return Secret(name, "AQCt5d1hAAAAABAA==")


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr(verify, "store_of", lambda cluster: _Store())


def ceph_site(given=PLAIN, fs=SCRATCH, **changes):
    return mounting_site({"cephfs_client": given}, fs, **changes)


def problems(given=PLAIN, fs=SCRATCH, **changes):
    return list(given.problems(ceph_site(given, fs, **changes)))


def test_by_monitors():
    mount = PLAIN.mount_of(worker(ceph_site()), SCRATCH)
    assert mount.what == "10.0.0.5:6789,10.0.0.6:6789:/vol"
    assert mount.options == (
        *("nosuid", "nodev", "noatime", "name=hpc", "fs=lab"),
        *(f"secretfile={KEY_FILE}", "recover_session=no"),
    )


def test_by_the_fsid():
    mount = NEW.mount_of(worker(ceph_site(NEW)), SCRATCH)
    assert mount.what == f"hpc@{FSID}.lab=/vol"
    assert mount.options[3:] == (
        *("mon_addr=10.0.0.5:3300/10.0.0.6:3300", f"secretfile={KEY_FILE}"),
        *("recover_session=no", "ms_mode=prefer-crc"),
    )


def test_no_key_is_in_the_unit():
    text = mount_text(PLAIN.mount_of(worker(ceph_site()), SCRATCH))
    assert "secretfile=" in text
    assert "\nWhat=10.0.0.5:6789,10.0.0.6:6789:/vol\n" in text
    assert "secret=" not in text


@pytest.mark.parametrize(
    ("shown", "wrong"),
    [
        ("rw,name=hpc,secret=<hidden>,acl,mds_namespace=lab", []),
        ("rw,name=admin,secret=<hidden>,acl,mds_namespace=lab", ["has name=admin, not name=hpc"]),
        ("rw,name=hpc,secret=<hidden>,acl", ["lacks mds_namespace=lab"]),
    ],
)
def test_what_the_kernel_shows(shown, wrong):
    """As mount.ceph 16 passed it to mount(2): `fs=lab` became `mds_namespace=lab`."""
    mount = PLAIN.mount_of(worker(ceph_site()), SCRATCH)
    table = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:50 / /scratch rw,nosuid,nodev,noatime - ceph 10.0.0.5:6789,10.0.0.6:6789:/vol {shown}\n"
    )
    assert list(differences(mount, table["/scratch"][0])) == wrong


def test_refused():
    assert errors_in(CephfsClientOptions, {"access": {}})
    assert errors_in(CephfsClientOptions, {"access": {"scratch": {**USER, "user": "client hpc"}}})
    assert problems() == []
    assert problems(NEW, os=RELEASES["debian-13"]) == []
    assert problems(NEW, os=RELEASES["debian-12"]) == [
        (
            "access.scratch.fsid",
            "ceph-common 16 of debian-12, which gpu1 runs, mounts by monitors only.",
            "leave `fsid` out, or declare `archive`",
        )
    ]
    assert [one[:2] for one in problems(os=RELEASES["rocky-9"])] == [
        ("archive", "The archives of rocky-9, which gpu1 runs, have no known ceph-common.")
    ]
    other = CephfsClientOptions.model_validate({"access": {"home": USER}})
    assert [one[1] for one in problems(other)] == [
        "There is no filesystem home of the kind cephfs.",
        "scratch has no user.",
    ]
    named = filesystem(FilesystemKind.CEPHFS, "mon1.example.com", fsname="lab")
    assert [one[1] for one in problems(fs=named)] == [
        "mon1.example.com of scratch is a DNS name, but the kernel shows the address instead."
    ]
    assert problems(NEW, named) == []
    twice = SCRATCH.model_copy(update={"options": ("name=admin",)})
    assert [one[1] for one in problems(fs=twice)] == ["`name` of scratch is set by this role."]
    assert [one[1] for one in problems(platform=Platform.CONTAINER)] == [
        "gpu1 cannot mount scratch: a container neither mounts nor serves network filesystems."
    ]


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    given = CephfsClientOptions.model_validate(
        {**PLAIN.model_dump(), "archive": ARCHIVE, "version": "19.2.3-1"}
    )
    cluster = ceph_site(given, os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    (install,) = commands(plan, "Install the Ceph client")
    assert "ceph-common" in install
    assert "19.2.3-1" in install
    key = next(one for one in plan.operations if one.name == "Write the key for scratch").changes[0]
    assert (key.target, key.content) == (KEY_FILE, "(secret cephfs_hpc)\n")


def test_secrets():
    assert PLAIN.supplied_secrets == ("cephfs_hpc",)
    assert PLAIN.held_packages(worker(ceph_site())) == ()


MODINFO = f"modinfo -k {KERNEL} -F filename ceph"
ASK = f"sh -c '{STATUS}'"
GOOD = "instance: client.4305 (2)10.11.0.11:0/1203431423\nblocklisted: false\n"
KEY = "AQCt5d1hAAAAABAA==\n"
HEALTHY = {
    MODINFO: "/lib/modules/x/kernel/fs/ceph/ceph.ko\n",
    ASK: GOOD,
    **file(KEY_FILE, KEY, "600", digest_only=True),
    **have(worker(ceph_site()).family, ["ceph-common"]),
}
CASES = [
    (INSTALLED, {}, "PASS"),
    (INSTALLED, have(worker(ceph_site()).family, ["ceph-common"], missing=["ceph-common"]), "FAIL"),
    (MODULE, {}, "PASS"),
    (MODULE, {MODINFO: (1, "", "modinfo: ERROR: Module ceph not found.")}, "FAIL"),
    (MODULE, {MODINFO: (1, "", "")}, "UNKNOWN"),
    (KEYS, {}, "PASS"),
    (KEYS, file(KEY_FILE, KEY, "644", digest_only=True), "FAIL"),
    (KEYS, file(KEY_FILE, "another\n", "600", digest_only=True), "FAIL"),
    (KEYS, file(KEY_FILE, None, digest_only=True), "FAIL"),
    (SESSION, {}, "PASS"),
    (SESSION, {ASK: GOOD.replace("false", "true")}, "FAIL"),
    (SESSION, {ASK: GOOD.replace("blocklisted: false", "blacklisted: true")}, "FAIL"),
    (SESSION, {ASK: (1, "", "cat: '/sys/kernel/debug/ceph/*/status': No such file")}, "UNKNOWN"),
    (SESSION, {ASK: "nothing\n"}, "UNKNOWN"),
]


@pytest.mark.parametrize(("name", "changes", "status"), CASES)
def test_a_check(name, changes, status):
    found = verdict("cephfs_client", CHECKS, name, ceph_site(), {**HEALTHY, **changes})
    assert found.status == status, found.evidence
    assert KEY.strip() not in found.evidence


@pytest.mark.parametrize("name", NAMES)
def test_a_node_that_answers_nothing_passes_nothing(name):
    assert verdict("cephfs_client", CHECKS, name, ceph_site(), {}).status == "UNKNOWN"


def test_a_version_is_held():
    given = PLAIN.model_copy(update={"version": "18.2.7-1"})
    for version, status in (("18.2.7-1", "PASS"), ("18.2.6-1", "FAIL")):
        replies = installed({"ceph-common": version})
        assert verdict("cephfs_client", CHECKS, INSTALLED, ceph_site(given), replies).status == status
