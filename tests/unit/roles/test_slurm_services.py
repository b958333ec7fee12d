"""Controllers, their state, slurmdbd and its database, licences: options, files, plan, problems, checks."""

from __future__ import annotations

import os
import shlex
import subprocess
from datetime import datetime

import pytest

from rackwright.facts.slurm import ReservationsFound
from rackwright.model.types import NodeRole
from rackwright.roles.mariadb.options import MariadbOptions, clients
from rackwright.roles.mariadb.sizes import server_conf
from rackwright.roles.mariadb.verify import CHECKS as MARIADB_CHECKS
from rackwright.roles.slurm import questions, service_checks, texts
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.sections import Accounting, StorageTls
from rackwright.roles.slurm.services import Reservation, StateMount
from rackwright.roles.slurm.verify import CHECKS
from rackwright.status import Status
from rackwright.workload.slurm import reservations
from tests.unit.roles import test_slurm_standby
from tests.unit.roles.fake_facts import asked, file
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.slurm_clusters import cluster, node

MOUNT = {"path": "/shared", "source": "nfs1:/export/slurm", "fstype": "nfs4"}
STATE = {"backups": ["h2"], "state_dir": "/shared/slurmctld", "state_mount": MOUNT}
RESERVED = {"maint": {"nodes": "ALL", "start": "2030-01-01T08:00", "duration": "04:00:00", "users": ["root"]}}


def site(given=None, mariadb=None, **more):
    """Two heads, the first of them the primary, and a worker."""
    return cluster(
        "c",
        node("h1", "10.0.0.1", "head", primary=True, **more),
        node("h2", "10.0.0.2", "head", **more),
        node("w1", "10.0.0.9", "worker", **more),
        slurm=SlurmOptions.model_validate(given or {}),
        mariadb=MariadbOptions.model_validate(mariadb or {}),
    )


def found(made, role="slurm"):
    """(path, sentence) of the problems of a role's options, wherever it runs."""
    options = next(one.options[role] for one in made.nodes if role in one.options)
    return [(path, sentence) for path, sentence, _ in options.problems(made)]


def names(made, name, role="slurm"):
    plan = planned(made, made.by_name[name])
    assert plan.error is None
    return [operation.name for operation in plan.operations if operation.role == role]


# Options


@pytest.mark.parametrize(
    ("options", "given", "sentence"),
    [
        (Accounting, {"purge_jobs": "2weeks"}, None),
        (Accounting, {"purge_jobs": "0months"}, None),
        (StorageTls, {"ca": "/etc/ca.pem", "cert": "/etc/c.pem"}, "cert and key belong together; set both or neither"),
        (StateMount, {**MOUNT, "path": "/"}, None),
        (StateMount, {**MOUNT, "path": "/a b"}, None),
        (Reservation, {"nodes": "ALL", "start": "2030-01-01T08:00", "users": ["root"]}, "set either end or duration"),
        (
            Reservation,
            {"nodes": "ALL", "start": "2030-01-01T08:00", "duration": "01:00:00"},
            "set users or accounts: Slurm takes no reservation that has neither",
        ),
        (
            Reservation,
            {**RESERVED["maint"], "flags": ["WEEKLY", "DAILY"]},
            "at most one flag may repeat it, not DAILY and WEEKLY",
        ),
        (
            Reservation,
            {"nodes": "ALL", "start": "2030-01-02T08:00", "end": "2030-01-02T08:00", "users": ["root"]},
            "end is 2030-01-02T08:00, not after start, 2030-01-02T08:00",
        ),
        (
            Reservation,
            {**RESERVED["maint"], "start": "2030-02-30T08:00"},
            "start or end is not a date that exists: day is out of range for month",
        ),
        (SlurmOptions, {"licenses": {"mat lab": 1}}, None),
        (SlurmOptions, {"licenses": {"matlab": 0}}, "Input should be greater than or equal to 1"),
    ],
)  # fmt: skip
def test_options_that_are_refused(options, given, sentence):
    (message,) = errors_in(options, given)
    assert sentence is None or message == sentence


def test_a_moment_that_yaml_reads_as_a_timestamp():
    import yaml

    (given,) = yaml.safe_load("[{nodes: ALL, start: 2030-01-01T08:00:00, duration: '01:00:00', users: [a]}]")
    assert Reservation.model_validate(given).start == "2030-01-01T08:00:00"


# State


@pytest.mark.parametrize("path", ["/shared", "/srv/slurm-state/a_b", "/a.b/c"])
def test_the_unit_of_a_mount_is_systemds(path):
    unit = StateMount.model_validate({**MOUNT, "path": path}).unit
    done = subprocess.run(
        ["systemd-escape", "--path", "--suffix=mount", path],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert unit == done.stdout.strip()


def test_slurmctld_needs_its_mount():
    made = site(STATE)
    text = content(
        planned(made, made.by_name["h2"]), "/etc/systemd/system/slurmctld.service.d/rackwright.conf"
    )
    assert text is not None
    assert text.splitlines()[3:] == [
        "[Unit]",
        "RequiresMountsFor=/shared",
        "BindsTo=shared.mount",
        "After=shared.mount",
        "AssertPathIsMountPoint=/shared",
    ]


@pytest.mark.parametrize("head", ["h1", "h2"])
def test_nothing_is_made_below_a_folder_that_is_not_mounted(head):
    order = names(site(STATE), head)
    assert order.index("Write /etc/systemd/system/slurmctld.service.d/rackwright.conf") < order.index(
        "Check that slurmctld's state is on its filesystem"
    )
    assert order.index("Check that slurmctld's state is on its filesystem") < order.index(
        "Create slurmctld's state folder"
    )
    (refusal,) = commands(
        planned(site(STATE), site(STATE).by_name[head]), "Check that slurmctld's state is on its filesystem"
    )
    done = subprocess.run(["sh", "-c", refusal], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "/shared is not the declared nfs4 from nfs1:/export/slurm (state_mount): mount it on every controller"
    )


def test_what_is_mounted_is_read_from_the_node(tmp_path):
    for name, shown in (("findmnt", "autofs systemd-1\nnfs4 nfs1:/export/slurm"), ("ls", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{shown}\\n'\n")
        (tmp_path / name).chmod(0o755)
    read = questions.mounted(StateMount.model_validate(MOUNT))
    done = subprocess.run(
        ["sh", "-c", read],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "nfs4 nfs1:/export/slurm\n"  # the automount below it is not the answer


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        (STATE, []),
        (
            {"backups": ["h2"]},
            [
                (
                    "state_mount",
                    "With backups, state_dir has to be on a file system that all controllers mount; declare which.",
                )
            ],
        ),
        (
            {**STATE, "state_dir": "/shared2/slurm"},
            [("state_dir", "state_dir is /shared2/slurm, which is not below state_mount.path, /shared.")],
        ),
        (
            {**STATE, "state_mount": {**MOUNT, "fstype": "ext4"}},
            [("state_mount.fstype", "ext4 is not a file system that several controllers share.")],
        ),
        (
            {"state_dir": "/shared/slurm", "state_mount": {**MOUNT, "fstype": "ext4", "source": "/dev/sdb1"}},
            [],  # a single controller may keep its state on a local disk
        ),
        ({"accounting": {"dbd_host": "h2"}}, [("accounting.storage_host",
         "slurmdbd runs on h2, but the mariadb role on h1, not on localhost.")]),
        ({"accounting": {"dbd_host": "h2", "storage_host": "h1"}}, []),
        ({"accounting": {"dbd_host": "h2", "storage_host": "w1"}},
         [("accounting.storage_host", "No database role runs on w1.")]),
        ({"accounting": {"storage_host": "h1"}}, [("accounting.storage_host",
         "slurmdbd runs on h1 itself, where MariaDB listens on localhost alone.")]),
        ({"accounting": {"dbd_host": "w1"}},
         [("accounting.dbd_host", "w1 is not a head, so slurmdbd cannot run there.")]),
        ({"accounting": {"dbd_host": "h3"}}, [("accounting.dbd_host", "h3 is not declared under nodes.")]),
        ({"accounting": {"dbd_host": "dbd.example.org"}}, []),
        ({"accounting": {"dbd_host": "10.0.0.200", "dbd_backup_host": "10.0.0.201"}}, []),
        ({"accounting": {"dbd_backup_host": "h1"}},
         [("accounting.dbd_backup_host", "slurmdbd runs on h1 already.")]),
        ({"accounting": {"storage_port": 3307}},
         [("accounting.storage_port", "The mariadb role creates 3306, but slurmdbd would use 3307.")]),
        ({"accounting": {"storage_host": "db.example.org", "storage_port": 3307}}, []),
        ({"reservations": {"r": {**RESERVED["maint"], "nodes": "w[1-2]"}}},
         [("reservations.r.nodes", "w2 is not a worker of this cluster.")]),
        ({"reservations": {"r": {**RESERVED["maint"], "nodes": "w[2-1]"}}},
         [("reservations.r.nodes", "The range runs backwards.")]),
        ({"reservations": RESERVED}, []),
    ],
)  # fmt: skip
def test_problems(given, problems):
    assert found(site(given)) == problems


def test_the_database_may_be_on_another_head_with_slurmdbd():
    made = site({"accounting": {"dbd_host": "h2"}}, {"node": "h2"})
    assert found(made) == []
    assert found(made, "mariadb") == []
    other = MariadbOptions(node="w1")
    assert [sentence for _, sentence, _ in other.problems(made)] == ["w1 is not a head of this cluster."]


# slurmdbd and its database


def test_slurmdbd_on_another_head():
    made = site({"accounting": {"dbd_host": "h2"}}, {"node": "h2"})
    options = made.primary.options["slurm"]
    assert "AccountingStorageHost=h2\n" in texts.slurm_restart_conf(made, options)
    assert "DbdHost=h2\nDbdPort" in texts.slurmdbd_conf(made, options, "x")
    assert "Start slurmdbd with its settings" not in names(made, "h1")
    assert "Update accounts, users and QOS" not in names(made, "h1")
    order = names(made, "h1")
    assert order.index("Wait for slurmdbd") < order.index("Start slurmctld with its settings")
    on_h2 = names(made, "h2")
    assert on_h2.index("Start slurmdbd with its settings") < on_h2.index("Update accounts, users and QOS")
    assert "Start slurmctld with its settings" not in on_h2
    assert names(made, "h1", "mariadb") == []
    assert "Start MariaDB with its settings" in names(made, "h2", "mariadb")


def test_where_slurmdbd_is_local_nothing_waits():
    assert "Wait for slurmdbd" not in names(site(), "h1")


def test_a_backup_controller_waits_for_slurmdbd():
    assert "Wait for slurmdbd" in names(site(STATE), "h2")


def test_a_slurmdbd_outside_is_asked_from_the_primary_head():
    made = site({"accounting": {"dbd_host": "dbd.example.org", "dbd_backup_host": "dbd2.example.org"}})
    conf = texts.slurm_restart_conf(made, made.primary.options["slurm"])
    assert "AccountingStorageHost=dbd.example.org\nAccountingStorageBackupHost=dbd2.example.org\n" in conf
    order = names(made, "h1")
    assert "Start slurmdbd with its settings" not in order
    assert order.index("Update accounts, users and QOS") < order.index("Start slurmctld with its settings")
    assert "slurmdbd is running" not in claimed("slurm", CHECKS, made.primary)


def test_a_backup_of_slurmdbd_has_the_same_file():
    given = {"accounting": {"dbd_backup_host": "h2", "storage_host": "db.example.org"}}
    made = site(given)
    for name in ("h1", "h2"):
        text = content(planned(made, made.by_name[name]), "/etc/slurm/slurmdbd.conf")
        assert text is not None
        assert "DbdHost=h1\nDbdBackupHost=h2\n" in text
    assert "Update accounts, users and QOS" not in names(made, "h2")


def test_a_database_outside_with_tls_and_another_secret():
    accounting = {
        "storage_host": "db.example.org",
        "storage_port": 3307,
        "storage_password": "accounting_db_password",
        "storage_tls": {"ca": "/etc/ssl/ca.pem", "cert": "/etc/ssl/c.pem", "key": "/etc/ssl/k.pem"},
    }
    made = site({"accounting": accounting})
    text = content(planned(made, made.primary), "/etc/slurm/slurmdbd.conf")
    assert text is not None
    for line in (
        "StorageHost=db.example.org",
        "StoragePort=3307",
        "StoragePass=(secret accounting_db_password)",
        "StorageParameters=SSL_CA=/etc/ssl/ca.pem,SSL_CERT=/etc/ssl/c.pem,SSL_KEY=/etc/ssl/k.pem",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    ("given", "mariadb", "server", "hosts", "address"),
    [
        ({}, {}, "h1", ("localhost",), "127.0.0.1"),
        ({"accounting": {"dbd_host": "h2"}}, {"node": "h2"}, "h2", ("localhost",), "127.0.0.1"),
        ({"accounting": {"dbd_host": "h2", "storage_host": "h1"}}, {}, "h1", ("10.0.0.2",), "10.0.0.1"),
        (
            {"accounting": {"dbd_backup_host": "h2", "storage_host": "h1"}},
            {},
            "h1",
            ("localhost", "10.0.0.2"),
            "10.0.0.1",
        ),
        ({"accounting": {"dbd_host": "dbd.example.org"}}, {}, "h1", ("localhost",), "127.0.0.1"),
    ],
)
def test_the_database_is_open_to_slurmdbds_nodes_alone(given, mariadb, server, hosts, address):
    made = site(given, mariadb)
    where = made.by_name[server]
    assert clients(made, where) == hosts
    assert f"bind-address = {address}\n" in server_conf(made, where, where.options["mariadb"])
    waits = "Start MariaDB at boot once the network is up" in names(made, server, "mariadb")
    assert waits is (address != "127.0.0.1")


LISTENING = "LISTEN 0 80 {}:3306 0.0.0.0:*\n"


@pytest.mark.parametrize(
    ("address", "status", "evidence"),
    [
        ("10.0.0.1", "PASS", "listens on 10.0.0.1"),
        ("127.0.0.1", "FAIL", "MariaDB does not listen on 10.0.0.1, so slurmdbd cannot reach it"),
        ("0.0.0.0", "FAIL", "MariaDB listens on 0.0.0.0, not on 10.0.0.1 alone"),
    ],
)  # fmt: skip
def test_mariadb_listens_where_slurmdbd_is(address, status, evidence):
    made = site({"accounting": {"dbd_host": "h2", "storage_host": "h1"}})
    host = FakeHost({"ss -Hltn": LISTENING.format(address)})
    result = judged("mariadb", MARIADB_CHECKS, "MariaDB listens only for slurmdbd", made, made.primary, host)
    assert (result.status, result.evidence) == (status, evidence)


def test_credentials_are_tried_where_they_are():
    login = "slurmdbd's database user reaches its database and no other"
    away = site({"accounting": {"dbd_host": "h2", "storage_host": "h1"}})
    assert login not in claimed("mariadb", MARIADB_CHECKS, away.primary)
    assert login in claimed("mariadb", MARIADB_CHECKS, site().primary)


def test_heads_that_others_wait_for_go_first():
    from rackwright.engine.waves import plan_waves
    from rackwright.model.settings import Waves

    made = site({"accounting": {"dbd_host": "h2"}}, {"node": "h2"})
    assert plan_waves(made.nodes, Waves(size=1)) == [("h2",), ("h1",), ("w1",)]
    assert plan_waves(made.nodes, Waves(size=1, order="heads-first")) == [("h2",), ("h1",), ("w1",)]
    assert made.by_name["h2"].holds(NodeRole.HEAD)


def sacctmgr(tmp_path, qos, status=0):
    fake = tmp_path / "sacctmgr"
    fake.write_text(
        f"#!/bin/sh\n[ {status} = 0 ] || {{ echo 'Connection refused' >&2; exit {status}; }}\n"
        f"case \"$*\" in *qos*) printf '{qos}' ;; *) echo c ;; esac\n"
    )
    fake.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("qos", "status", "printed"),
    [
        ("normal\\nbig\\n", 0, questions.KNOWN),
        ("normal\\n", 0, "does not know the QOS big"),
        ("", 1, "does not know the QOS big"),
    ],
)
def test_a_controller_waits_for_the_qos_of_its_partitions(qos, status, printed, tmp_path):
    made = site({"partitions": {"main": {"default": True, "qos": "big"}}, "qos": {"big": {}}})
    known = questions.known_records(made, made.primary.options["slurm"])
    environment = sacctmgr(tmp_path, qos, status)

    def run(script):
        command = ["sh", "-c", script]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, env=environment
        )

    assert run(known).stdout.strip() == printed
    done = run(questions.wait_for(known, "h2", seconds=1))
    assert done.returncode == (0 if printed == questions.KNOWN else 1)
    if done.returncode:
        assert f"slurmdbd on h2 does not answer as declared after 1 s: {printed}" in done.stderr


# Archive and licences


def test_what_is_purged_is_archived():
    assert Accounting().archived["ArchiveJobs"] == "yes"
    assert set(Accounting(archive_dir=None).archived) == set()
    some = Accounting(purge_jobs=None, purge_usage=None)
    assert "ArchiveJobs" not in some.archived
    made = site({"accounting": {"purge_jobs": None}})
    text = texts.slurmdbd_conf(made, made.primary.options["slurm"], "x")
    assert "PurgeJobAfter" not in text
    assert "ArchiveJobs" not in text
    assert "ArchiveSteps=yes\n" in text
    folder = "Create the folder for archived accounting records"
    assert folder in names(made, "h1")
    assert folder not in names(site({"accounting": {"archive_dir": None}}), "h1")


def test_licences():
    made = site({"licenses": {"matlab": 20, "comsol": 5}})
    conf = texts.slurm_conf(made, made.primary.options["slurm"])
    assert "AccountingStorageTRES=license/matlab,license/comsol\nLicenses=matlab:20,comsol:5\n" in conf
    assert "Licenses=" not in texts.slurm_conf(site(), site().primary.options["slurm"])


# Checks

EVERYTHING = {**STATE, "licenses": {"matlab": 20}, "reservations": RESERVED}
MADE = site(EVERYTHING)
STATE_CHECK = "slurmctld's state is on its declared filesystem"
SHARED = "controllers share slurmctld's state"
DBD = "slurmdbd answers this controller"
ARCHIVE = "purged accounting records are archived"
LICENCES = "licences are as declared"
RESERVATIONS = "reservations are as declared"
FINDMNT = "findmnt -n -r -o TARGET,FSTYPE,SOURCE --target /shared/slurmctld"
GUARD = "/etc/systemd/system/slurmctld.service.d/rackwright.conf"
CLUSTERS = "timeout 20 sacctmgr -nP show cluster format=cluster,controlhost"
CONFIG = "timeout 20 sacctmgr -n show configuration"
CONFIGURED = "\n".join(
    ["ArchiveDir             = /var/lib/slurm/archive"]
    + [f"{key} = Yes" for key in Accounting().archived if key != "ArchiveDir"]
)
WRITABLE = "runuser -u slurm -- test -d /var/lib/slurm/archive -a -w /var/lib/slurm/archive"
LICENSED = "timeout 30 scontrol show licenses -o"
MATLAB = "LicenseName=matlab Total=20 Used=0 Free=20 Reserved=0 Remote=no\n"
RESERVATION = asked(ReservationsFound().command())
MAINT = (
    "ReservationName=maint StartTime=2030-01-01T08:00:00 EndTime=2030-01-01T12:00:00 Duration=04:00:00 "
    "Nodes=w1 NodeCnt=1 CoreCnt=2 Features=(null) PartitionName=(null) Flags=SPEC_NODES,ALL_NODES TRES=cpu=2 "
    "Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) MaxStartDelay=(null)"
)
THERE = f"# zone +0000\n{MAINT}\n# complete\n"
GUARDED = file(GUARD, texts.state_mount_conf(StateMount.model_validate(MOUNT)))


def result(name, answers, made=MADE, where=None, always=None):
    host = FakeHost(answers, always)
    return judged("slurm", CHECKS, name, made, where or made.primary, host)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (STATE_CHECK, {FINDMNT: "/shared nfs4 nfs1:/export/slurm\n", **GUARDED}, "PASS", None),
        (STATE_CHECK, {FINDMNT: "/ ext4 /dev/sda1\n", **GUARDED}, "FAIL",
         "/shared/slurmctld is on / (ext4 /dev/sda1): /shared is not mounted"),
        (STATE_CHECK, {FINDMNT: "/shared nfs4 nfs2:/other\n", **GUARDED}, "FAIL",
         "/shared is nfs4 nfs2:/other, not nfs4 nfs1:/export/slurm"),
        (STATE_CHECK, {FINDMNT: "/shared nfs4 nfs1:/export/slurm\n", **file(GUARD, None)}, "FAIL",
         f"{GUARD} is missing"),
        (STATE_CHECK, {FINDMNT: (1, "", "")}, "FAIL",
         "/shared/slurmctld does not exist, so slurmctld has no state there"),
        (STATE_CHECK, {}, "UNKNOWN", None),
        (DBD, {CLUSTERS: "c|10.0.0.1\n"}, "PASS", "slurmdbd on h1 answers h1"),
        (DBD, {CLUSTERS: (1, "", "sacctmgr: error: Connection refused\n")}, "FAIL",
         "slurmdbd on h1 does not answer: sacctmgr: error: Connection refused"),
        (DBD, {CLUSTERS: "other|10.0.0.7\n"}, "FAIL", "slurmdbd on h1 does not know the cluster c, only other"),
        (DBD, {}, "UNKNOWN", None),
        (ARCHIVE, {CONFIG: CONFIGURED, WRITABLE: ""}, "PASS", None),
        (ARCHIVE, {CONFIG: CONFIGURED.replace("ArchiveJobs = Yes", "ArchiveJobs = No"), WRITABLE: ""}, "FAIL",
         "ArchiveJobs of the running slurmdbd is No, not yes"),
        (ARCHIVE, {CONFIG: CONFIGURED, WRITABLE: (1, "", "")}, "FAIL",
         "user slurm cannot write /var/lib/slurm/archive, so slurmdbd purges nothing"),
        (ARCHIVE, {CONFIG: "SlurmctldPort = 6817\n"}, "UNKNOWN", None),
        (ARCHIVE, {CONFIG: CONFIGURED}, "UNKNOWN", None),
        (ARCHIVE, {}, "UNKNOWN", None),
        (LICENCES, {LICENSED: MATLAB}, "PASS", "20 matlab"),
        (LICENCES, {LICENSED: MATLAB.replace("Total=20", "Total=10")}, "FAIL",
         "slurmctld has 10 of licence matlab, not 20"),
        (LICENCES, {LICENSED: "No licenses configured in Slurm.\n"}, "FAIL", "licence matlab is missing"),
        (LICENCES, {}, "UNKNOWN", None),
        (RESERVATIONS, {RESERVATION: THERE}, "PASS", "maint as declared"),
        (RESERVATIONS, {RESERVATION: THERE.replace("Nodes=w1", "Nodes=w2")}, "FAIL",
         "reservation maint: Nodes=w2, not Nodes=w1"),
        (RESERVATIONS, {RESERVATION: THERE.replace("+0000", "+0500")}, "WARN",
         "maint is over: remove it from the cluster file"),
        (RESERVATIONS, {RESERVATION: THERE.replace(MAINT, MAINT + "\n" + MAINT.replace("=maint", "=other"))}, "PASS",
         "maint as declared; not declared: other"),
        (RESERVATIONS, {RESERVATION: THERE.replace("StartTime=2030-01-01T08", "StartTime=Unknown")}, "UNKNOWN", None),
        (RESERVATIONS, {RESERVATION: "# stopped\n"}, "UNKNOWN",
         "slurmctld is stopped and could not be asked for reservations"),
        (RESERVATIONS, {}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_check(name, answers, status, evidence, monkeypatch):
    years = {"+0000": 2026, "+0500": 2031}
    monkeypatch.setattr(reservations, "clock", lambda zone: datetime(years[zone], 11, 23, 4))
    one = result(name, answers)
    assert (one.status, bool(one.evidence)) == (status, True), one
    assert evidence in (None, one.evidence)


@pytest.mark.parametrize("name", [STATE_CHECK, DBD, ARCHIVE, LICENCES, RESERVATIONS])
@pytest.mark.parametrize("rubbish", ["", "command not ready\n"])
def test_no_check_passes_on_what_it_cannot_read(name, rubbish):
    assert result(name, {}, always=rubbish).status not in (Status.PASS, Status.WARN)


def test_every_check_is_tested_here():
    here = {STATE_CHECK, SHARED, DBD, ARCHIVE, LICENCES, RESERVATIONS, test_slurm_standby.CHECK}
    assert {check.name for check in (*service_checks.NODE_CHECKS, *service_checks.CLUSTER_CHECKS)} == here


def test_checks_are_made_of_what_is_declared_alone():
    assert (
        set(claimed("slurm", CHECKS, site().primary)) & {STATE_CHECK, SHARED, LICENCES, RESERVATIONS} == set()
    )
    assert {STATE_CHECK, DBD} <= set(claimed("slurm", CHECKS, MADE.by_name["h2"]))
    assert not {SHARED, ARCHIVE, LICENCES} & set(claimed("slurm", CHECKS, MADE.by_name["h2"]))


class Controller(FakeHost):
    """A controller with the folder that it sees as its state folder; `runuser -u slurm --` is left out."""

    def __init__(self, folder):
        super().__init__({})
        self.folder = folder

    def run(self, command, *args):
        line = command % tuple(shlex.quote(arg) for arg in args) if args else command
        self.asked.append(line)
        line = line.replace("runuser -u slurm -- ", "").replace("/shared/slurmctld", str(self.folder))
        line = line.replace("sleep 2", ":")
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=60)
        return type(self).reply(done)

    @staticmethod
    def reply(done):
        from tests.unit.roles.fake_host import Reply

        return Reply(done.returncode, done.stdout, done.stderr)


def test_controllers_that_share_their_state_see_each_others_files(tmp_path):
    hosts = {"h1": Controller(tmp_path), "h2": Controller(tmp_path)}
    one = judged("slurm", CHECKS, SHARED, MADE, MADE.primary, hosts)
    assert (one.status, one.evidence) == (
        Status.PASS,
        "h1, h2 see what the others write to /shared/slurmctld",
    )
    assert list(tmp_path.iterdir()) == []  # and nothing is left there


def test_controllers_with_a_folder_each_are_found_out(tmp_path):
    hosts = {}
    for name in ("h1", "h2"):
        (tmp_path / name).mkdir()
        hosts[name] = Controller(tmp_path / name)
    one = judged("slurm", CHECKS, SHARED, MADE, MADE.primary, hosts)
    assert (one.status, one.evidence) == (
        Status.FAIL,
        "; ".join(
            f"{one} does not see what {other} writes: their state folders differ"
            for one, other in (("h1", "h2"), ("h2", "h1"))
        ),
    )
    assert [path for name in hosts for path in (tmp_path / name).iterdir()] == []


def test_controllers_that_cannot_be_asked_are_unknown():
    assert result(SHARED, {}).status is Status.UNKNOWN
