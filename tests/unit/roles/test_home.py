"""The home role: whose homes are where, the program that makes them (run for real), quotas, problems and checks."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from rackwright.claims import mount_probe, patient
from rackwright.facts.mounts import MountTable
from rackwright.facts.quotas import Limits, UserQuotas
from rackwright.model.storage import FilesystemKind, FilesystemPurpose, Quota
from rackwright.node_programs import one_text
from rackwright.roles.access.options import AccessOptions
from rackwright.roles.home import layout, node, paths, verify
from rackwright.roles.home.options import HomeOptions
from rackwright.roles.home.verify import CHECKS
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from tests.unit.roles.fake_facts import account, asked, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import head, site, worker
from tests.unit.roles.storage_sites import Makes, Mounts, nfs, with_storage

ALL = ("head1", "gpu1", "gpu2")
WORKERS = ("gpu1", "gpu2")
USERS = AccessOptions.model_validate(
    {
        "users": [
            {"name": "alice", "uid": 2001},
            {"name": "bob", "uid": 2002},
            {"name": "admin", "uid": 1000, "sudo": True},
        ]
    }
)
QUOTA = Quota.model_validate({"gib": 100, "files": 1000000, "users": {"bob": {"gib": 5}}})
MADE, MEMBERS, QUOTAS, REACHED = (check.name for check in CHECKS)


def homes(server="head1", nodes=ALL, **changes):
    fields = {"purpose": FilesystemPurpose.HOME, "export": "/srv/home", "nodes": nodes, **changes}
    return nfs("home", fields.pop("path", "/shared/home"), server, **fields)


def home_site(*filesystems, given=None, access=USERS, makes=None, **changes):
    options = {"access": access, "home": given or HomeOptions(), "mounts": Mounts()}
    if makes is not None:
        options["makes"] = makes
    return with_storage(site({}, **changes), *(filesystems or (homes(),)), options=options)


XFS = Makes(made={"/srv": "xfs"}, options={"/srv": ("noatime", "uquota")})


# Whose homes, and where


def test_homes_of_declared_users_are_on_the_declared_filesystem():
    made = home_site()
    assert layout.users(made, homes()) == {"alice": 2001, "bob": 2002}  # admin, ssh.user, keeps its own
    assert layout.made_by(made, head(made), HomeOptions()) == ((homes(), "/srv/home"),)
    assert layout.made_by(made, worker(made), HomeOptions()) == ()
    outside = homes("10.9.0.200")
    made = home_site(outside)
    assert [layout.folder(node, outside, HomeOptions(made_on="gpu1")) for node in made.nodes] == [
        None,
        "/shared/home",
        None,
    ]
    local = homes(kind=FilesystemKind.LOCAL, servers=(), export=None)
    assert [layout.folder(node, local, HomeOptions()) for node in made.nodes] == ["/shared/home"] * 3


def test_what_has_to_be_mounted_before_homes_are_made():
    made = home_site(makes=XFS)
    assert layout.mounts(made, head(made), HomeOptions()) == ("/srv",)
    bare = home_site()
    assert layout.mounts(bare, head(bare), HomeOptions()) == ()  # a disk of the site's
    outside, own = homes("10.9.0.200"), Makes(made={"/shared/home": "xfs"})
    made = home_site(outside, given=HomeOptions(made_on="gpu1"))
    assert layout.mount(made.by_name["gpu1"], outside, HomeOptions(made_on="gpu1")) == "/shared/home"
    assert layout.mount(made.by_name["gpu2"], outside, HomeOptions(made_on="gpu1")) is None
    local = homes(kind=FilesystemKind.LOCAL, servers=(), export=None)
    made = home_site(local, makes=own)
    assert layout.mount(worker(made), local, HomeOptions()) == "/shared/home"


def test_the_access_role_leaves_them_to_the_server():
    made = home_site()
    plan = planned(made, worker(made))
    (alice,), (admin,) = commands(plan, "Create user alice"), commands(plan, "Create user admin")
    assert "--home-dir /shared/home/alice --no-create-home" in alice
    assert "--home-dir /home/admin --create-home" in admin
    given = USERS.users[0].model_copy(update={"home": "/data/alice"})
    own = home_site(access=USERS.model_copy(update={"users": (given, *USERS.users[1:])}))
    assert (
        "--home-dir /data/alice --create-home" in commands(planned(own, worker(own)), "Create user alice")[0]
    )
    assert layout.users(own, homes()) == {"bob": 2002}
    plain = with_storage(site({"access": USERS}))
    assert (
        "--home-dir /home/alice --create-home"
        in commands(planned(plain, worker(plain)), "Create user alice")[0]
    )


def test_what_the_server_gets():
    made = home_site()
    plan = planned(made, head(made))
    assert [op.name for op in plan.operations if op.role == "home"] == [
        "Create /etc/rackwright",
        "Create /usr/local/libexec",
        "Write the list of homes",
        "Write the program that creates homes",
        "Create the homes of declared users",
    ]
    assert json.loads(content(plan, paths.SETTINGS)) == {
        "folders": [
            {
                "folder": "/srv/home",
                "mount": None,
                "path": "/shared/home",
                "groups": [],
                "skeleton": "/etc/skel",
                "mode": "700",
                "users": {"alice": 2001, "bob": 2002},
            }
        ]
    }
    assert [op.name for op in planned(made, worker(made)).operations if op.role == "home"] == []


def test_it_runs_where_homes_are():
    one = site({}).primary
    assert not HomeOptions().runs_on(one)
    assert HomeOptions().runs_on(one.model_copy(update={"filesystems": (homes(),)}))
    assert HomeOptions().runs_on(one.model_copy(update={"served": (homes(),)}))
    assert not HomeOptions().runs_on(one.model_copy(update={"served": (nfs("state", "/s"),)}))


def test_quotas_are_set_for_everyone_and_for_some():
    made = home_site(homes(quota=QUOTA), makes=XFS)
    (script,) = commands(planned(made, head(made)), "Set the quotas on home")
    lines = shlex.split(script)[2].splitlines()
    assert lines == [
        "mountpoint -q /srv",
        "xfs_quota -x -c 'limit -u bsoft=0 bhard=104857600k isoft=0 ihard=1000000 -d' /srv",
        "xfs_quota -x -c 'limit -u bsoft=0 bhard=104857600k isoft=0 ihard=1000000 2001' /srv",
        "xfs_quota -x -c 'limit -u bsoft=0 bhard=5242880k isoft=0 ihard=1000000 2002' /srv",
    ]


# Options and problems


def test_options_that_are_refused():
    assert len(errors_in(HomeOptions, {"mode": "7000"})) == 1
    assert len(errors_in(HomeOptions, {"skeleton": "../x"})) == 1


LAYOUT = {"disks": {"d": {"slot": "0000:01:00.0"}}, "filesystems": {"/srv": {"on": "d"}}}


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        (home_site(), []),
        (home_site(homes(quota=QUOTA), makes=XFS), []),
        (home_site(homes("10.9.0.200", quota=QUOTA)), []),
        (
            home_site(given=HomeOptions(mode="077")),
            [("mode", "077 locks users out of their homes.", "e.g. `mode: '700'`")],
        ),
        (
            home_site(homes("10.9.0.200"), given=HomeOptions(made_on="gpu9")),
            [("made_on", "gpu9 is not a node of this cluster.", "did you mean `gpu2`?")],
        ),
        (
            home_site(given=HomeOptions(made_on="gpu1")),
            [
                (
                    "made_on",
                    "gpu1 mounts no filesystem of purpose `home` whose server is outside of the cluster.",
                    "leave it out: nodes that serve homes create them",
                )
            ],
        ),
        (
            home_site(homes(quota=QUOTA)),
            [
                (
                    "",
                    "storage.home has a quota, but no role makes the filesystem of /srv/home on head1.",
                    "declare it under `roles.storage_layout.filesystems`, e.g. `/srv/home: {on: data, mount_options: [uquota]}`",
                )
            ],
        ),
        (
            home_site(homes(quota=QUOTA), makes=Makes(made={"/srv": "ext4"})),
            [
                (
                    "",
                    "storage.home has a quota, but /srv on head1 is ext4: quotas are set only on xfs.",
                    "its quota files would have to be made while it is not mounted; declare `type: xfs`, or remove the quota",
                )
            ],
        ),
        (
            home_site(homes(quota=QUOTA), makes=StorageLayoutOptions.model_validate(LAYOUT)),
            [
                (
                    "",
                    "storage.home has a quota, but /srv on head1 is mounted without `uquota`.",
                    "add it to `mount_options` under `roles.storage_layout.filesystems`, and unmount it once: a remount is too late",
                )
            ],
        ),
        (
            home_site(homes(quota=Quota.model_validate({"gib": 1, "users": {"carol": {"gib": 2}}})), makes=XFS),
            [
                (
                    "",
                    "storage.home.quota.users names carol, and no role declares such a user.",
                    "declare the user under `roles.access.users`: a quota is set by number",
                )
            ],
        ),
    ],
)  # fmt: skip
def test_problems(made, problems):
    options = next(one.options["home"] for one in made.nodes if "home" in one.options)
    assert list(options.problems(made)) == problems


def test_one_home_has_one_owner():
    made = home_site()
    other = AccessOptions.model_validate({"users": [{"name": "alice", "uid": 3001}]})
    nodes = [
        one.model_copy(update={"options": {**one.options, "access": other}}) if one.name == "gpu2" else one
        for one in made.nodes
    ]
    made = made.model_copy(update={"nodes": tuple(nodes)})
    ((_, sentence, _),) = HomeOptions().problems(made)
    assert sentence == "alice has uid 2001 on head1 and 3001 on gpu2, and one home on home."


def test_a_login_that_waits_for_a_server_is_warned_of():
    made = home_site(homes(path="/home"))
    ((_, sentence, _),) = HomeOptions().warnings(made)
    assert sentence == (
        "rackwright logs in to gpu[1-2] as admin, whose home /home/admin is on a server: while that is away, no login works."
    )
    assert list(HomeOptions().warnings(home_site())) == []
    unknown = home_site(homes(path="/home"), access=AccessOptions())
    assert len(list(HomeOptions().warnings(unknown))) == 1
    two = home_site(homes(), nfs("old", "/old", nodes=("gpu1",), purpose=FilesystemPurpose.HOME))
    ((_, sentence, _),) = HomeOptions().warnings(two)
    assert sentence == "gpu1 has several filesystems of homes: declared users are on home."


# The program, run for real

ME = os.getuid()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of homes, a skeleton, and settings with one user, who is the one that runs the tests."""
    umask = os.umask(0o022)  # the program sets its own
    folder, skeleton = tmp_path / "homes", tmp_path / "skel"
    folder.mkdir(mode=0o755)
    (skeleton / ".config").mkdir(parents=True)
    (skeleton / ".bashrc").write_text("export A=1\n")
    (skeleton / "link").symlink_to("/etc/hostname")
    monkeypatch.setattr(node, "ROOT_UID", ME)
    settings = {
        "folders": [
            {
                "folder": str(folder),
                "mount": None,
                "path": "/shared/home",
                "groups": ["science"],
                "skeleton": str(skeleton),
                "mode": "700",
                "users": {"alice": ME},
            }
        ]
    }
    (tmp_path / "settings").write_text(json.dumps(settings))
    monkeypatch.setattr(node, "SETTINGS", str(tmp_path / "settings"))
    yield folder
    os.umask(umask)


def run(capsys, *arguments):
    status = node.main(list(arguments))
    out, err = capsys.readouterr()
    return status, (out + err).strip()


def test_a_home_is_made_whole_once_and_never_written_over(place, capsys):
    home = place / "alice"
    assert run(capsys, "wrong") == (0, f"{home} is missing")
    assert run(capsys, "make") == (0, "")
    assert sorted(path.name for path in home.iterdir()) == [".bashrc", ".config", "link"]
    assert os.readlink(home / "link") == "/etc/hostname"
    assert home.stat().st_mode & 0o7777 == 0o700
    (home / ".bashrc").write_text("mine\n")
    home.chmod(0o755)
    assert run(capsys, "wrong") == (0, f"{home} has mode 755, not 700")
    assert run(capsys, "make") == (0, "")
    assert run(capsys, "wrong") == (0, "as declared")
    assert (home / ".bashrc").read_text() == "mine\n"
    assert [path.name for path in place.iterdir()] == ["alice"]


def test_an_interrupted_run_leaves_nothing_behind(place, capsys):
    (place / ".rackwright-alice.new" / "half").mkdir(parents=True)
    assert run(capsys, "make") == (0, "")
    assert sorted(path.name for path in place.iterdir()) == ["alice"]
    assert not (place / "alice" / "half").exists()


def test_links_and_other_users_homes_are_left_alone(place, capsys, tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o755)
    (place / "alice").symlink_to(target)
    assert run(capsys, "make") == (1, f"{place}/alice is not a folder: move it aside by hand")
    assert target.stat().st_mode & 0o7777 == 0o755
    (place / "alice").unlink()
    (place / "alice").mkdir()
    settings = Path(node.SETTINGS)
    settings.write_text(settings.read_text().replace(f'"alice": {ME}', '"alice": 4242'))
    assert run(capsys, "make") == (
        1,
        f"{place}/alice belongs to uid {ME}, not to alice (4242): move it aside by hand",
    )


def test_a_folder_that_others_can_write_is_refused(place, capsys):
    place.chmod(0o777)
    wrong = f"{place} has mode 777 and belongs to uid {ME}: only root may own and write it"
    assert run(capsys, "make") == (1, wrong)
    assert run(capsys, "wrong")[1].splitlines() == [wrong, f"{place}/alice is missing"]
    place.rmdir()
    assert run(capsys, "make") == (1, f"{place}: No such file or directory")


def test_no_home_is_made_below_an_empty_mount_point(place, capsys, monkeypatch):
    """After a boot without the data disk the folder may be there, on the boot disk."""
    path = Path(node.SETTINGS)
    settings = json.loads(path.read_text())
    settings["folders"][0]["mount"] = str(place)
    path.write_text(json.dumps(settings))
    known = SimpleNamespace(pw_uid=ME, pw_gid=os.getgid(), pw_dir="/shared/home/dora")
    monkeypatch.setattr(node.pwd, "getpwnam", lambda name: known)
    monkeypatch.setattr(node.grp, "getgrnam", lambda name: SimpleNamespace(gr_mem=["dora"]))
    monkeypatch.setattr(node, "LEAST_UID", 0)
    empty = f"nothing is mounted on {place}"
    assert run(capsys, "wrong") == (0, f"{empty}\n{place}/alice is missing")
    for arguments in (("make",), ("make", "dora"), ("members",)):
        assert run(capsys, *arguments) == (1, empty)
    assert list(place.iterdir()) == []
    mounts = iter(range(100))
    monkeypatch.setattr(node, "mount_id", lambda descriptor: next(mounts))
    assert run(capsys, "make") == (0, "")
    assert run(capsys, "members") == (0, "")
    assert sorted(one.name for one in place.iterdir()) == ["alice", "dora"]
    settings["folders"][0]["mount"] = str(place / "nowhere")
    path.write_text(json.dumps(settings))
    assert run(capsys, "make") == (1, f"{place}/nowhere: No such file or directory")


def test_a_user_of_a_directory_gets_a_home_by_name(place, capsys, monkeypatch):
    class Account:
        pw_uid, pw_gid = ME or 0, os.getgid()

    def known(name):
        if name != "dora":
            raise KeyError(name)
        return Account

    monkeypatch.setattr(node.pwd, "getpwnam", known)
    monkeypatch.setattr(node, "LEAST_UID", ME + 1)
    assert run(capsys, "make", "dora") == (1, f"dora (uid {ME}) is not an ordinary user")
    monkeypatch.setattr(node, "LEAST_UID", 0)
    assert run(capsys, "make", "dora") == (0, "")
    assert (place / "dora" / ".bashrc").exists()
    assert run(capsys, "make", "nosuch") == (1, "there is no user nosuch")
    assert run(capsys, "frobnicate")[0] == 64


def test_a_home_is_its_user_s_whole(place, capsys, monkeypatch):
    settings = Path(node.SETTINGS)
    settings.write_text(settings.read_text().replace(f'"alice": {ME}', '"alice": 4242'))
    given = {}

    def chown(path, uid, gid, *, follow_symlinks):
        assert not follow_symlinks
        given[Path(path).name] = (uid, gid)

    monkeypatch.setattr(os, "chown", chown)
    assert run(capsys, "make") == (0, "")
    assert given == dict.fromkeys((".bashrc", ".config", "link", ".rackwright-alice.new"), (4242, 4242))


def test_members_of_groups_get_homes_where_they_live_there(place, capsys, monkeypatch):
    homes = {"dora": "/shared/home/dora", "eve": "/home/eve", "alice": "/shared/home/alice"}

    def known(name):
        return SimpleNamespace(pw_uid=ME, pw_gid=os.getgid(), pw_dir={**homes}[name])

    monkeypatch.setattr(node.pwd, "getpwnam", known)
    monkeypatch.setattr(
        node.grp, "getgrnam", lambda name: SimpleNamespace(gr_mem=["dora", "eve", "gone", "alice"])
    )
    monkeypatch.setattr(node, "LEAST_UID", 0)
    (place / "alice").mkdir(mode=0o755)
    assert run(capsys, "members") == (0, "")
    assert sorted(path.name for path in place.iterdir()) == ["alice", "dora"]
    assert (place / "alice").stat().st_mode & 0o777 == 0o755  # what is there is not touched

    def unknown(name):
        raise KeyError(name)

    monkeypatch.setattr(node.grp, "getgrnam", unknown)
    assert run(capsys, "members") == (1, "there is no group science, or its directory does not answer")


def test_a_timer_looks_for_new_members():
    given = HomeOptions(groups=("science",), every_minutes=10)
    made = home_site(given=given)
    plan = planned(made, head(made))
    assert "OnUnitInactiveSec=10min\n" in content(plan, paths.TIMER_PATH)
    service = content(plan, paths.SERVICE_PATH)
    assert f"ExecStart=/usr/bin/python3 -IS {paths.PROGRAM} members\n" in service
    assert "After=" not in service
    disk = home_site(given=given, makes=XFS)
    assert "\nAfter=srv.mount\n" in content(planned(disk, head(disk)), paths.SERVICE_PATH)
    assert "Start the timer for new group members" in [op.name for op in plan.operations]
    assert content(planned(made, worker(made)), paths.TIMER_PATH) is None
    assert given.unit_files(head(made)) == (paths.SERVICE_PATH, paths.TIMER_PATH)
    assert MEMBERS in claimed("home", CHECKS, head(made))
    assert MEMBERS not in claimed("home", CHECKS, head(home_site()))
    timer = unit(paths.TIMER)
    for answers, status in (
        ({**timer, **unit(paths.SERVICE, active="inactive", state="static")}, "PASS"),
        ({**timer, **unit(paths.SERVICE, active="failed", state="static")}, "FAIL"),
        ({**unit(paths.TIMER, active="inactive"), **unit(paths.SERVICE, active="inactive")}, "FAIL"),
        (timer, "UNKNOWN"),
        ({}, "UNKNOWN"),
    ):
        assert result(MEMBERS, made, "head1", answers).status == status


# Checks


def result(name, made, where, given, always=None):
    return judged("home", CHECKS, name, made, made.by_name[where], FakeHost(given, always))


def server_answers(made, said="as declared\n"):
    texts = {
        paths.PROGRAM: one_text("rackwright.roles.home.node"),
        paths.SETTINGS: layout.settings(made, head(made), HomeOptions()),
        **layout.units(HomeOptions()),
    }
    return {f"{paths.RUN} wrong": said, **files(texts)}


@pytest.mark.parametrize(
    ("said", "status", "evidence"),
    [
        ("as declared\n", "PASS", "2 homes in /srv/home"),
        ("/srv/home/bob is missing\n", "FAIL", "/srv/home/bob is missing"),
        ("\n".join(f"/srv/home/u{i} is missing" for i in range(7)), "FAIL", None),
        ("", "UNKNOWN", f"{paths.PROGRAM} prints nothing"),
        ((137, "", "Killed"), "UNKNOWN", None),
    ],
)
def test_homes_on_their_server(said, status, evidence):
    made = home_site()
    one = result(MADE, made, "head1", server_answers(made, said))
    assert (one.status, evidence in (None, one.evidence)) == (status, True), one
    assert MADE not in claimed("home", CHECKS, worker(made))


ROW = "#{} 1 0 {} 00 [--------] 3 0 {} 00 [--------]\n"
COUNTED = "Accounting: ON\nEnforcement: ON\n"
SET = (
    ROW.format(0, 104857600, 1000000)
    + ROW.format(2001, 104857600, 1000000)
    + ROW.format(2002, 5242880, 1000000)
)


def quota_answers(printed):
    return {
        "sh -c 'command -v xfs_quota'": "/usr/sbin/xfs_quota\n",
        asked(UserQuotas().command("/srv")): f"{printed}rackwright: end\n" if printed else "",
    }


@pytest.mark.parametrize(
    ("printed", "status", "evidence"),
    [
        (COUNTED + SET, "PASS", "/srv: 104857600 KiB, 1000000 files for every user, enforced"),
        (COUNTED + SET.replace("5242880", "0"), "FAIL", "on /srv the limit of uid 2002 is 1000000 files, not 5242880 KiB, 1000000 files"),
        (COUNTED.replace("Enforcement: ON", "Enforcement: OFF") + SET, "FAIL", "/srv accounts user quotas but does not enforce them"),
        ("", "FAIL", "/srv has no accounting of user quotas: it is not mounted, or mounted without uquota"),
        (COUNTED + "#2001 many\n", "UNKNOWN", None),
    ],
)  # fmt: skip
def test_quotas_in_force(printed, status, evidence):
    made = home_site(homes(quota=QUOTA), makes=XFS)
    one = result(QUOTAS, made, "head1", quota_answers(printed))
    assert (one.status, evidence in (None, one.evidence)) == (status, True), one


def test_quotas_that_cannot_be_known_or_are_a_server_s():
    made = home_site(homes(quota=QUOTA), makes=XFS)
    assert result(QUOTAS, made, "head1", {}).status == "UNKNOWN"
    outside = home_site(homes("10.9.0.200", quota=QUOTA))
    assert QUOTAS in claimed("home", CHECKS, head(outside))
    assert QUOTAS not in claimed("home", CHECKS, worker(outside))
    one = result(QUOTAS, outside, "head1", {})
    assert (one.status, one.evidence) == (
        "OUT OF SCOPE",
        "the quotas of home are managed on its servers (10.9.0.200)",
    )
    assert str(Limits(1)) == "1 KiB"


PATH = "/shared/home"
MOUNTED = f"0 0 0:0 / / rw - ext4 /dev/vda rw\n0 0 0:0 / {PATH} rw - nfs4 10.0.0.1:/srv/home rw\n"
FINE = {"alice": [True, 2001, 0o700, True], "bob": [True, 2002, 0o700, True]}
ALIVE = {PATH: {"seconds": 0.1, "blocks": 9, "available": 9, "files": 9, "files_available": 9}}


def client_answers(seen=FINE, alive=ALIVE, table=MOUNTED, home=PATH):
    def command(program, *words):
        return " ".join(["python3 -IS -c", *map(shlex.quote, (program, *words))])

    users = {
        line: str(said).replace("/home/", f"{home}/")
        for name, uid in (("alice", 2001), ("bob", 2002))
        for line, said in account(name, uid).items()
    }
    said = seen if isinstance(seen, str) else json.dumps({"reading": seen})
    return {
        **users,
        command(mount_probe.PROGRAM, "read", PATH, "5"): json.dumps(alive),
        asked(MountTable().command((PATH,))): table,
        command(patient.PROGRAM, "5", verify._LOOK, PATH, "alice", "bob"): said,
    }


@pytest.mark.parametrize(
    ("changes", "status", "evidence"),
    [
        ({}, "PASS", f"2 homes on {PATH}"),
        ({"home": "/home"}, "FAIL", f"the home of alice is /home/alice, not {PATH}/alice"),
        ({"table": MOUNTED.splitlines()[0] + "\n"}, "FAIL", f"{PATH} is not mounted: homes would be on the node's own disk"),
        ({"seen": {**FINE, "bob": None}}, "FAIL", f"{PATH}/bob is missing"),
        ({"seen": {**FINE, "bob": [True, 0, 0o700, True]}}, "FAIL", f"{PATH}/bob belongs to uid 0, not to bob (2002)"),
        ({"seen": {**FINE, "bob": [True, 2002, 0o755, True]}}, "FAIL", f"{PATH}/bob has mode 755, not 700"),
        ({"seen": {**FINE, "bob": [True, 2002, 0o700, False]}}, "FAIL", f"{PATH}/bob is not a folder on home"),
        ({"seen": '{"error": "ESTALE", "text": "stale"}'}, "FAIL", f"{PATH} cannot be read: ESTALE (stale)"),
        ({"alive": {PATH: {"error": "EIO", "text": "error"}}}, "FAIL", f"{PATH} cannot be read: EIO (error)"),
        ({"alive": {PATH: {"hangs": True, "seconds": 5}}}, "UNKNOWN", f"{PATH} does not answer within 5 s"),
        ({"seen": '{"hangs": true}'}, "UNKNOWN", f"{PATH} does not answer within 5 s"),
        ({"seen": {"alice": FINE["alice"]}}, "UNKNOWN", f"the node did not report {PATH}/bob"),
        ({"table": ""}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_homes_on_a_client(changes, status, evidence):
    made = home_site()
    one = result(REACHED, made, "gpu1", client_answers(**changes))
    assert (one.status, evidence in (None, one.evidence)) == (status, True), one


def test_a_node_without_the_user_fails_and_without_answers_nothing_is_known():
    made = home_site()
    given = client_answers() | account("alice", None)
    assert result(REACHED, made, "gpu1", given).evidence == "alice is not a user of this node"
    for name in (MADE, QUOTAS, REACHED):
        made = home_site(homes(quota=QUOTA), makes=XFS)
        for rubbish in ("", "command not ready\n"):
            assert result(name, made, "head1", {}, always=rubbish).status not in ("PASS", "WARN")


def test_what_a_client_is_asked_runs_for_real(place, capsys):
    from rackwright.claims.check import CheckContext
    from tests.unit.claims.test_patient import Here

    run(capsys, "make")
    made = home_site()
    context = CheckContext(made, made.primary, HomeOptions(), Here(), lambda name: Here())
    assert patient.run(context, str(place), verify._LOOK, str(place), "alice", "nosuch", seconds=20) == {
        "alice": [True, ME, 0o700, True],
        "nosuch": None,
    }
