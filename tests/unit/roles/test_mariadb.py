"""The mariadb role: sizes, settings, SQL that is sent, and its checks.

`mariadb_server.txt` is what MariaDB 11.8 of Debian 13 answered, recorded 2026-11-20.
"""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.facts.mariadb import DatabaseAccount, DatabaseServer, MariadbServer, parse_server
from rackwright.operations.mariadb import password_hash, statements
from rackwright.osfamily.known import os_release
from rackwright.roles.mariadb import verify
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.mariadb.sizes import buffer_pool_mib, log_file_mib, server_conf
from rackwright.roles.mariadb.verify import CHECKS
from tests.factories import make_sku
from tests.unit.roles.fake_facts import asked, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, errors_in, judged, planned
from tests.unit.roles.sites import expected
from tests.unit.roles.slurm_clusters import cluster, dgx, lab, node

RECORDED = (Path(__file__).parent / "recorded" / "mariadb_server.txt").read_text()
LAB = lab()
PROOF = password_hash("secret")
OURS = DatabaseAccount("slurm", "localhost")
ROOT = DatabaseAccount("root", "localhost")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"database": "Slurm;"}, "String should match pattern '^[a-z][a-z0-9_]{0,31}$'"),
        ({"lock_wait_timeout_seconds": 10}, "Input should be greater than or equal to 50"),
        ({"max_allowed_packet_mib": 8}, "Input should be greater than or equal to 16"),
        ({"password": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(MariadbOptions, given) == [sentence]


@pytest.mark.parametrize(
    ("memory_mib", "pool", "log"),
    [(512, 128, 64), (2048, 512, 128), (16384, 4096, 1024), (65536, 6553, 1638), (1048576, 104857, 4096)],
)
def test_sizes_follow_the_memory(memory_mib, pool, log):
    head = node("h", "10.0.0.1", "head", primary=True, sku=make_sku(memory_mib=memory_mib))
    assert (buffer_pool_mib(head, MariadbOptions()), log_file_mib(head, MariadbOptions())) == (pool, log)


def test_a_declared_size_wins():
    assert buffer_pool_mib(LAB.primary, MariadbOptions(buffer_pool_mib=100)) == 100


def test_settings():
    assert server_conf(LAB, LAB.primary, MariadbOptions()) == expected("mariadb/lab.cnf")
    made = dgx()
    assert server_conf(made, made.primary, MariadbOptions()) == expected("mariadb/dgx.cnf")


@pytest.mark.parametrize(
    ("os", "path"),
    [
        (os_release("ubuntu-24.04"), "/etc/mysql/mariadb.conf.d/90-rackwright.cnf"),
        (os_release("rocky-9"), "/etc/my.cnf.d/zz-rackwright.cnf"),
    ],
)
def test_the_head_gets_a_server(os, path):
    made = dgx(os=os)
    plan = planned(made, made.primary)
    changes = [change for op in plan.operations if op.role == "mariadb" for change in op.changes]
    assert [change.target for change in changes if change.kind == "file"] == [path]
    assert [change.target for change in changes if change.kind == "package"] == ["mariadb-server"]


def test_other_heads_get_nothing():
    made = cluster(
        "c",
        node("h1", "10.0.0.1", "head", primary=True),
        node("h2", "10.0.0.2", "head"),
        node("w", "10.0.0.3", "worker"),
    )
    assert not [op for op in planned(made, made.by_name["h2"]).operations if op.role == "mariadb"]
    assert claimed("mariadb", CHECKS, made.by_name["h2"]) == ()


def test_no_secret_in_the_command():
    (command,) = commands(planned(LAB, LAB.primary), "Create slurmdbd's database and user")
    assert command.startswith("out=$(timeout 60 mariadb --no-defaults --batch 2>&1)")
    assert "slurm" not in command


def server():
    found = parse_server(RECORDED.splitlines())
    assert found is not None
    proofs = {**found.proofs, OURS: hashlib.sha256(PROOF.encode()).hexdigest()}
    return replace(found, proofs=proofs)


def sql(there):
    return [statement.sql for statement in statements(there, "slurm_acct_db", "slurm", PROOF)]


CREATE = f"CREATE USER 'slurm'@'localhost' IDENTIFIED VIA mysql_native_password USING '{PROOF}';"
GRANT = "GRANT ALL PRIVILEGES ON `slurm_acct_db`.* TO 'slurm'@'localhost';"


def test_the_hash_is_mariadbs_own():
    # SELECT PASSWORD('secret') of MariaDB
    assert PROOF == "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"


def test_what_was_recorded_needs_nothing():
    assert sql(server()) == []


def test_from_nothing():
    assert sql(DatabaseServer()) == ["CREATE DATABASE `slurm_acct_db`;", CREATE, GRANT]


def test_another_password():
    other = replace(server(), proofs={OURS: "0" * 64})
    assert sql(other) == [
        f"ALTER USER 'slurm'@'localhost' IDENTIFIED VIA mysql_native_password USING '{PROOF}';"
    ]


def test_everybody_else_goes():
    there = server()
    plugins = {
        **there.plugins,
        ROOT: "mysql_native_password or unix_socket",
        DatabaseAccount("", "localhost"): "mysql_native_password",
        DatabaseAccount("root", "%"): "mysql_native_password",
        DatabaseAccount("slurm", "%"): "mysql_native_password",
        DatabaseAccount("backup", "localhost"): "unix_socket",
    }
    there = replace(there, plugins=plugins, databases={**there.databases, "test": 0})
    assert sql(there) == [
        "DROP DATABASE `test`;",
        "ALTER USER 'root'@'localhost' IDENTIFIED VIA unix_socket;",
        "DROP USER ''@'localhost';",
        "DROP USER 'root'@'%';",
        "DROP USER 'slurm'@'%';",
    ]


def test_a_test_database_with_tables_is_somebodys():
    there = server()
    assert sql(replace(there, databases={**there.databases, "test": 3})) == []


def test_rights_elsewhere_are_taken():
    there = server()
    rights = {OURS: {**there.rights[OURS], "mysql": frozenset({"SELECT"})}}
    assert sql(replace(there, rights=rights)) == [
        f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'slurm'@'localhost'; {GRANT}"
    ]


def test_an_answer_that_is_cut_short_is_none():
    assert parse_server(RECORDED.splitlines()[:-1]) is None
    assert parse_server([]) is None


READ = asked(MariadbServer().command())
LOGIN = f"sh -c {shlex.quote(verify._LOGIN)}"
VARIABLES = "mariadb --no-defaults --batch --skip-column-names -e 'SHOW GLOBAL VARIABLES'"
LIVE = "innodb_buffer_pool_size\t536870912\ninnodb_lock_wait_timeout\t900\nmax_allowed_packet\t67108864\n"
LISTENERS = """\
LISTEN 0      128          0.0.0.0:22        0.0.0.0:*
LISTEN 0      80         127.0.0.1:3306      0.0.0.0:*
LISTEN 0      4096         0.0.0.0:6817      0.0.0.0:*
"""
ALONE = "only root and declared users may log in to MariaDB"
RIGHTS = "slurmdbd's database user has rights only on its database"
REACHES = "slurmdbd's database user reaches its database and no other"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        ("MariaDB is running", unit("mariadb.service"), "PASS", "mariadb.service is active and enabled"),
        ("MariaDB is running", unit("mariadb.service", "inactive"), "FAIL", "mariadb.service is inactive"),
        (
            "MariaDB is running",
            unit("mariadb.service", state="disabled"),
            "FAIL",
            "mariadb.service is active but disabled: it does not start at boot",
        ),
        ("MariaDB is running", {}, "UNKNOWN", None),
        ("MariaDB listens only for slurmdbd", {"ss -Hltn": LISTENERS}, "PASS", "listens on 127.0.0.1"),
        (
            "MariaDB listens only for slurmdbd",
            {"ss -Hltn": LISTENERS.replace("127.0.0.1:3306", "0.0.0.0:3306")},
            "FAIL",
            "MariaDB listens on 0.0.0.0, not on 127.0.0.1 alone",
        ),
        (
            "MariaDB listens only for slurmdbd",
            {"ss -Hltn": LISTENERS.replace("127.0.0.1:3306", "[::]:3306")},
            "FAIL",
            "MariaDB listens on ::, not on 127.0.0.1 alone",
        ),
        ("MariaDB listens only for slurmdbd", {}, "UNKNOWN", None),
        ("MariaDB has its declared settings", {VARIABLES: LIVE}, "PASS", None),
        (
            "MariaDB has its declared settings",
            {VARIABLES: LIVE.replace("\t900", "\t50")},
            "FAIL",
            "innodb_lock_wait_timeout is 50, not 900",
        ),
        (
            "MariaDB has its declared settings",
            {VARIABLES: ""},
            "UNKNOWN",
            "MariaDB does not report its innodb_buffer_pool_size",
        ),
        (ALONE, {READ: RECORDED}, "PASS", "root by unix_socket, slurm@localhost, no anonymous users"),
        (
            ALONE,
            {
                READ: RECORDED.replace(
                    "account\troot\t", "account\t\t%\tmysql_native_password\naccount\troot\t"
                )
            },
            "FAIL",
            "(anonymous)@% may log in",
        ),
        (
            ALONE,
            {
                READ: RECORDED.replace(
                    "localhost\tunix_socket", "localhost\tmysql_native_password or unix_socket"
                )
            },
            "FAIL",
            "root@localhost authenticates by mysql_native_password or unix_socket, not by unix_socket alone",
        ),
        (ALONE, {READ: "database\ttest\t0\t\n" + RECORDED}, "FAIL", "there is an empty database test"),
        (ALONE, {READ: ""}, "UNKNOWN", "MariaDB does not answer root over its socket"),
        (RIGHTS, {READ: RECORDED}, "PASS", "slurm@localhost has rights on slurm_acct_db alone"),
        (
            RIGHTS,
            {READ: "global\t'slurm'@'localhost'\tSELECT\t\n" + RECORDED},
            "FAIL",
            "slurm@localhost has rights on *, slurm_acct_db, not on slurm_acct_db alone",
        ),
        (RIGHTS, {READ: ""}, "UNKNOWN", "MariaDB does not answer root over its socket"),
        (
            REACHES,
            {LOGIN: "information_schema\nslurm_acct_db\n"},
            "PASS",
            "slurmdbd's credentials reach slurm_acct_db and nothing else",
        ),
        (
            REACHES,
            {LOGIN: (1, "ERROR 1045 (28000): Access denied for user 'slurm'@'localhost'\n", "")},
            "FAIL",
            "MariaDB refuses the user and password of slurmdbd.conf",
        ),
        (
            REACHES,
            {LOGIN: "information_schema\nmysql\nslurm_acct_db\n"},
            "FAIL",
            "slurmdbd's user sees mysql, slurm_acct_db, not slurm_acct_db alone",
        ),
        (
            REACHES,
            {LOGIN: (3, "", "there is no /etc/slurm/slurmdbd.conf\n")},
            "UNKNOWN",
            "logging in exited 3: there is no /etc/slurm/slurmdbd.conf",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("mariadb", CHECKS, name, LAB, LAB.primary, FakeHost(answers))
    assert found.status == status, found
    assert evidence in (None, found.evidence)
