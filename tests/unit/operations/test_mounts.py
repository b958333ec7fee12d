"""Mounting what is declared: units, what is mounted and differs, and the change between boot and first use."""

from __future__ import annotations

import shlex
from typing import ClassVar

import pytest

from rackwright.roles.nfs_client.options import NfsClientOptions
from tests.unit.pyinfra_driver.local import LocalRun, LocalShell
from tests.unit.roles.nfs_sites import nfs, served

DEPLOY = """\
from rackwright.data import site_of
from rackwright.mounts import mounts_of
from rackwright.operations.mounts import {what}
from pyinfra.context import host
node = site_of().node
{call}
"""
MOUNTED = "for one in host.loop(mounts_of(node, node.options['nfs_client'])):\n    mounted(name='Mount it', mount=one)"
ROOT = "0 0 0:0 / / rw - ext4 /dev/vda1 rw"
AUTOFS = "0 0 0:0 / /home rw,relatime - autofs systemd-1 rw"
HOME = (
    "0 0 0:0 / /home rw,nosuid,nodev,noatime - nfs4 10.9.0.10:/srv/home "
    "rw,vers=4.2,hard,proto=tcp,nconnect=8,timeo=600,retrans=2,sec=sys"
)
RUNS = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
IDLE = "LoadState=loaded\nActiveState=inactive\nUnitFileState=static\n"
MISSING = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\n"
MANAGER = "systemctl daemon-reload"


class Shown(LocalShell):
    """systemd and the kernel show what the test wants; what is done is only noted."""

    units: ClassVar[dict[str, str]] = {}
    table: ClassVar[str] = ""
    home: ClassVar[str] = "/var/lib/admin"
    """Of rackwright's own login."""

    def execute(self, command, arguments):
        text = str(command)
        answer = "true"
        if "systemctl show" in text:
            name = next(name for name in Shown.units if name in text)
            answer = f"printf %s {shlex.quote(Shown.units[name])}"
        elif "mountinfo" in text:
            answer = f"printf %s {shlex.quote(Shown.table)}"
        elif "getent passwd" in text:
            answer = f"echo admin:x:1000:1000::{Shown.home}:/bin/bash; echo admin; echo admin"
        elif "systemctl" not in text:
            answer = "echo absent"
        return LocalShell.execute(self, answer, {})


def operations(tmp_path, automount, mount, table, *, by_use=True, what="mounted", call=MOUNTED):
    Shown.units = {"home.automount": automount, "home.mount": mount}
    Shown.table = "\n".join((ROOT, *table)) + "\n"
    cluster = served(nfs(automount=by_use))
    one = cluster.model_copy(update={"nodes": (cluster.by_name["gpu1"],)})
    plan = LocalRun(one, tmp_path, Shown).plan(DEPLOY.format(what=what, call=call))["gpu1"]
    assert plan.error is None
    return plan.operations


def said(found):
    """The changes, and the lines of the one script."""
    (operation,) = found
    (command,) = operation.commands
    script = shlex.split(command)
    assert script[:2] == ["sh", "-ec"]
    changes = [(one.target, one.after, one.because, one.disruptive) for one in operation.changes]
    return changes, [line.partition(" ||")[0] for line in script[2].splitlines()]


def started(unit):
    return [f"systemctl reset-failed {unit} 2>/dev/null", f"systemctl start {unit}"]


def test_what_waits_for_its_first_use_is_as_declared(tmp_path):
    assert operations(tmp_path, RUNS, IDLE, [AUTOFS]) == ()
    assert operations(tmp_path, RUNS, RUNS.replace("enabled", "static"), [AUTOFS, HOME]) == ()
    assert operations(tmp_path, MISSING, RUNS, [HOME], by_use=False) == ()


def test_a_new_one_waits_for_its_first_use_and_is_not_mounted(tmp_path):
    changes, lines = said(operations(tmp_path, MISSING, MISSING, []))
    assert changes == [("home.automount", "enabled", None, False), ("home.automount", "running", None, False)]
    assert lines == [MANAGER, "systemctl enable --quiet home.automount", *started("home.automount")]


def test_one_of_boot_is_mounted_at_once(tmp_path):
    changes, lines = said(operations(tmp_path, MISSING, MISSING, [], by_use=False))
    assert [change[:2] for change in changes] == [("home.mount", "enabled"), ("home.mount", "running")]
    assert lines == [MANAGER, "systemctl enable --quiet home.mount", *started("home.mount")]


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        (
            "10.9.0.10:/srv",
            "10.9.0.99:/srv",
            "/home comes from 10.9.0.99:/srv/home, not from 10.9.0.10:/srv/home",
        ),
        ("vers=4.2", "vers=4.1", "/home has vers=4.1, not vers=4.2"),
        ("hard,", "soft,", "/home lacks hard"),
        ("nfs4 ", "nfs ", "/home is nfs, not nfs4"),
        (" rw,vers", " ro,vers", "/home is read-only"),
        (",nosuid", "", "/home lacks nosuid"),
    ],
)
def test_what_is_mounted_and_differs_is_mounted_anew_after_a_drain(tmp_path, old, new, because):
    changes, lines = said(operations(tmp_path, RUNS, RUNS, [AUTOFS, HOME.replace(old, new)]))
    assert changes == [
        ("home.mount", "disabled", None, False),
        ("home.mount", "mounted anew", because, True),
    ]
    assert lines == [
        MANAGER,
        "systemctl disable --quiet home.mount",
        "systemctl stop home.mount",
        *started("home.automount"),
    ]


def test_a_mount_that_was_there_before_makes_way_for_the_automounter(tmp_path):
    """systemd refuses to start an automount unit where something is mounted already."""
    changes, lines = said(operations(tmp_path, MISSING, RUNS, [HOME]))
    because = "/home is already mounted, and its automount unit is missing"
    assert ("home.mount", "mounted anew", because, True) in changes
    assert lines.index("systemctl stop home.mount") < lines.index("systemctl start home.automount")


def test_from_first_use_to_boot(tmp_path):
    """The automount unit takes what is mounted along, so it is mounted again."""
    changes, lines = said(operations(tmp_path, RUNS, IDLE, [AUTOFS, HOME], by_use=False))
    because = "/home is mounted on first use, but is declared to be mounted at boot"
    assert ("home.mount", "mounted anew", because, True) in changes
    assert "systemctl disable --quiet home.automount" in lines
    assert lines.index("systemctl stop home.automount") < lines.index("systemctl start home.mount")


def test_a_masked_unit_is_unmasked(tmp_path):
    masked = "LoadState=masked\nActiveState=inactive\nUnitFileState=masked\n"
    changes, lines = said(operations(tmp_path, masked, IDLE, []))
    assert [change[1] for change in changes] == ["unmasked", "enabled", "running"]
    assert lines[1] == "systemctl unmask --quiet home.automount"


def test_a_unit_file_that_changed_is_read_before_the_next_use(tmp_path):
    changed = IDLE + "NeedDaemonReload=yes\n"
    changes, lines = said(operations(tmp_path, RUNS, changed, [AUTOFS]))
    assert changes == [("home.mount", "unit file read again", None, False)]
    assert lines == [MANAGER, ":"]


def test_a_mount_table_that_cannot_be_read_ends_the_plan(tmp_path):
    Shown.units = {"home.automount": RUNS, "home.mount": IDLE}
    Shown.table = "garbage\n"
    cluster = served(nfs())
    one = cluster.model_copy(update={"nodes": (cluster.by_name["gpu1"],)})
    plan = LocalRun(one, tmp_path, Shown).plan(DEPLOY.format(what="mounted", call=MOUNTED))["gpu1"]
    assert "garbage" in (plan.error or "")


DATA = HOME.replace("/home", "/data")


def connected(*tables, connections=8):
    """Plan of two mounts from one server."""
    Shown.units = dict.fromkeys(("home.automount", "data.automount"), RUNS)
    Shown.units |= {name: RUNS.replace("enabled", "static") for name in ("home.mount", "data.mount")}
    Shown.table = "\n".join((ROOT, *tables)) + "\n"
    client = NfsClientOptions(connections=connections)
    data = nfs(name="data", path="/data", export="/srv/data")
    cluster = served(nfs(), data, client=client)
    return cluster.model_copy(update={"nodes": (cluster.by_name["gpu1"],)})


TOGETHER = """\
mounts = mounts_of(node, node.options['nfs_client'])
for one in host.loop(mounts):
    mounted(name='Mount it', mount=one, together=mounts)
"""


def test_connections_are_made_anew_only_when_no_mount_holds_them(tmp_path):
    """The kernel gives a new mount the connections of one that is there, whatever its `nconnect`."""
    cluster = connected(AUTOFS, HOME, AUTOFS.replace("/home", "/data"), DATA, connections=16)
    deploy = DEPLOY.format(what="mounted", call=TOGETHER)
    found = LocalRun(cluster, tmp_path, Shown).plan(deploy)["gpu1"]
    assert found.error is None
    scripts = [shlex.split(one.commands[0])[2].splitlines() for one in found.operations]
    assert "systemctl stop home.mount data.mount" in scripts[0]
    assert "systemctl stop data.mount home.mount" in scripts[1]
    assert [one.changes[0].because for one in found.operations] == [
        "/home has nconnect=8, not nconnect=16",
        "/data has nconnect=8, not nconnect=16",
    ]


def test_another_mount_of_the_server_stays_when_connections_are_as_declared(tmp_path):
    cluster = connected(AUTOFS, HOME.replace("hard,", "soft,"), AUTOFS.replace("/home", "/data"), DATA)
    deploy = DEPLOY.format(what="mounted", call=TOGETHER)
    found = LocalRun(cluster, tmp_path, Shown).plan(deploy)["gpu1"]
    assert found.error is None
    (one,) = found.operations
    assert "systemctl stop home.mount" in shlex.split(one.commands[0])[2].splitlines()


DECLARED = "declared(mounts_of(node, node.options['nfs_client']))"


@pytest.mark.parametrize(
    ("by_use", "names"),
    [
        (True, ["Write the mount unit of /home", "Write the automount unit of /home", "Mount /home"]),
        (False, ["Write the mount unit of /home", "Mount /home"]),
    ],
)
def test_files_come_before_what_reads_them(tmp_path, by_use, names):
    found = operations(tmp_path, MISSING, MISSING, [], by_use=by_use, what="declared", call=DECLARED)
    assert [one.name for one in found] == names


@pytest.mark.parametrize("home", ["/home/admin", "/home"])
def test_the_home_of_rackwright_s_own_login_is_never_hidden(tmp_path, monkeypatch, home):
    monkeypatch.setattr(Shown, "home", home)
    Shown.units = {"home.automount": MISSING, "home.mount": MISSING}
    Shown.table = f"{ROOT}\n"
    cluster = served(nfs())
    one = cluster.model_copy(update={"nodes": (cluster.by_name["gpu1"],)})
    plan = LocalRun(one, tmp_path, Shown).plan(DEPLOY.format(what="mounted", call=MOUNTED))["gpu1"]
    assert plan.error is not None
    assert f"/home would hide {home}, the home of admin" in plan.error
    # what is mounted there already hides nothing more
    assert operations(tmp_path, RUNS, IDLE, [AUTOFS]) == ()
