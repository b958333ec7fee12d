"""Extra lines in the files of roles: where they end up, what is refused with which place, and what a plan shows."""

from __future__ import annotations

import json

import pytest

from rackwright.cli import run
from rackwright.data import Site
from rackwright.extra_lines import BEGIN, END, with_extra
from rackwright.roles.access.deploy import sshd_conf
from rackwright.roles.access.extra import AccessExtra
from rackwright.roles.access.options import SSHD_CONF
from rackwright.roles.access.verify import CHECKS as ACCESS_CHECKS
from rackwright.roles.enroot_pyxis import texts as enroot_texts
from rackwright.roles.enroot_pyxis.options import EnrootPyxisOptions
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.mariadb.sizes import server_conf
from rackwright.roles.mariadb.verify import CHECKS as MARIADB_CHECKS
from rackwright.roles.slurm import texts
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.time.deploy import chrony_conf
from rackwright.roles.time.options import TimeOptions
from rackwright.roles.time.verify import CHECKS as TIME_CHECKS
from tests.unit.clusterfile.base_file import change, problems_of
from tests.unit.roles.access_site import OPTIONS as ACCESS
from tests.unit.roles.access_site import access_site
from tests.unit.roles.fake_facts import file
from tests.unit.roles.fake_host import FakeHost, judged, planned
from tests.unit.roles.sites import head, site, worker
from tests.unit.roles.slurm_clusters import lab

SLURM = SlurmOptions.model_validate(
    {
        "extra": {
            "slurm_conf": ["KeepAliveTime=30", "NodeSet=fast Feature=nvme"],
            "slurm_restart_conf": ["CommunicationParameters=NoAddrCache"],
            "slurmdbd_conf": ["TrackSlurmctldDown=yes"],
            "cgroup_conf": ["MinRAMSpace=100"],
        }
    }
)


def block(*lines: str) -> str:
    return "\n".join(("", BEGIN, *lines, END, ""))


def test_each_file_of_slurm_ends_with_its_own_lines():
    cluster = lab(SLURM)
    plain, files = texts.shared_files(cluster, SlurmOptions()), texts.shared_files(cluster, SLURM)
    added = {
        "/etc/slurm/slurm.conf": block("KeepAliveTime=30", "NodeSet=fast Feature=nvme"),
        "/etc/slurm/slurm-restart.conf": block("CommunicationParameters=NoAddrCache"),
        "/etc/slurm/cgroup.conf": block("MinRAMSpace=100"),
    }
    for path, text in plain.items():
        assert files[path] == (None if text is None else text + added.get(path, ""))
    assert texts.slurmdbd_conf(cluster, SLURM, "s").endswith(block("TrackSlurmctldDown=yes"))


def test_one_file_of_each_other_role():
    time = TimeOptions.model_validate({"extra": {"chrony_conf": ["maxslewrate 500"]}})
    cluster = site({"time": time})
    assert chrony_conf(Site(cluster, worker(cluster)), time).endswith(block("maxslewrate 500"))
    mariadb = MariadbOptions.model_validate({"extra": {"server_cnf": ["max_connections = 500"]}})
    small = lab()
    assert server_conf(small, small.primary, mariadb).endswith(block("max_connections = 500"))
    enroot = EnrootPyxisOptions.model_validate(
        {
            "enroot_version": "4.1.2",
            "pyxis_version": "0.24.0",
            "sha256": {},
            "extra": {"enroot_conf": ["ENROOT_TRANSFER_RETRIES 3"]},
        }
    )
    assert enroot_texts.declared(enroot)[enroot_texts.ENROOT_CONF].endswith(
        block("ENROOT_TRANSFER_RETRIES 3")
    )


@pytest.mark.parametrize("node_to_node", [True, False])
def test_lines_of_sshd_come_before_its_match_blocks(node_to_node):
    plain = ACCESS.model_copy(update={"node_to_node": node_to_node})
    extra = type(ACCESS).model_validate(
        {**plain.model_dump(), "extra": {"sshd_conf": ["ClientAliveInterval 60", "LogLevel VERBOSE"]}}
    )
    cluster = access_site(extra)
    text = sshd_conf(Site(cluster, worker(cluster)), extra)
    before, _, after = text.partition(block("ClientAliveInterval 60", "LogLevel VERBOSE"))
    assert after
    assert "Match" not in before
    assert ("Match" in after) is node_to_node
    without = sshd_conf(Site(cluster, worker(cluster)), plain)
    assert [*before.splitlines(), *after.splitlines()] == without.splitlines()


def problems(tmp_path, role: str, **extra: list[str]):
    section = f"roles:\n  {role}: {json.dumps({'extra': extra})}\n"
    text = change(("roles:\n", section))
    found = problems_of(tmp_path, text.replace("  mariadb:\n", "") if role == "mariadb" else text)
    return [(problem.path, problem.value, problem.message, problem.hint) for problem in found]


def test_keys_that_rackwright_sets_are_refused_with_their_option(tmp_path):
    assert problems(
        tmp_path, "slurm", slurm_conf=["KeepAliveTime=30", "killwait=5", "ClusterName=x", "partitionname=a"]
    ) == [
        (
            "roles.slurm.extra.slurm_conf[1]",
            "killwait=5",
            "killwait in slurm.conf is set by rackwright.",
            "use the option `timeouts.kill_wait`",
        ),
        (
            "roles.slurm.extra.slurm_conf[2]",
            "ClusterName=x",
            "ClusterName in slurm.conf is set by rackwright.",
            "remove it; its value follows from the cluster file",
        ),
        (
            "roles.slurm.extra.slurm_conf[3]",
            "partitionname=a",
            "partitionname in slurm.conf is set by rackwright.",
            "remove it; its value follows from the cluster file",
        ),
    ]


def test_a_managed_key_behind_another_one(tmp_path):
    ((path, _, message, _),) = problems(tmp_path, "slurm", cgroup_conf=["MinRAMSpace=1 ConstrainCores=no"])
    assert (path, message) == (
        "roles.slurm.extra.cgroup_conf[0]",
        "ConstrainCores in cgroup.conf is set by rackwright.",
    )


@pytest.mark.parametrize(
    ("role", "file", "line", "message"),
    [
        ("time", "chrony_conf", "makestep 1 3", "makestep in chrony.conf is set by rackwright."),
        (
            "time",
            "chrony_conf",
            "Server ntp.example.com",
            "The line is not of chrony.conf's form, `directive and values`.",
        ),
        (
            "mariadb",
            "server_cnf",
            "bind_address=0.0.0.0",
            "bind_address in MariaDB's file is set by rackwright.",
        ),
        ("slurm", "slurmdbd_conf", "dbdport=7000", "dbdport in slurmdbd.conf is set by rackwright."),
        (
            "access",
            "sshd_conf",
            "permitrootlogin yes",
            "permitrootlogin in sshd's file is set by rackwright.",
        ),
        ("access", "sshd_conf", "Match all", "Match in sshd's file is set by rackwright."),
        (
            "access",
            "sshd_conf",
            "AllowUsers bob",
            "AllowUsers decides who gets in, and could lock rackwright out of the nodes.",
        ),
    ],
)
def test_lines_that_are_refused(tmp_path, role, file, line, message):
    assert message in [found[2] for found in problems(tmp_path, role, **{file: [line]})]


@pytest.mark.parametrize(
    ("role", "file", "line"),
    [
        ("slurm", "slurmdbd_conf", "StoragePass=hunter22"),
        ("slurm", "slurm_conf", "AccountingStoragePass=hunter22"),
        ("access", "sshd_conf", "SomePassword hunter22"),
        ("time", "chrony_conf", "secret_key hunter22"),
        ("slurm", "slurm_conf", "JobCompHost=mysql://me:hunter22@db"),
    ],
)
def test_secrets_are_refused_and_never_shown(tmp_path, capsys, role, file, line):
    found = problems(tmp_path, role, **{file: [line]})
    assert found == [(f"roles.{role}.extra.{file}[0]", None, "Secret in plaintext.", found[0][3])]
    run(["validate", str(tmp_path / "demo.yaml")])
    assert "hunter22" not in "".join(capsys.readouterr())


def test_a_path_of_a_key_is_no_secret(tmp_path):
    assert problems(tmp_path, "slurm", slurm_conf=["AuthAltParameters=jwt_key=/etc/slurm/jwt.key"]) == []


def test_unknown_files_are_named(tmp_path):
    ((path, _, message, hint),) = problems(tmp_path, "slurm", slurmconf=["A=1"])
    assert (path, message, hint) == (
        "roles.slurm.extra.slurmconf",
        "Unknown key `slurmconf`.",
        "did you mean `slurm_conf`?",
    )


def test_a_plan_says_how_many_extra_lines_a_file_has_and_that_they_change():
    time = TimeOptions.model_validate({"extra": {"chrony_conf": ["maxslewrate 500"]}})
    cluster = site({"time": time})
    plan = planned(cluster, head(cluster))
    (operation,) = [found for found in plan.operations if "chrony's configuration" in found.name]
    assert operation.name.endswith("Write chrony's configuration (with 1 extra line)")
    assert [found.because for found in operation.changes] == [
        "extra lines of the cluster file change: 1 added, 0 removed"
    ]


CHECKED = {
    "time": (
        TimeOptions.model_validate({"extra": {"chrony_conf": ["maxslewrate 500", "logchange 0.5"]}}),
        TIME_CHECKS,
        "chrony.conf has the declared extra lines",
        "/etc/chrony/chrony.conf",
    ),
    "access": (
        ACCESS.model_copy(update={"extra": AccessExtra(sshd_conf=("LogLevel VERBOSE", "Compression no"))}),
        ACCESS_CHECKS,
        "sshd's file has the declared extra lines",
        SSHD_CONF,
    ),
    "mariadb": (
        MariadbOptions.model_validate({"extra": {"server_cnf": ["max_connections = 500", "skip-log-bin"]}}),
        MARIADB_CHECKS,
        "MariaDB's file has the declared extra lines",
        "/etc/mysql/mariadb.conf.d/90-rackwright.cnf",
    ),
}


@pytest.mark.parametrize("role", CHECKED)
def test_verify_sees_extra_lines_that_were_changed_by_hand(role):
    options, checks, name, path = CHECKED[role]
    cluster = site({role: options})
    node = head(cluster)
    (lines,) = (value for _, value in options.extra)

    def judge(*found: str) -> tuple[str, str]:
        host = FakeHost(file(path, with_extra("x\n", found)))
        result = judged(role, checks, name, cluster, node, host)
        return result.status, result.evidence

    assert judge(*lines) == ("PASS", f"2 extra lines in {path}")
    assert judge(lines[0]) == ("FAIL", f"{path} lacks the extra line {lines[1]!r}")
    assert judge(*lines, "other 1") == ("FAIL", f"{path} has the extra line 'other 1', which is not declared")
    assert judge(lines[1], lines[0]) == ("FAIL", f"{path} has the extra lines in another order")
    assert judged(role, checks, name, cluster, node, FakeHost({})).status == "UNKNOWN"
    assert judged(role, checks, name, cluster, node, FakeHost(file(path, None))).status == "FAIL"
