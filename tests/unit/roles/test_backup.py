"""The backup role: options, what lands on a head, and its checks; what Slurm and MariaDB add to it."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import ClassVar

import pyrage
import pytest

from rackwright.backup import places
from rackwright.model.backups import overwritten, parts_of, stopped_units
from rackwright.model.options import RoleOptions
from rackwright.model.storage import (
    Filesystem,
    FilesystemKind,
    FilesystemPurpose,
    Mount,
    MountsFilesystems,
    Server,
)
from rackwright.node_programs import BACKUP, one_text
from rackwright.osfamily.known import os_release
from rackwright.roles.backup import texts
from rackwright.roles.backup.options import BackupOptions
from rackwright.roles.backup.verify import CHECKS
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.secrets.store import SecretStore
from tests.unit.roles.fake_facts import file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.slurm_clusters import cluster, node

OPTIONS = BackupOptions(place="/srv/backup")
KEY = str(pyrage.x25519.Identity.generate().to_public())
SETTINGS = "the backup settings are as declared"
KEPT = "backups include the current cluster file and secrets store"
PLACE = "backups go to the declared place"
WHOLE = "the newest backup is recent and complete"
OPENS = "your identity decrypts the newest backup"
LIST = f"timeout 50 {places.PROGRAM} --list"
REPORT = f"timeout 540 {places.PROGRAM} --report"


class MountsNfs(MountsFilesystems, RoleOptions):
    """Stands for nfs_client."""

    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.NFS})

    def mount_of(self, node, filesystem):
        return Mount(filesystem, "nas:/b", "nfs4", types=("nfs4", "nfs"))


def filesystem(**changes):
    fields = {
        "name": "vault",
        "kind": FilesystemKind.NFS,
        "purpose": FilesystemPurpose.DATA,
        "path": "/srv",
        "servers": (Server(name="nas", address="nas", node=False),),
    }
    return Filesystem(**{**fields, **changes})


def site(options=OPTIONS, slurm=None, filesystems=(), **others):
    head = node("head1", "10.0.0.1", "head", primary=True, filesystems=tuple(filesystems))
    second = node("head2", "10.0.0.2", "head")
    worker = node("worker1", "10.0.0.3", "worker")
    return cluster("test", head, second, worker, slurm=slurm, backup=options, **others)


SITE = site()
HEAD = SITE.by_name["head1"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Field required"),
        (
            {"place": "backup"},
            "Not a valid absolute path: letters, digits, `.`, `_` and `-` between slashes.",
        ),
        (
            {"place": "/tmp/x"},
            "/tmp/x is not usable for backups: it belongs to the system or is emptied at boot.",
        ),
        (
            {"place": "/var/tmp"},
            "/var/tmp is not usable for backups: it belongs to the system or is emptied at boot.",
        ),
        ({"place": "/b", "every": "sometimes"}, "Not a valid time of systemd's OnCalendar."),
        ({"place": "/b", "every": "02:30; reboot"}, "Not a valid time of systemd's OnCalendar."),
        ({"place": "/b", "keep": 1}, "Input should be greater than or equal to 2"),
        ({"place": "/b", "recipients": ["AGE-SECRET-KEY-1X"]}, "Recipient 1 is not a valid age public key."),
        ({"place": "/b", "max_age_hours": 0}, "Input should be greater than 0"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(BackupOptions, given) == [sentence]


def test_calendars_and_recipients():
    for every in ("hourly", "Daily", "Mon..Fri *-*-* 02:00:00", "*:0/15"):
        assert BackupOptions(place="/b", every=every).every == every
    assert BackupOptions(place="/b", recipients=(KEY,)).recipients == (KEY,)


def problems(cluster):
    return list(cluster.by_name["head1"].options["backup"].problems(cluster))


def test_problems():
    assert problems(SITE) == []
    assert problems(site(filesystems=[filesystem(read_only=True)])) == [
        ("place", "/srv/backup is on vault, which head1 mounts read-only.", None)
    ]
    assert problems(site(filesystems=[filesystem(purpose=FilesystemPurpose.SCRATCH)])) == [
        ("place", "/srv/backup is on vault, a scratch filesystem.", "use a filesystem whose files are kept")
    ]
    rare = BackupOptions(place="/b", every="monthly")
    assert [path for path, _, _ in problems(site(rare))] == ["max_age_hours"]
    assert problems(site(BackupOptions(place="/b", every="monthly", max_age_hours=800))) == []


@pytest.mark.parametrize(
    ("filesystems", "warned"),
    [
        ([], "head1, head2"),
        ([filesystem()], "head2"),
        ([filesystem(kind=FilesystemKind.LOCAL, servers=())], "head1, head2"),
        ([filesystem(servers=(Server(name="head1", address="10.0.0.1", node=True),))], "head1, head2"),
    ],
)
def test_backups_that_are_lost_with_the_head_are_warned_of(filesystems, warned):
    ((path, sentence, _),) = OPTIONS.warnings(site(filesystems=filesystems))
    assert path == "place"
    assert sentence == (
        f"/srv/backup of {warned} is not on a filesystem of another server: backups are lost with the head."
    )


def test_parts_come_from_the_roles_of_the_head():
    assert [part.name for part in parts_of(SITE, HEAD)] == ["database", "slurmctld", "purged-records", "site"]
    assert [part.name for part in parts_of(SITE, SITE.by_name["head2"])] == ["site"]
    assert parts_of(SITE, SITE.by_name["worker1"]) == ()
    moved = site(
        slurm=SlurmOptions(accounting={"dbd_host": "head2", "archive_dir": None}),
        mariadb=MariadbOptions(node="head2"),
    )
    assert [part.name for part in parts_of(moved, moved.by_name["head1"])] == ["slurmctld", "site"]
    assert [part.name for part in parts_of(moved, moved.by_name["head2"])] == ["database", "site"]


def test_the_database_is_dumped_as_of_one_moment_and_without_a_password():
    database = parts_of(SITE, HEAD)[0]
    assert database.dump == (
        "mariadb-dump --no-defaults --user=root --max-allowed-packet=1G --single-transaction --quick --routines "
        "--hex-blob --add-drop-database --databases slurm_acct_db"
    )
    assert database.load == "mariadb --no-defaults --user=root --max-allowed-packet=1G"
    assert database.ready == "mariadb --no-defaults --user=root '--execute=SELECT 1'"


def test_the_state_of_a_pair_of_controllers_is_put_back_on_its_mount_alone():
    pair = SlurmOptions(
        backups=("head2",),
        state_dir="/shared/slurm",
        state_mount={"path": "/shared", "source": "nas:/s", "fstype": "nfs4"},
    )
    made = site(slurm=pair)
    state = next(part for part in parts_of(made, made.by_name["head1"]) if part.name == "slurmctld")
    assert (state.folder, state.ready) == ("/shared/slurm", "mountpoint -q /shared && test -d /shared/slurm")
    assert "slurmctld" not in [part.name for part in parts_of(made, made.by_name["head2"])]


def test_slurmdbd_starts_before_slurmctld_on_whatever_node():
    pair = SlurmOptions(backups=("head2",), accounting={"dbd_host": "head2"})
    moved = site(slurm=pair, mariadb=MariadbOptions(node="head2"))
    assert [(one.name, unit.unit) for one, unit in stopped_units(moved)] == [
        ("head2", "slurmdbd.service"),
        ("head1", "slurmctld.service"),
        ("head2", "slurmctld.service"),
    ]


SLURM = """\
#!/bin/sh
case "$*" in
  *"SHOW TABLES"*) printf '%s\\n' $TABLES;;
  *COUNT*) echo "$COUNT";;
  *acct_table*) [ "$ACCOUNTS" != fails ] || exit 1; printf '%s' "$ACCOUNTS";;
  *user_table*) printf '%s' "$USERS";;
  *--format=%A*) [ "$QUEUE" != fails ] || exit 1; printf '%s' "$QUEUE";;
  *) echo "unexpected: $*" >&2; exit 9;;
esac
"""
ALL = "acct_table user_table test_job_table"


@pytest.mark.parametrize(
    ("about", "answers", "status", "printed"),
    [
        ("the queue", {"QUEUE": ""}, 0, ""),
        ("the queue", {"QUEUE": "7\n8\n"}, 0, "2 jobs in the queue\n"),
        ("the queue", {"QUEUE": "fails"}, 1, ""),
        ("accounting records", {"TABLES": ""}, 0, ""),
        ("accounting records", {"TABLES": ALL, "COUNT": "0"}, 0, ""),
        (
            "accounting records",
            {"TABLES": ALL, "COUNT": "12", "ACCOUNTS": "adhoc\nlab\n", "USERS": "grace\n"},
            0,
            "12 jobs in the accounting records\nundeclared accounts: adhoc lab\nundeclared users: grace\n",
        ),
        ("accounting records", {"TABLES": ALL, "COUNT": "0", "ACCOUNTS": "fails"}, 1, ""),
    ],
)
def test_what_a_restore_would_destroy(tmp_path, about, answers, status, printed):
    """An answer that does not come is never taken for nothing."""
    for tool in ("squeue", "mariadb"):
        (tmp_path / tool).write_text(SLURM)
        (tmp_path / tool).chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "TABLES": "",
        "ACCOUNTS": "",
        "USERS": "",
        "QUEUE": "",
        **answers,
    }
    ran = subprocess.run(
        ["sh", "-c", overwritten(SITE, HEAD)[about]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (bool(ran.returncode), ran.stdout) == (bool(status), printed), ran.stderr


def test_declared_accounts_are_not_counted():
    slurm = SlurmOptions(accounts={"research": {}}, users={"ada": {"default_account": "research"}})
    made = site(slurm=slurm)
    asked = overwritten(made, made.by_name["head1"])["accounting records"].replace("'\"'\"'", "'")
    assert "FROM acct_table WHERE deleted=0 AND name NOT IN ('burnin', 'research', 'root')" in asked
    assert "FROM user_table WHERE deleted=0 AND name NOT IN ('ada', 'root', 'slurm')" in asked


def test_what_lands_on_a_head():
    plan = planned(SITE, HEAD)
    assert content(plan, places.PROGRAM) == "#!/usr/bin/python3 -IS\n" + one_text(BACKUP)
    settings = json.loads(content(plan, places.SETTINGS))
    assert settings["place"] == "/srv/backup/test"
    assert settings["mount"] is None
    assert [part["name"] for part in settings["parts"]] == ["database", "slurmctld", "purged-records", "site"]
    assert "OnCalendar=*-*-* 02:30:00\n" in content(plan, f"/etc/systemd/system/{places.TIMER}")
    service = content(plan, f"/etc/systemd/system/{places.SERVICE}")
    assert "RequiresMountsFor=/srv/backup\n" in service
    assert f"ExecStart=/usr/bin/python3 -IS {places.PROGRAM}\n" in service
    assert commands(plan, "Make the first backup") == (f"{places.PROGRAM} --first",)
    assert "backup" not in {entry.role for entry in planned(SITE, SITE.by_name["worker1"]).operations}
    assert claimed("backup", CHECKS, SITE.by_name["worker1"]) == ()


@pytest.mark.parametrize("release", ["debian-12", "ubuntu-24.04", "rocky-9"])
def test_every_family_has_what_the_program_runs(release):
    head = node("head1", "10.0.0.1", "head", primary=True, os=os_release(release))
    plan = planned(made := cluster("test", head, backup=OPTIONS), made.by_name["head1"])
    installed = next(entry for entry in plan.operations if entry.name == "Install age")
    assert {change.target for change in installed.changes} >= {"age", "gzip", "python3"}


@pytest.mark.parametrize(
    ("given", "roles", "mount"),
    [
        (filesystem(), {"nfs": MountsNfs()}, {"path": "/srv", "types": ["nfs4", "nfs"]}),
        (filesystem(), {}, {"path": "/srv", "types": []}),
        (
            filesystem(servers=(Server(name="head1", address="10.0.0.1", node=True),)),
            {"nfs": MountsNfs()},
            None,
        ),
        (filesystem(path="/srv/backup/inner"), {"nfs": MountsNfs()}, None),
    ],
)
def test_a_declared_filesystem_has_to_be_mounted(given, roles, mount):
    made = site(filesystems=[given], **roles)
    assert json.loads(texts.settings(made, made.by_name["head1"], OPTIONS, [KEY]))["mount"] == mount


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of the cluster beside a cluster file, read by the checks."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "site.yaml").write_text("cluster: {name: test}\n")
    made = SecretStore(tmp_path / "site.yaml", "test")
    made.ensure(["munge_key"])
    monkeypatch.setattr("rackwright.roles.backup.verify.store_of", lambda cluster: made)
    return made


@pytest.fixture
def here(store):
    """The cluster of that store."""
    return SITE.model_copy(update={"path": store.path.parent / "site.yaml"})


def test_recipients_are_those_of_the_store_and_the_declared(store):
    mine = next(iter(store.content().recipients))
    assert texts.recipients_of(store, BackupOptions(place="/b", recipients=(KEY,))) == {mine, KEY}
    assert texts.recipients_of(None, BackupOptions(place="/b", recipients=(KEY,))) == {KEY}
    store.path.unlink()
    assert texts.recipients_of(store, OPTIONS) == {mine}  # as the first apply will have it
    assert texts.recipients_file({KEY}) == f"# Written by rackwright.\n{KEY}\n"


def test_the_kept_store_is_the_store_as_text(store, here):
    kept = texts.site_files(here, store)
    assert sorted(kept) == ["site.yaml", "test.secrets.age"]
    assert kept["site.yaml"] == "cluster: {name: test}\n"
    copy = SecretStore(store.path.parent / "copy" / "site.yaml", "test")
    copy.path.parent.mkdir()
    copy.path.write_text(kept["test.secrets.age"])
    assert copy.file.read() == store.content()  # `rackwright secrets` reads it as it is
    assert "munge" not in kept["test.secrets.age"]
    store.file.recipients_path.write_text(f"{KEY}\n")
    here.lock_path.write_text("lock")
    assert sorted(texts.site_files(here, store)) == [
        "site.lock.yaml",
        "site.yaml",
        "test.secrets.age",
        "test.secrets.recipients",
    ]
    assert texts.site_files(here, None)["test.secrets.age"] == "(the encrypted secrets store)\n"


NOW = 1764124200.0 + 3600


def report(store, **changes):
    newest = {
        "name": "head1-20251126T023000Z",
        "made": 1764124200.0,
        "installation": "abc",
        "recipients": sorted(store.content().recipients),
        "parts": [
            {"name": name, "about": name, "size": 10}
            for name in ("database", "slurmctld", "purged-records", "site")
        ],
    }
    newest.update(changes.pop("newest", {}))
    found = {
        "now": NOW,
        "last": {"error": changes.pop("error", None)},
        "installation": "abc",
        "refused": None,
        "backups": [newest],
        "broken": [],
        "damage": [],
        "headers": {"database": 1, "site": 1},
        **changes,
    }
    return json.dumps(found)


def packed(store, name="site.yaml"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    keys = [pyrage.x25519.Recipient.from_str(key) for key in store.content().recipients]
    return base64.b64encode(pyrage.encrypt(gzip.compress(out.getvalue()), keys)).decode()


SITE_PART = "base64 /srv/backup/test/head1-20251126T023000Z/site.gz.age"
FAILING = [
    (WHOLE, {"newest": {"made": NOW - 31 * 3600}}, "head1-20251126T023000Z is 31 h old, more than 30 h"),
    (WHOLE, {"backups": [], "error": "no space"}, "no backup exists: no space"),
    (WHOLE, {"installation": "new", "error": "of an earlier one"}, "no backup exists: of an earlier one"),
    (WHOLE, {"damage": ["x is not the file"]}, "head1-20251126T023000Z: x is not the file"),
    (
        WHOLE,
        {"newest": {"parts": [{"name": "site", "about": "site", "size": 1}]}},
        "head1-20251126T023000Z lacks database slurm_acct_db, state of slurmctld, archived accounting records",
    ),
    (
        WHOLE,
        {"newest": {"recipients": [KEY]}},
        "head1-20251126T023000Z is encrypted to recipients other than the declared 1",
    ),
    (
        WHOLE,
        {"headers": {"site": 2}},
        "site of head1-20251126T023000Z is encrypted to 2 recipients, not to 1",
    ),
    (
        WHOLE,
        {"headers": {"site": None}},
        "site of head1-20251126T023000Z is encrypted to no recipients, not to 1",
    ),
    (PLACE, {"refused": "nothing is mounted on /srv"}, "nothing is mounted on /srv"),
    (PLACE, {"broken": ["x cannot be read"]}, "1 backups cannot be used: x cannot be read"),
]


LACKS = (
    {"newest": {"parts": [{"name": "site", "about": "site", "size": 1}]}},
    "head1-20251126T023000Z lacks database slurm_acct_db, state of slurmctld, archived accounting records",
)
OTHERS = (
    {"newest": {"recipients": [KEY]}},
    "head1-20251126T023000Z is encrypted to recipients other than the declared 1",
)
NEXT = (
    ", since it was made before the settings changed: the timer makes the next one, or "
    "`systemctl start rackwright-backup.service`"
)


@pytest.mark.parametrize(("changes", "evidence"), [LACKS, OTHERS])
@pytest.mark.parametrize(
    ("made", "status"),
    [
        ({"settings_changed": NOW - 60}, "WARN"),
        ({"settings_changed": NOW - 60, "last": {"attempt": 1764124200.0}}, "WARN"),
        ({"settings_changed": NOW - 60, "last": {"attempt": NOW - 30, "error": "no space"}}, "FAIL"),
        ({"settings_changed": NOW - 7200}, "FAIL"),
        ({"settings_changed": "?"}, "FAIL"),
    ],
)
def test_a_backup_from_before_a_change_is_a_warning_until_the_next_one(
    store, here, changes, evidence, made, status
):
    """After `secrets add-recipient`, or a new role with a part, and an apply: nothing is wrong with the node."""
    found = result(WHOLE, here, answers(store, here, **changes, **made))
    assert (found.status, found.evidence) == (status, evidence + (NEXT if status == "WARN" else ""))


def test_a_new_recipient_opens_the_next_backup(store, here):
    other = pyrage.encrypt(b"x", [pyrage.x25519.Recipient.from_str(KEY)])
    replies = answers(store, here, settings_changed=NOW - 60)
    found = result(OPENS, here, {**replies, SITE_PART: base64.b64encode(other).decode()})
    assert (found.status, "cannot be decrypted with your identity" in found.evidence) == ("WARN", True)
    assert found.evidence.endswith(NEXT)


@pytest.mark.parametrize("name", [WHOLE, OPENS])
def test_a_backup_from_the_future_says_nothing_of_how_recent_it_is(store, here, name):
    """Made while the clock was ahead, it stays the newest when no more are made."""
    assert result(name, here, answers(store, here, newest={"made": NOW + 3000})).status == "PASS"
    found = result(name, here, answers(store, here, newest={"made": NOW + 48 * 3600}))
    assert found.status == "UNKNOWN"
    assert found.evidence == (
        "head1-20251126T023000Z is dated 48 h in the future: check the clock of head1; if the clock was ahead "
        "when the backup was made, move the backup elsewhere"
    )


def answers(store, here, **changes):
    text = report(store, **changes)
    return {LIST: text, REPORT: text, SITE_PART: packed(store)}


def result(name, here, replies):
    return judged("backup", CHECKS, name, here, here.by_name["head1"], FakeHost(replies))


@pytest.mark.parametrize(("name", "changes", "evidence"), FAILING)
def test_checks_that_fail(store, here, name, changes, evidence):
    found = result(name, here, answers(store, here, **changes))
    assert (found.status, found.evidence) == ("FAIL", evidence)


def test_checks_that_pass(store, here):
    replies = answers(store, here)
    declared = {
        places.SETTINGS: texts.settings(here, here.by_name["head1"], OPTIONS, store.content().recipients),
        places.RECIPIENTS: texts.recipients_file(store.content().recipients),
        f"{texts.UNITS}/{places.SERVICE}": texts.service(here, OPTIONS),
        f"{texts.UNITS}/{places.TIMER}": texts.timer(here, OPTIONS),
    }
    replies |= files(declared) | file(places.PROGRAM, texts.program(), "755") | unit(places.TIMER)
    for name, text in texts.site_files(here, store).items():
        replies |= file(f"{places.SITE}/{name}", text, "600", digest_only=True)
    assert {check.name: result(check.name, here, replies).evidence for check in CHECKS} == {
        "backups are made on a timer": "rackwright-backup.timer is active and enabled",
        SETTINGS: "*-*-* 02:30:00, to /srv/backup/test, for 1 recipients",
        KEPT: "site.yaml, test.secrets.age",
        PLACE: "1 backups in /srv/backup/test",
        WHOLE: "head1-20251126T023000Z, 1.0 h old: database, purged-records, site, slurmctld; 40 bytes as in its manifest",
        OPENS: "head1-20251126T023000Z decrypts with your identity: site.yaml",
    }
    assert {result(check.name, here, replies).status for check in CHECKS} == {"PASS"}
    assert result(SETTINGS, here, {**replies, **file(places.RECIPIENTS, "x")}).status == "FAIL"
    old = file(f"{places.SITE}/test.secrets.age", "old", "600", digest_only=True)
    assert result(KEPT, here, {**replies, **old}).status == "FAIL"
    stopped = unit(places.TIMER, active="inactive")
    assert result("backups are made on a timer", here, {**replies, **stopped}).status == "FAIL"


def test_a_backup_that_this_user_cannot_open(store, here):
    replies = answers(store, here)
    other = pyrage.encrypt(b"x", [pyrage.x25519.Recipient.from_str(KEY)])
    found = result(OPENS, here, {**replies, SITE_PART: base64.b64encode(other).decode()})
    assert (found.status, "cannot be decrypted with your identity" in found.evidence) == ("FAIL", True)
    found = result(OPENS, here, {**replies, SITE_PART: packed(store, "other")})
    assert (found.status, "lacks site.yaml" in found.evidence) == ("FAIL", True)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("always", [None, "", "garbage", (124, "", "")])
def test_no_check_passes_without_knowing(store, here, check, always):
    host = FakeHost({}, always=always)
    assert judged("backup", CHECKS, check.name, here, here.by_name["head1"], host).status in (
        "UNKNOWN",
        "FAIL",
    )
    if always is None:
        assert judged("backup", CHECKS, check.name, here, here.by_name["head1"], host).status == "UNKNOWN"


def test_the_place_cannot_be_asked_without_its_filesystem(store, here):
    replies = answers(store, here, refused="nothing is mounted on /srv")
    assert result(WHOLE, here, replies).status == "UNKNOWN"
    assert result(OPENS, here, replies).status == "UNKNOWN"


def test_the_program_runs_as_it_is_installed(tmp_path):
    path = Path(tmp_path / "backup")
    path.write_text(texts.program())
    path.chmod(0o755)
    ran = subprocess.run(
        [os.sys.executable, "-IS", str(path), "--list"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "settings.json: " in ran.stderr) == (1, True)
