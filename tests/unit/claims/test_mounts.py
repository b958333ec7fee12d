"""What roles claim of declared filesystems: each claim holds, is false, and cannot be known."""

from __future__ import annotations

import json
import shlex

import pytest

from rackwright.claims.mount_probe import PROGRAM
from rackwright.facts.mounts import MountTable
from rackwright.mounts import mounts_of, unit_texts
from rackwright.roles.nfs_client.options import NfsClientOptions
from rackwright.roles.nfs_client.verify import CHECKS
from rackwright.roles.nfs_server.options import NfsServerOptions
from tests.unit.roles.fake_facts import asked, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.nfs_sites import nfs, served
from tests.unit.roles.sites import head, worker

GOOD = {"seconds": 0.002, "blocks": 1000, "available": 500, "files": 1000, "files_available": 900}
ROOT = "0 0 0:0 / / rw - ext4 /dev/vda1 rw\n"
HOME = (
    "0 0 0:0 / /home rw,nosuid,nodev,noatime - nfs4 10.9.0.10:/srv/home "
    "rw,vers=4.2,hard,proto=tcp,nconnect=8,timeo=600,retrans=2,sec=sys\n"
)


def probe(answer, *, write=False, path="/home"):
    words = (PROGRAM, "write" if write else "read", path, "5")
    line = f"python3 -IS -c {' '.join(map(shlex.quote, words))}"
    return {line: json.dumps({path: answer}) if isinstance(answer, dict) else answer}


def judge(name, replies, fs=None):
    cluster = served(fs or nfs())
    result = judged("nfs_client", CHECKS, name, cluster, worker(cluster), FakeHost(replies))
    return str(result.status), result.evidence


ANSWERS = "NFS filesystems answer within their deadlines"
HUNG = {"hangs": True, "seconds": 5}
RESULT = "systemctl show -P Result home.mount"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (GOOD, ("PASS", "/home in 0.002 s")),
        (HUNG, ("UNKNOWN", "/home does not answer within 5 s")),
        (
            {"error": "ESTALE", "text": "Stale file handle"},
            ("FAIL", "/home has a stale file handle: the server's folder was removed or replaced"),
        ),
        ("rubbish", ("UNKNOWN", "cannot parse what the node printed about its filesystems: 'rubbish'")),
    ],
)
def test_answers(answer, result):
    assert judge(ANSWERS, probe(answer)) == result


@pytest.mark.parametrize(
    ("replies", "result"),
    [
        (
            {RESULT: "exit-code\n"},
            ("FAIL", "/home cannot be mounted: `systemctl status home.mount` on the node shows why"),
        ),
        ({RESULT: "timeout\n"}, ("UNKNOWN", "/home does not answer within 5 s")),
        ({}, ("UNKNOWN", "cannot run `systemctl`: sh: 1: systemctl: not found")),
    ],
)
def test_a_mount_that_failed_is_unknown_where_its_server_was_away(replies, result):
    """The automounter says ENODEV of both: a server that refuses the mount, and one that is not there."""
    answer = {"error": "ENODEV", "text": "No such device"}
    assert judge(ANSWERS, probe(answer) | replies) == result


def test_a_node_without_python_cannot_know():
    assert judge(ANSWERS, {})[0] == "UNKNOWN"


MOUNTED = "NFS filesystems are mounted as declared"


def table(text):
    return {asked(MountTable().command(("/home",))): text}


def test_what_waits_for_a_server_that_is_away_is_unknown():
    """Seen on the storage rack: the first use after a boot, while the server is down."""
    autofs = f"{ROOT}0 0 0:0 / /home rw - autofs systemd-1 rw\n"
    said = ("UNKNOWN", "/home is not mounted yet: its automount waits for the server")
    assert judge(MOUNTED, probe(HUNG) | table(autofs)) == said
    # without the automounter nothing waits: it is not mounted
    assert judge(MOUNTED, probe(HUNG) | table(ROOT)) == ("FAIL", "/home is not mounted")
    assert judge(MOUNTED, probe(HUNG) | table(ROOT + HOME))[0] == "PASS"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (ROOT + HOME, ("PASS", "/home from 10.9.0.10:/srv/home (nfs4)")),
        (ROOT, ("FAIL", "/home is not mounted")),
        (ROOT + "0 0 0:0 / /home rw - autofs systemd-1 rw\n", ("FAIL", "/home is not mounted")),
        (ROOT + HOME.replace("vers=4.2", "vers=4.1"), ("FAIL", "/home has vers=4.1, not vers=4.2")),
        (
            ROOT + HOME.replace("10.9.0.10:", "10.9.0.9:").replace("nosuid,", ""),
            ("FAIL", "/home comes from 10.9.0.9:/srv/home, not from 10.9.0.10:/srv/home; /home lacks nosuid"),
        ),
    ],
)
def test_mounted_as_declared(text, result):
    assert judge(MOUNTED, probe(GOOD) | table(text)) == result


def test_what_is_mounted_is_judged_while_the_server_is_away():
    assert judge(MOUNTED, probe(HUNG) | table(ROOT + HOME))[0] == "PASS"


@pytest.mark.parametrize("text", ["", "garbage\n"])
def test_a_table_that_cannot_be_read_is_unknown(text):
    assert judge(MOUNTED, probe(GOOD) | table(text))[0] == "UNKNOWN"


WRITTEN = "NFS filesystems are writable"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (GOOD | {"writes": True}, ("PASS", "/home")),
        (GOOD | {"writes": False}, ("FAIL", "/home is not writable: the server refuses its users")),
        (
            GOOD | {"writes": None},
            ("UNKNOWN", "/home: the server squashes root, and no user's folder gives an answer instead"),
        ),
        (
            {"error": "EROFS", "text": "Read-only file system"},
            ("FAIL", "/home is not writable: Read-only file system"),
        ),
        (
            {"error": "EDQUOT", "text": "Disk quota exceeded"},
            ("FAIL", "/home has no space for a file: Disk quota exceeded"),
        ),
        (
            {"error": "ENOSPC", "text": "No space left on device"},
            ("FAIL", "/home has no space for a file: No space left on device"),
        ),
        (HUNG, ("UNKNOWN", "/home does not answer within 5 s")),
        (GOOD | {"writes": "yes"}, None),
    ],
)
def test_can_be_written(answer, result):
    found = judge(WRITTEN, probe(answer, write=True))
    assert found == result if result is not None else found[0] == "UNKNOWN"


@pytest.mark.parametrize("writes", [False, None])
def test_with_kerberos_root_cannot_ask_for_users(writes):
    fs = nfs(options=("sec=krb5p",))
    found = judge(WRITTEN, probe(GOOD | {"writes": writes}, write=True), fs)
    assert found == (
        "OUT OF SCOPE",
        "only a user's Kerberos ticket, which root does not have, shows whether /home can be written",
    )
    assert judge(WRITTEN, probe(GOOD | {"writes": True}, write=True), fs) == ("PASS", "/home")
    read_only = {"error": "EROFS", "text": "Read-only file system"}
    assert judge(WRITTEN, probe(read_only, write=True), fs)[0] == "FAIL"


ONLY_ROOT = "only root may write to /home, but the server squashes root, and no user has a folder there to test instead"


def test_where_only_root_may_write_and_is_squashed_nothing_can_be_tested():
    """A new /home without users, or a software tree that another node writes."""
    answer = GOOD | {"writes": "root"}
    assert judge(WRITTEN, probe(answer, write=True)) == ("OUT OF SCOPE", ONLY_ROOT)
    two = served(nfs(), nfs(name="data", path="/data", export="/srv/data"))
    words = (PROGRAM, "write", "/home", "5", "/data", "5")
    asked_both = f"python3 -IS -c {' '.join(map(shlex.quote, words))}"

    def both(other):
        host = FakeHost({asked_both: json.dumps({"/home": answer, "/data": GOOD | {"writes": other}})})
        result = judged("nfs_client", CHECKS, WRITTEN, two, worker(two), host)
        return str(result.status), result.evidence

    assert both(True) == ("OUT OF SCOPE", f"{ONLY_ROOT}; /data can be written")
    assert both(False)[0] == "FAIL"
    assert both(None)[0] == "UNKNOWN"


def test_root_that_keeps_its_rights_by_declaration_has_to_be_able_to_write():
    cluster = served(nfs(), server=NfsServerOptions(root_access={"home": "gpu1"}))
    host = FakeHost(probe(GOOD | {"writes": "root"}, write=True))
    result = judged("nfs_client", CHECKS, WRITTEN, cluster, worker(cluster), host)
    assert (str(result.status), result.evidence) == (
        "FAIL",
        "/home is not writable: the server is declared not to squash this node's root, but refuses it",
    )


def test_what_is_read_alone_is_not_written():
    cluster = served(nfs(read_only=True))
    assert WRITTEN not in claimed("nfs_client", CHECKS, worker(cluster))
    assert WRITTEN in claimed("nfs_client", CHECKS, worker(served(nfs())))
    assert claimed("nfs_client", CHECKS, head(served(nfs()))) == ()


ROOM = "NFS filesystems have room"


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({}, ("PASS", "/home has 50 % free and 90 % of its inodes free")),
        ({"files": 0, "files_available": 0}, ("PASS", "/home has 50 % free")),
        ({"available": 40}, ("WARN", "/home has 4 % free, less than the declared 5 %")),
        ({"available": 20}, ("FAIL", "/home has 2 % free, less than the declared 5 %")),
        ({"files_available": 30}, ("WARN", "/home has 3 % of its inodes free, less than the declared 5 %")),
        ({"files_available": 0}, ("FAIL", "/home has 0 % of its inodes free, less than the declared 5 %")),
        ({"blocks": 0}, ("UNKNOWN", "/home reports a size of 0")),
    ],
)
def test_room(changes, result):
    assert judge(ROOM, probe(GOOD | changes)) == result


def test_room_of_one_that_hangs_is_unknown():
    assert judge(ROOM, probe(HUNG)) == ("UNKNOWN", "/home does not answer within 5 s")


UNITS = "NFS mount units are as declared and start at boot"


def unit_replies(fs):
    cluster = served(fs)
    (mount,) = mounts_of(worker(cluster), NfsClientOptions())
    return files(unit_texts(mount))


def test_units():
    there = unit_replies(nfs())
    assert judge(UNITS, there | unit("home.automount")) == (
        "PASS",
        "/etc/systemd/system/home.mount, /etc/systemd/system/home.automount; home.automount is active and enabled",
    )
    assert judge(UNITS, there | unit("home.automount", "failed")) == ("FAIL", "home.automount is failed")
    assert judge(UNITS, there)[0] == "UNKNOWN"
    at_boot = nfs(automount=False)
    assert judge(UNITS, unit_replies(at_boot) | unit("home.mount"), at_boot)[0] == "PASS"
    assert judge(UNITS, there | unit("home.mount"), at_boot) == (
        "FAIL",
        (
            "/etc/systemd/system/home.mount is not as declared: lines are missing or in another order; "
            "/etc/systemd/system/home.automount exists but is not declared"
        ),
    )
