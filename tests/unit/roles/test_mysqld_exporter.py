"""The mysqld_exporter role: its user in the database, its command line, and its checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.exporters import drop_in
from rackwright.facts.mariadb import DatabaseAccount, DatabaseServer, MariadbServer
from rackwright.model.types import NodeRole
from rackwright.operations.mariadb import Statement, socket_user_statements
from rackwright.osfamily.known import RELEASES
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.mariadb.verify import CHECKS as MARIADB_CHECKS
from rackwright.roles.mysqld_exporter import texts
from rackwright.roles.mysqld_exporter.options import MysqldExporterOptions
from rackwright.roles.mysqld_exporter.verify import CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.factories import make_cluster, make_node
from tests.unit.roles.fake_facts import asked, files
from tests.unit.roles.fake_host import FakeHost, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, site

RECORDED = (Path(__file__).parent / "recorded" / "mariadb_server.txt").read_text()
READ = asked(MariadbServer().command())
OPTIONS = MysqldExporterOptions()
ROLES = {"mysqld_exporter": OPTIONS, "mariadb": MariadbOptions(), "site_ca": SiteCaOptions()}
SITE = site(ROLES)
HEAD = head(SITE)
CONF = "/etc/rackwright-exporters/mysqld_exporter/my.cnf"
LOGIN = "mysqld_exporter logs in over MariaDB's socket"
SEES = "mysqld_exporter can read MariaDB's status but no table"
ALONE = "only root and declared users may log in to MariaDB"
US = DatabaseAccount("prometheus", "localhost")
RIGHTS = frozenset({"PROCESS"})
OURS = "account\tprometheus\tlocalhost\tunix_socket\nglobal\t'prometheus'@'localhost'\tPROCESS\t\n"


def test_refused():
    assert errors_in(MysqldExporterOptions, {"port": 70000}) == [
        "Input should be less than or equal to 65535"
    ]
    assert list(MysqldExporterOptions(node="head2").problems(SITE)) == [
        ("node", "head2 is not a head of this cluster.", "one of: head1")
    ]
    assert list(OPTIONS.problems(SITE)) == []


def test_where_no_role_has_a_database_it_has_nothing_to_read():
    two = make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options={**ROLES, "mariadb": MariadbOptions(node="head2")}),
        make_node(
            "head2", 11, NodeRole.HEAD, primary=False, options={"mariadb": MariadbOptions(node="head2")}
        ),
    )
    assert list(OPTIONS.problems(two)) == [
        (
            "node",
            "head1 has no role with a database server.",
            "add the role mariadb, or set `node` to the head that it runs on",
        )
    ]


@pytest.mark.parametrize(
    ("there", "sql"),
    [
        (
            DatabaseServer(),
            [
                "CREATE USER 'prometheus'@'localhost' IDENTIFIED VIA unix_socket;",
                "GRANT PROCESS ON *.* TO 'prometheus'@'localhost';",
            ],
        ),
        (DatabaseServer(plugins={US: "unix_socket"}, rights={US: {"*": RIGHTS}}), []),
        (
            DatabaseServer(plugins={US: "mysql_native_password"}, rights={US: {"*": RIGHTS}}),
            ["ALTER USER 'prometheus'@'localhost' IDENTIFIED VIA unix_socket;"],
        ),
        (
            DatabaseServer(
                plugins={US: "unix_socket"},
                rights={US: {"*": RIGHTS | {"SELECT"}, "slurm": frozenset({"INSERT"})}},
            ),
            [
                (
                    "REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'prometheus'@'localhost'; "
                    "GRANT PROCESS ON *.* TO 'prometheus'@'localhost';"
                )
            ],
        ),
        (
            DatabaseServer(
                plugins={US: "unix_socket", DatabaseAccount("prometheus", "%"): "mysql_native_password"},
                rights={US: {"*": RIGHTS}},
            ),
            ["DROP USER 'prometheus'@'%';"],
        ),
    ],
)
def test_the_user_in_the_database(there, sql):
    assert [one.sql for one in socket_user_statements(there, "prometheus", RIGHTS)] == sql


def test_what_a_plan_says_of_its_rights():
    there = DatabaseServer(plugins={US: "unix_socket"}, rights={US: {"slurm": frozenset({"SELECT"})}})
    assert socket_user_statements(there, "prometheus", RIGHTS)[0] == Statement(
        "rights of database user prometheus@localhost",
        "slurm: SELECT",
        "*: PROCESS",
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'prometheus'@'localhost'; "
        "GRANT PROCESS ON *.* TO 'prometheus'@'localhost';",
    )


def test_the_whole_unit():
    text = drop_in(SITE, HEAD, OPTIONS, texts.arguments(SITE, HEAD, OPTIONS))
    assert text == expected("mysqld_exporter/unit.conf")
    assert texts.conf(HEAD, OPTIONS) == (
        "# written by rackwright\n[client]\nuser = prometheus\nsocket = /run/mysqld/mysqld.sock\n"
    )


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = site(ROLES, os=os)
    node = head(cluster)
    plan = planned(cluster, node)
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "mysqld_exporter"]
    assert names[-3:] == [
        "Write the mysqld_exporter login",
        "Grant mysqld_exporter access to MariaDB's status",
        "Run mysqld_exporter",
    ]
    assert content(plan, CONF) == texts.conf(node, OPTIONS)
    assert (
        "mariadb --no-defaults --batch"
        in commands(plan, "Grant mysqld_exporter access to MariaDB's status")[0]
    )


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (LOGIN, files({CONF: texts.conf(HEAD, OPTIONS)}), "PASS", CONF),
        (
            LOGIN,
            files({CONF: texts.conf(HEAD, OPTIONS) + "password = x\n"}),
            "FAIL",
            f"{CONF} is not as declared: password = x",
        ),
        (LOGIN, {}, "UNKNOWN", None),
        (SEES, {READ: OURS + RECORDED}, "PASS", "prometheus@localhost has PROCESS alone"),
        (SEES, {READ: RECORDED}, "FAIL", "MariaDB does not know prometheus@localhost"),
        (
            SEES,
            {READ: OURS.replace("unix_socket", "mysql_native_password") + RECORDED},
            "FAIL",
            "prometheus@localhost authenticates by mysql_native_password, not by unix_socket alone",
        ),
        (
            SEES,
            {READ: OURS + "schema\t'prometheus'@'localhost'\tSELECT\tslurm_acct_db\n" + RECORDED},
            "FAIL",
            "prometheus@localhost has PROCESS on *; SELECT on slurm_acct_db, not PROCESS alone",
        ),
        (
            SEES,
            {READ: OURS.splitlines(keepends=True)[0] + RECORDED},
            "FAIL",
            "prometheus@localhost has no rights, not PROCESS alone",
        ),
        (SEES, {READ: ""}, "UNKNOWN", "MariaDB does not answer root over its socket"),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("mysqld_exporter", CHECKS, name, SITE, HEAD, FakeHost(answers))
    assert found.status == status, found
    assert evidence in (None, found.evidence)


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        (
            OURS,
            "PASS",
            "root by unix_socket, slurm@localhost, prometheus@localhost by unix_socket, no anonymous users",
        ),
        ("", "PASS", "root by unix_socket, slurm@localhost, no anonymous users"),
        (OURS + "account\tprometheus\t%\tunix_socket\n", "FAIL", "prometheus@% may log in"),
        (
            OURS.replace("unix_socket", "mysql_native_password"),
            "FAIL",
            "prometheus@localhost authenticates by mysql_native_password, not by unix_socket alone",
        ),
    ],
)
def test_what_mariadb_claims_of_it(answers, status, evidence):
    found = judged("mariadb", MARIADB_CHECKS, ALONE, SITE, HEAD, FakeHost({READ: answers + RECORDED}))
    assert (found.status, found.evidence) == (status, evidence)
