"""slurmctld's state on a filesystem of `storage:`: found by itself, guarded on each controller, and never taken on trust."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import ClassVar

import pytest

from rackwright.claims.mount_probe import PROGRAM
from rackwright.model.backups import parts_of
from rackwright.model.options import RoleOptions
from rackwright.model.storage import FilesystemKind, ServesFilesystems
from rackwright.roles.slurm import standby, state
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.state_problems import state_warnings
from rackwright.roles.slurm.verify import CHECKS
from tests.unit.roles.fake_facts import file, files
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, judged, planned
from tests.unit.roles.slurm_clusters import cluster, node
from tests.unit.roles.storage_sites import Makes, Mounts, Serves, nfs, with_storage

CHECK = "slurmctld's state is on its declared filesystem"
HEADS = ("h1", "h2")
PAIR = {"backups": ["h2"], "state_dir": "/shared/slurmctld"}
OUTSIDE = nfs("state", "/shared", "10.0.0.7", nodes=HEADS)
INSIDE = nfs("state", "/shared", "h1", nodes=HEADS)
SCRATCH = nfs("scratch", "/shared", kind=FilesystemKind.LOCAL, servers=(), nodes=HEADS)
NFS_LINE = "40 1 0:50 / /shared rw - nfs4 10.0.0.7:/srv/state rw,hard\n"
AUTOFS_LINE = "39 1 0:49 / /shared rw - autofs systemd-1 rw\n"


def site(*filesystems, given=None, **roles):
    roles = {"mounts": Mounts(), **roles}
    made = cluster(
        "c",
        node("h1", "10.0.0.1", "head", primary=True),
        node("h2", "10.0.0.2", "head"),
        node("w1", "10.0.0.9", "worker"),
        slurm=SlurmOptions.model_validate(PAIR if given is None else given),
        **roles,
    )
    return with_storage(made, *filesystems)


def found(made):
    return list(made.primary.options["slurm"].problems(made))


def of(made, name):
    one = made.by_name[name]
    return state.state_on(one, one.options["slurm"])


# How each controller gets it


def test_a_client_and_the_server_itself_get_it_by_different_ways():
    made = site(INSIDE, makes=Makes(made={"/srv": "xfs"}))
    client, server = of(made, "h2"), of(made, "h1")
    assert client.places == (state.Place("/shared", ("nfs4",), ("10.0.0.1:/srv/state",)),)
    assert client.units == ("shared.mount",)
    assert server.places == (state.Place("/srv", ("xfs",)),)
    assert server.units == ("srv.mount", "shared.mount")  # nfs_server binds the export to the path
    assert of(site(nfs("state", "/shared", export="/shared", nodes=HEADS)), "h1").units == ()
    assert of(site(SCRATCH, makes=Makes(made={"/shared": "xfs"})), "h1").units == ("shared.mount",)


def test_nothing_is_held_where_nothing_is_declared_above_it():
    made = site(nfs("home", "/sharedhome", nodes=HEADS))
    assert of(made, "h1") is None
    assert (
        of(site(OUTSIDE, mounts=Makes(made={})), "h1") is None
    )  # no role mounts it, which `storage:` refuses
    assert content(planned(site(given={}), site(given={}).primary), state.CONF) is None


def test_its_own_drives_need_no_entry_in_storage():
    given = {"state_dir": "/srv/slurm"}
    made = site(given=given, makes=Makes(made={"/srv": "xfs"}))
    one = of(made, "h1")
    assert (one.places, one.units, one.name) == ((state.Place("/srv", ("xfs",)),), ("srv.mount",), "/srv")
    assert "RequiresMountsFor=/srv\nBindsTo=srv.mount\n" in content(planned(made, made.primary), state.CONF)
    assert "storage." not in state.refuse(one)
    assert (found(made), claimed("slurm", CHECKS, made.primary).count(CHECK)) == ([], 1)
    pair = site(given={**given, "backups": ["h2"]}, makes=Makes(made={"/srv": "xfs"}))
    assert of(pair, "h1") is None
    assert [path for path, _, _ in found(pair)] == ["state_mount"]
    mount = {"path": "/srv", "source": "/dev/sdb", "fstype": "xfs"}
    assert of(site(given={**given, "state_mount": mount}, makes=Makes(made={"/srv": "xfs"})), "h1") is None


def test_the_state_is_backed_up_and_put_back_on_its_filesystem_alone():
    def ready(made):
        return next(part.ready for part in parts_of(made, made.primary) if part.name == "slurmctld")

    guarded = f"{state.PROGRAM} && test -d /shared/slurmctld"
    assert ready(site(OUTSIDE)) == guarded
    assert ready(site(INSIDE, makes=Makes(made={"/srv": "xfs"}))) == guarded
    assert ready(site(SCRATCH, makes=Makes(made={"/shared": "xfs"}))) == guarded
    own_disk = site(nfs("state", "/shared", export="/shared", nodes=HEADS))
    assert ready(own_disk) == ready(site()) == "test -d /shared/slurmctld"
    mount = {"path": "/shared", "source": "10.0.0.7:/srv/state", "fstype": "nfs4"}
    assert ready(site(OUTSIDE, given={**PAIR, "state_mount": mount})) == f"mountpoint -q /shared && {guarded}"


def test_purged_records_are_backed_up_and_put_back_on_their_filesystem_alone():
    """An empty mount point would pass for records that nothing has purged yet."""

    def ready(made):
        return next(part.ready for part in parts_of(made, made.primary) if part.name == "purged-records")

    def at(archive, **more):
        return {**PAIR, "accounting": {"archive_dir": archive}, **more}

    there = "test -d /shared/archive"
    given = at("/shared/archive")
    assert ready(site(OUTSIDE, given=given)) == f"mountpoint -q /shared && {there}"
    served = site(INSIDE, given=given, makes=Makes(made={"/srv": "xfs"}))
    assert ready(served) == f"mountpoint -q /srv && mountpoint -q /shared && {there}"
    assert ready(site(given=given)) == there
    own = site(given=at("/srv/archive"), makes=Makes(made={"/srv": "xfs"}))
    assert ready(own) == "mountpoint -q /srv && test -d /srv/archive"
    mount = {"path": "/shared", "source": "10.0.0.7:/srv/state", "fstype": "nfs4"}
    assert ready(site(given=at("/shared/archive", state_mount=mount))) == f"mountpoint -q /shared && {there}"
    assert ready(site(OUTSIDE, given=at("/var/archive", state_mount=mount))) == "test -d /var/archive"


# What is written


def test_slurmctld_starts_with_its_state_and_stops_with_it():
    made = site(OUTSIDE)
    plan = planned(made, made.by_name["h2"])
    assert content(plan, state.CONF).splitlines()[3:] == [
        "[Unit]",
        "RequiresMountsFor=/shared",
        "BindsTo=shared.mount",
        "After=shared.mount",
        "# A filesystem that cannot be mounted yet fails this unit by dependency, which no Restart= covers.",
        "OnFailure=rackwright-slurmctld-state.service",
        "",
        "[Service]",
        "ExecStartPre=+/usr/libexec/rackwright/slurmctld-state start",
    ]
    assert "PartOf=slurmctld.service\n" in content(plan, state.WAITER_PATH)
    names = [op.name for op in plan.operations if op.role == "slurm"]
    order = [
        f"Write {state.PROGRAM}",
        f"Write {state.CONF}",
        "Check that slurmctld's state is on its filesystem",
        "Create slurmctld's state folder",
        "Start slurmctld with its settings",
    ]
    assert sorted(order, key=names.index) == order
    assert made.by_name["h2"].options["slurm"].unit_files(made.by_name["h2"]) == (
        state.CONF,
        state.WAITER_PATH,
        *standby.STANDBY_UNIT_FILES,
    )


def test_the_server_needs_its_drives_and_the_bind_mount():
    made = site(INSIDE, makes=Makes(made={"/srv": "xfs"}))
    text = content(planned(made, made.primary), state.CONF)
    assert "RequiresMountsFor=/shared /srv/state\nBindsTo=srv.mount shared.mount\n" in text


def test_a_state_on_the_system_s_own_disk_has_nothing_to_wait_for():
    made = site(nfs("state", "/shared", export="/shared", nodes=HEADS))
    plan = planned(made, made.primary)
    assert content(plan, state.CONF) is None
    assert "Check that slurmctld's state is on its filesystem" not in [op.name for op in plan.operations]


# The program, run for real on a recorded table


def run(tmp_path, one, table, *arguments, tools=()):
    (tmp_path / "table").write_text(table)
    text = state.program(one).replace("/proc/self/mountinfo", str(tmp_path / "table"))
    text = text.replace("refused=/run", f"refused={tmp_path}")
    text = text.replace("PATH=/usr/sbin", f"PATH={tmp_path}/bin:/usr/sbin").replace("sleep 15", "sleep 0.1")
    (tmp_path / "bin").mkdir(exist_ok=True)
    for name, printed in (("ls", "exit 0"), *tools):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{printed}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", text, "state", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(
    ("table", "printed"),
    [
        (NFS_LINE, (0, "as declared")),
        (AUTOFS_LINE + NFS_LINE, (0, "as declared")),
        (AUTOFS_LINE, (1, "/shared is not mounted")),  # a mount point, and the server is away
        ("", (1, "/shared is not mounted")),
        (NFS_LINE.replace("0.7", "0.8"), (1, "/shared is nfs4 10.0.0.8:/srv/state, which is not declared")),
        (NFS_LINE + "41 1 0:51 / /shared rw - tmpfs tmpfs rw\n", (1, "/shared is tmpfs tmpfs, which is not declared")),
        (NFS_LINE.replace("/shared rw", "/shared rw shared:7 master:1"), (0, "as declared")),
    ],
)  # fmt: skip
def test_what_is_mounted_is_judged_by_type_and_source(tmp_path, table, printed):
    assert run(tmp_path, of(site(OUTSIDE), "h1"), table) == printed


def test_a_filesystem_that_hangs_is_not_waited_for(tmp_path):
    slow = (("timeout", "exit 137"),)
    assert run(tmp_path, of(site(OUTSIDE), "h1"), NFS_LINE, tools=slow) == (1, "/shared does not answer")


def test_the_server_s_path_shows_its_export(tmp_path):
    export, path = tmp_path / "export", tmp_path / "path"
    export.mkdir()
    path.mkdir()
    one = nfs("state", str(path), export=str(export), nodes=HEADS)
    made = site(
        one, given={"backups": ["h2"], "state_dir": f"{path}/s"}, makes=Makes(made={str(tmp_path): "xfs"})
    )
    table = f"40 1 8:1 / {tmp_path} rw - xfs /dev/sdb rw\n"
    assert run(tmp_path, of(made, "h1"), table) == (1, f"{path} is not {export}, which this node serves")
    path.rmdir()
    os.symlink(export, path)  # as the bind mount does, one folder under two names
    assert run(tmp_path, of(made, "h1"), table) == (0, "as declared")
    ext4 = table.replace("xfs", "ext4")
    assert run(tmp_path, of(made, "h1"), ext4)[1] == f"{tmp_path} is ext4 /dev/sdb, which is not declared"


def test_slurmctld_is_started_once_its_state_has_come(tmp_path):
    log, table = tmp_path / "log", tmp_path / "table"
    systemctl = f"""echo "$*" >>{log}
case $1 in show) echo success ;; start) [ -e {tmp_path}/up ] && printf '{NFS_LINE.strip()}\\n' >{table}; touch {tmp_path}/up ;; esac
"""
    assert run(tmp_path, of(site(OUTSIDE), "h1"), "", "wait", tools=(("systemctl", systemctl),))[0] == 0
    assert log.read_text().splitlines() == [
        "show --property=Result --value slurmctld.service",
        "start shared.mount",
        "start shared.mount",
        "--no-block start slurmctld.service",
    ]


def test_slurmctld_that_failed_with_its_state_there_is_left_alone(tmp_path):
    tools = (("systemctl", "[ $1 = show ] && echo exit-code || exit 99"),)
    assert run(tmp_path, of(site(OUTSIDE), "h1"), NFS_LINE, "wait", tools=tools)[0] == 0


def test_a_start_that_was_refused_is_made_up_for(tmp_path):
    one, log = of(site(OUTSIDE), "h1"), tmp_path / "log"
    tools = (("systemctl", f'echo "$*" >>{log}; [ $1 = show ] && echo exit-code; exit 0'),)
    assert run(tmp_path, one, "", "start") == (1, "/shared is not mounted")
    assert run(tmp_path, one, NFS_LINE, "wait", tools=tools)[0] == 0
    assert log.read_text().splitlines()[-1] == "--no-block start slurmctld.service"
    log.unlink()
    assert run(tmp_path, one, NFS_LINE, "start") == (0, "as declared")
    assert run(tmp_path, one, NFS_LINE, "wait", tools=tools)[0] == 0
    assert log.read_text().splitlines() == ["show --property=Result --value slurmctld.service"]


def test_nothing_is_made_below_a_folder_that_is_not_mounted(tmp_path):
    made = site(OUTSIDE)
    (refusal,) = commands(planned(made, made.primary), "Check that slurmctld's state is on its filesystem")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho '/shared is not mounted'\nexit 1\n")
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", refusal.replace(state.PROGRAM, str(program))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "/shared is not mounted. storage.state holds slurmctld's state: slurmctld was left"
    )


# Problems

GIVEN = {"path": "/shared", "source": "10.0.0.7:/srv/state", "fstype": "nfs4"}
WIDEN = "add them to `storage.state.nodes`"


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        (site(OUTSIDE), []),
        (site(INSIDE), []),
        (site(OUTSIDE, given={**PAIR, "state_mount": GIVEN}), []),
        (site(INSIDE, given={**PAIR, "state_mount": {**GIVEN, "source": "10.0.0.1:/srv/state"}}), []),
        (
            site(OUTSIDE, given={**PAIR, "state_mount": {**GIVEN, "source": "other:/x"}}),
            [("state_mount.source", ("state_mount is nfs4 from other:/x, and h1 mounts storage.state, nfs4 from "
              "10.0.0.7:/srv/state."), "leave `state_mount` out: storage.state declares the mount")],
        ),
        (
            site(nfs("state", "/shared/a", "10.0.0.7", nodes=HEADS),
                 given={**PAIR, "state_dir": "/shared/a/s", "state_mount": GIVEN}),
            [("state_mount.path", "state_mount is on /shared, and storage.state on /shared/a.",
              "leave `state_mount` out: storage.state declares the mount")],
        ),
        (
            site(nfs("state", "/shared", "10.0.0.7", nodes=("h1",))),
            [("state_dir", "/shared/slurmctld is on state, which h2 does not use at /shared.", WIDEN)],
        ),
        (
            site(nfs("state", "/shared", "h1", nodes=("h2",))),
            [("state_dir", "/shared/slurmctld is on state, which h1 does not use at /shared.",
              "servers too: add them to `storage.state.nodes`, so that /shared is there")],
        ),
        (
            site(nfs("a", "/shared", "10.0.0.7", nodes=("h1",)), nfs("b", "/shared", "10.0.0.8", nodes=("h2",))),
            [("state_dir", "/shared/slurmctld is on different filesystems: a on h1, b on h2.",
              "give all controllers the same one")],
        ),
        (
            site(SCRATCH, makes=Makes(made={"/shared": "xfs"})),
            [("state_dir", "/shared/slurmctld is on scratch, which each controller has on its own drives.",
              "e.g. `state_dir: /shared/slurmctld`")],
        ),
        (
            site(OUTSIDE, mounts=Mounts(soft=True)),
            [("state_dir", ("/shared/slurmctld is on state, which h1 mounts soft: while the server is away, writes are "
              "lost, and a backup reads errors instead of waiting."), "declare `options: [hard]` for storage.state")],
        ),
        (
            site(nfs("state", "/shared", "10.0.0.7", nodes=HEADS, read_only=True)),
            [("state_dir", "/shared/slurmctld is on state, which is read-only.", None)],
        ),
        (
            site(nfs("state", "/state", "10.0.0.7", nodes=HEADS), given={"backups": ["h2"]}),
            [("state_mount", ("With backups, state_dir has to be on a file system that all controllers mount; declare "
              "which."), "e.g. `state_dir: /state/slurmctld`")],
        ),
        (site(SCRATCH, given={"state_dir": "/shared/s"}, makes=Makes(made={"/shared": "xfs"})), []),
    ],
)  # fmt: skip
def test_problems(made, problems):
    assert found(made) == problems


@pytest.mark.parametrize(
    ("server", "roots", "squashed", "hint"),
    [
        ("w1", (), "h[1-2]", "h[1-2]"),
        ("w1", ("h1", "w2"), "h2", "h[1-2],w2"),
        ("w1", ("h1", "h2"), None, None),
        ("h1", (), "h2", "h2"),  # h1 makes the folder on its own drives, but h2 may come first
        ("h1", ("h2",), None, None),
    ],
)
def test_every_controller_can_make_the_folder(server, roots, squashed, hint):
    served = nfs("state", "/shared", server, nodes=HEADS)
    assert found(site(served, serves=Serves(root_of=roots))) == (
        [
            (
                "state_dir",
                f"/shared/slurmctld is on state, where the root of {squashed} is squashed and cannot make the folder.",
                f"e.g. `nfs_server: {{root_access: {{state: '{hint}'}}}}`",
            )
        ]
        if squashed
        else []
    )


class ServesAll(RoleOptions, ServesFilesystems):
    """Stands for a role whose servers squash no node's root."""

    serves_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.NFS})


def test_servers_that_squash_no_root_are_not_asked_for_access():
    assert found(site(nfs("state", "/shared", "w1", nodes=HEADS), serves=ServesAll())) == []


@pytest.mark.parametrize(
    ("changes", "serves", "accounting", "problem"),
    [
        ({}, ("h1",), {}, None),
        ({}, (), {}, "the root of h1 is squashed"),
        ({}, ("h1",), {"dbd_backup_host": "h2"}, "the root of h2 is squashed"),
        ({}, ("h1", "h2"), {"dbd_backup_host": "h2"}, None),
        ({"read_only": True}, ("h1",), {}, "which is read-only"),
        ({"read_only": True}, ("h1",), {"archive_dir": None}, None),
        ({"read_only": True}, ("h1",), {"archive_dir": "/var/archive"}, None),
        ({"read_only": True, "nodes": ("h2",)}, (), {}, None),  # slurmdbd runs on h1
    ],
)
def test_slurmdbd_can_write_what_it_purges(changes, serves, accounting, problem):
    archive = nfs("records", "/records", "w1", **{"nodes": HEADS, **changes})
    given = {"accounting": {"archive_dir": "/records/slurm", **accounting}}
    seen = [
        one for one in found(site(archive, given=given, serves=Serves(root_of=serves))) if "archive" in one[0]
    ]
    assert [path for path, _, _ in seen] == (["accounting.archive_dir"] if problem else [])
    assert all(problem in sentence and hint for _, sentence, hint in seen)


def test_a_controller_that_serves_the_state_of_all_is_warned_of():
    def warned(made):
        return [(path, sentence) for path, sentence, _ in state_warnings(made.primary.options["slurm"], made)]

    assert warned(site(INSIDE)) == [
        (
            "backups",
            "h1 serves storage.state, which holds slurmctld's state: while it is away, no other controller can take over.",
        )
    ]
    assert warned(site(INSIDE)) == [
        (path, text)
        for path, text, _ in site(INSIDE).primary.options["slurm"].warnings(site(INSIDE))
        if path == "backups"
    ]
    assert warned(site(OUTSIDE)) == []
    assert warned(site(INSIDE, given={"state_dir": "/shared/s"})) == []


# Checks


def answers(
    one,
    mounted=(0, "as declared\n", ""),
    probe='{"/shared": {"seconds": 0.1, "blocks": 9, "available": 9, "files": 9, "files_available": 9}}',
):
    """Of a node whose files are as declared."""
    asked = f"python3 -IS -c {shlex.quote(PROGRAM)} read /shared 5"
    texts = dict(files({path: text for path, text in state.files(one).items() if path != state.PROGRAM}))
    texts |= file(state.PROGRAM, state.files(one)[state.PROGRAM], mode="755")
    return {asked: probe, f"sh -c {shlex.quote(state.program(one))}": mounted, **texts}


def result(made, where, given):
    return judged("slurm", CHECKS, CHECK, made, made.by_name[where], FakeHost(given))


def test_a_state_that_is_as_declared_passes():
    made = site(OUTSIDE)
    assert CHECK in claimed("slurm", CHECKS, made.by_name["h2"])
    assert CHECK not in claimed("slurm", CHECKS, made.by_name["w1"])
    one = result(made, "h2", answers(of(made, "h2")))
    assert (one.status, one.evidence) == (
        "PASS",
        "/shared/slurmctld is on state, and slurmctld does not start without it",
    )
    server = site(INSIDE, makes=Makes(made={"/srv": "xfs"}))
    assert result(server, "h1", answers(of(server, "h1"))).status == "PASS"
    own = site(given={"state_dir": "/srv/slurm"}, makes=Makes(made={"/srv": "xfs"}))
    one = result(own, "h1", answers(of(own, "h1")))
    assert (one.status, one.evidence) == (
        "PASS",
        "/srv/slurm is on /srv, and slurmctld does not start without it",
    )


@pytest.mark.parametrize(
    ("changes", "status", "evidence"),
    [
        ({"mounted": (1, "/shared is not mounted\n", "")}, "FAIL",
         "/shared is not mounted: slurmctld's state is not on state"),
        ({"probe": '{"/shared": {"error": "ESTALE", "text": "Stale file handle"}}'}, "FAIL",
         "/shared cannot be read: ESTALE (Stale file handle)"),
        ({"probe": '{"/shared": {"hangs": true, "seconds": 5}}'}, "UNKNOWN", "/shared does not answer within 5 s"),
        ({"mounted": (127, "", "sh: awk: not found")}, "UNKNOWN", "what is mounted on /shared cannot be read: sh: awk: not found"),
        ({"mounted": ""}, "UNKNOWN", None),
        ({"probe": "?"}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_a_state_that_is_not_or_cannot_be_known(changes, status, evidence):
    made = site(OUTSIDE)
    one = result(made, "h2", answers(of(made, "h2"), **changes))
    assert one.status == status, one
    assert evidence in (None, one.evidence)


def test_a_guard_that_is_gone_fails():
    made = site(OUTSIDE)
    given = answers(of(made, "h2")) | files({state.CONF: None})
    assert result(made, "h2", given).evidence == f"{state.CONF} is missing"
    assert Path(state.CONF).name == "rackwright.conf"
