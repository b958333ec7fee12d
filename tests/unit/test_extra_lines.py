"""Extra lines: their syntax, the keys that rackwright sets itself, and the marked block."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rackwright.extra_lines import (
    BEGIN,
    CHRONY,
    END,
    ENROOT,
    MARIADB,
    SLURM,
    SSHD,
    ExtraFile,
    change_of,
    lines_in,
    named,
    split,
    with_extra,
)
from rackwright.roles.enroot_pyxis.options import EnrootPyxisOptions
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.slurm.extra import SlurmExtra
from rackwright.roles.slurm.options import SlurmOptions

TEXT = "A=1\nB=2\n"


def test_no_lines_leave_a_file_as_it_is():
    assert with_extra(TEXT, ()) == TEXT
    assert (lines_in(TEXT), named("Write x", TEXT)) == ((), "Write x")


def test_the_block_is_marked_and_read_back():
    text = with_extra(TEXT, ("C=3", "D=4"))
    assert text == f"{TEXT}\n{BEGIN}\nC=3\nD=4\n{END}\n"
    assert lines_in(text) == ("C=3", "D=4")
    assert named("Write x", text) == "Write x (with 2 extra lines)"
    assert named("Write x", with_extra(TEXT, ("C=3",))) == "Write x (with 1 extra line)"


@pytest.mark.parametrize(
    ("before", "after", "mark"),
    [
        (("C=3",), ("C=3",), None),
        ((), (), None),
        ((), ("C=3",), "extra lines of the cluster file change: 1 added, 0 removed"),
        (("C=3", "D=4"), ("C=5", "D=4"), "extra lines of the cluster file change: 1 added, 1 removed"),
        (("C=3",), (), "extra lines of the cluster file change: 0 added, 1 removed"),
    ],
)
def test_what_a_plan_is_marked_with(before, after, mark):
    assert change_of(with_extra(TEXT, before), with_extra("A=2\n", after)) == mark


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "The line is empty."),
        (" A=1", "The line begins or ends with a space."),
        ("# A=1", "A comment stays in the cluster file."),
        ("A=1\\", "The line ends with a backslash, which would join it with the next one."),
        ("A=\u00e9", "The line has characters that are not ASCII."),
        ("A=" + "x" * 1000, "The line has more than 1000 characters."),
        ("A=1\nKillWait=5", "contains a line break"),
        ("A=1\x1b[2J", "control character"),
    ],
)
def test_lines_that_no_file_takes(line, message):
    with pytest.raises(ValidationError) as found:
        SlurmExtra(slurm_conf=(line,))
    assert message in str(found.value)


def test_a_line_twice():
    with pytest.raises(ValidationError, match="is there twice"):
        SlurmExtra(cgroup_conf=("A=1", "B=1", "A=1"))


@pytest.mark.parametrize(
    ("syntax", "line", "keys"),
    [
        (SLURM, "KeepAliveTime=30", ("KeepAliveTime",)),
        (SLURM, "KeepAliveTime = 30", ("KeepAliveTime",)),
        (SLURM, "DebugFlags+=Gres", ("DebugFlags",)),
        (SLURM, "KeepAliveTime=30 KillWait=5", ("KeepAliveTime", "KillWait")),
        (SLURM, "SlurmctldParameters=a,b=c", ("SlurmctldParameters",)),
        (SLURM, 'NodeSet=x Feature="a KillWait=1"', ("NodeSet", "Feature")),
        (SLURM, "KeepAliveTime", ()),
        (SLURM, "Include /etc/passwd", ()),
        (SLURM, "KeepAliveTime=", ()),
        (SLURM, "KeepAliveTime=3 # five", ()),
        (CHRONY, "maxslewrate 500", ("maxslewrate",)),
        (CHRONY, "lock_all", ("lock_all",)),
        (CHRONY, "=x", ()),
        (SSHD, "ClientAliveInterval 60", ("ClientAliveInterval",)),
        (SSHD, "ClientAliveInterval=60", ("ClientAliveInterval",)),
        (SSHD, "ClientAliveInterval", ()),
        (MARIADB, "max_connections = 500", ("max_connections",)),
        (MARIADB, "skip-log-bin", ("skip-log-bin",)),
        (MARIADB, "[mysqld]", ()),
        (MARIADB, "!include /etc/passwd", ()),
        (ENROOT, "ENROOT_TRANSFER_RETRIES 3", ("ENROOT_TRANSFER_RETRIES",)),
        (ENROOT, "PATH /tmp", ()),
    ],
)
def test_keys_of_lines(syntax, line, keys):
    assert syntax.keys(line) == keys


def test_managed_keys_are_those_of_the_template_with_their_options():
    managed = ExtraFile("slurm_conf", "slurm.conf", SLURM, ("slurm/slurm.conf.j2",)).managed(SlurmOptions)
    assert managed["killwait"] == "timeouts.kill_wait"
    assert managed["srunportrange"] == "srun_port_range"
    assert managed["topologyplugin"] == "topology"
    assert managed["schedulerparameters"] == "scheduler_parameters"
    assert managed["inactivelimit"] is None
    assert {"namespacetype", "jobcontainertype", "include", "suspendrate"} <= set(managed)
    assert not {"keepalivetime", "nodeset", "if", "for", "set"} & set(managed)


def test_keys_of_a_text_that_no_template_line_has():
    file = ExtraFile("slurm_conf", "slurm.conf", SLURM, (), ("NodeName=a CPUs=4\n# Comment=1\n",))
    assert file.managed(SlurmOptions) == {"nodename": None}
    assert list(file.problems(("nodename=DEFAULT State=DOWN", "CPUs=3"), SlurmOptions)) == [
        (
            "extra.slurm_conf[0]",
            "nodename in slurm.conf is set by rackwright.",
            "remove it; its value follows from the cluster file",
        )
    ]


@pytest.mark.parametrize(
    "key", ["innodb_buffer_pool_size", "innodb-buffer-pool-size", "loose_innodb-buffer_pool_size"]
)
def test_names_of_mariadb(key):
    file = ExtraFile("server_cnf", "MariaDB's file", MARIADB, ("mariadb/server.cnf.j2",))
    assert list(file.problems((f"{key} = 1G",), MariadbOptions)) == [
        (
            "extra.server_cnf[0]",
            f"{key} in MariaDB's file is set by rackwright.",
            "use the option `buffer_pool_mib`",
        )
    ]


def test_enroot_keys_have_a_case():
    file = ExtraFile("enroot_conf", "enroot.conf", ENROOT, ("enroot_pyxis/enroot.conf.j2",))
    assert list(file.problems(("ENROOT_REMAP_ROOT yes",), EnrootPyxisOptions)) == [
        (
            "extra.enroot_conf[0]",
            "ENROOT_REMAP_ROOT in enroot.conf is set by rackwright.",
            "use the option `remap_root`",
        )
    ]


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("StoragePass=x", ("StoragePass", "x")),
        ("ENROOT_LOGIN_PASSWORD  x", ("ENROOT_LOGIN_PASSWORD", "x")),
        ('a = "b c"', ("a", "b c")),
        ("alone", ("", "alone")),
    ],
)
def test_key_and_value(line, pair):
    assert split(line) == pair
