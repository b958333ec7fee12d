"""The integrity role: options, what it declares for a node, and its checks."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from rackwright.facts.traces import NodeTraces
from rackwright.model.authorized_keys import parse_key
from rackwright.model.settings import Ssh
from rackwright.model.unit_files import foreign_unit_files
from rackwright.roles.access.options import AccessOptions, AdminUser
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.gdrcopy.options import GdrcopyOptions
from rackwright.roles.integrity.declared import declared, login_key
from rackwright.roles.integrity.options import IntegrityOptions
from rackwright.roles.integrity.verify import CHECKS
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.mig.options import MigOptions
from rackwright.roles.time.options import TimeOptions
from rackwright.status import Status
from tests.unit.facts.traced import FOREIGN, OWN, OWN_PRINT, answer, coded
from tests.unit.roles.access_site import KEY
from tests.unit.roles.fake_host import FakeHost, errors_in, judged, planned
from tests.unit.roles.sites import head, site, worker

ACCESS = AccessOptions(users=(AdminUser(name="ada", uid=3000, authorized_keys=(KEY,), sudo=True),))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key whose public half is the stock node's."""
    folder = tmp_path_factory.mktemp("key")
    (folder / "id.pub").write_text(f"{OWN}\n")
    return folder / "id"


def made(options=None, key=None, user="rack", access=None, **more):
    roles = {"integrity": options or IntegrityOptions(), **more}
    if access is not None:
        roles["access"] = access
    return site(roles, ssh=Ssh(user=user, key=key))


def asked(cluster):
    node = worker(cluster)
    right = declared(cluster, node, node.options["integrity"])
    text = NodeTraces().command(
        users=right.users, groups=tuple(right.root_groups), paths=right.paths, held=node.family.held
    )
    return f"sh -c {shlex.quote(text)}"


def check(name, lines, cluster):
    host = FakeHost({asked(cluster): "\n".join(lines) if isinstance(lines, list) else lines})
    return judged("integrity", CHECKS, name, cluster, worker(cluster), host)


KEYS, ACCOUNTS, MEMBERS, SUDO, SSHD, LOOSE, HOLDS = (one.name for one in CHECKS)


@pytest.mark.parametrize("name", [one.name for one in CHECKS])
def test_each_holds_on_a_stock_node(name, key):
    result = check(name, answer(), made(key=key, access=ACCESS))
    assert (result.status, bool(result.evidence)) == (Status.PASS, True)


@pytest.mark.parametrize(
    ("name", "line", "evidence"),
    [
        (KEYS, coded("keys", "root", "/root/.ssh/authorized_keys", FOREIGN), "mallory@outside) of root in /root/.ssh"),
        (KEYS, "keylink|www|/var/www/.ssh/authorized_keys", "/var/www/.ssh/authorized_keys is a link"),
        (ACCOUNTS, "account|toor|0|/root|/bin/sh|open|", "toor has uid 0"),
        (ACCOUNTS, "account|www|33|/|/bin/sh|open|", "www has a password"),
        (ACCOUNTS, "account|ada|3000|/|/bin/sh|empty|", "ada has no password"),
        (MEMBERS, "member|sudo|eve|sudo", "eve is in group sudo"),
        (SUDO, coded("sudoers", "-", "/etc/sudoers.d/x", "x ALL=ALL"), "/etc/sudoers.d/x: x ALL=ALL"),
        (SSHD, "sshd|trustedusercakeys|/etc/evil", "trustedusercakeys is /etc/evil, not none"),
        (SSHD, coded("config", "-", "/etc/ssh/sshd_config.d/x.conf", "X y"), "nothing declares /etc/ssh/sshd_config.d/x"),
        (SSHD, coded("config", "-", "/etc/ssh/sshd_config", "Match all\n"), "/etc/ssh/sshd_config: Match all"),
        (LOOSE, "loose|f 4755 /etc/x", "/etc/x has mode 4755"),
        (HOLDS, "hold|jq", "jq is held"),
    ],
)  # fmt: skip
def test_each_fails(name, line, evidence, key):
    result = check(name, answer(line), made(key=key))
    assert result.status is Status.FAIL
    assert evidence in result.evidence


def test_the_main_file_of_sshd_has_to_read_the_folder(key):
    line = coded("config", "-", "/etc/ssh/sshd_config", "UsePAM yes\n")
    result = check(SSHD, answer(line), made(key=key, user="ada", access=ACCESS))
    assert "does not include its folder any more" in result.evidence


@pytest.mark.parametrize("name", [one.name for one in CHECKS])
@pytest.mark.parametrize(
    "lines", ["", "rubbish\n", "\n".join(answer()[:-1]), (1, "", "no\n"), (127, "", "sh: not found\n")]
)
def test_each_cannot_know(name, lines, key):
    assert check(name, lines, made(key=key)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("name", "part"),
    [(KEYS, "keys"), (KEYS, "accounts"), (ACCOUNTS, "accounts"), (MEMBERS, "accounts"), (SUDO, "sudoers"), (SSHD, "sshd"), (LOOSE, "loose"), (HOLDS, "holds")],
)  # fmt: skip
def test_a_part_that_could_not_be_read_is_not_known(name, part, key):
    result = check(name, answer(f"cannot|{part}|do it"), made(key=key))
    assert (result.status, result.evidence) == (Status.UNKNOWN, "the node could not do it")


def test_an_account_that_apply_closed_is_a_warning(key):
    result = check(ACCOUNTS, answer("account|toor|0|/root|/usr/sbin/nologin|locked|1"), made(key=key))
    assert result.status is Status.WARN
    assert "toor has uid 0 and is locked" in result.evidence


def test_keys_of_a_login_user_whose_own_key_is_not_known():
    result = check(KEYS, answer(), made())
    assert result.status is Status.UNKNOWN
    assert "the key with which rackwright logs in as rack" in result.evidence
    ((path, sentence, hint),) = IntegrityOptions().warnings(made())
    assert path == "allowed_authorized_keys"
    assert "the keys of rack are not judged" in sentence
    assert "allowed_authorized_keys: {rack: [...]}" in hint


def test_what_roles_declare_is_right(key):
    cluster = made(key=key, user="ada", access=ACCESS)
    right = declared(cluster, worker(cluster), IntegrityOptions())
    assert right.login_has_sudo
    assert right.users == ("ada",)
    assert right.keys["ada"] == {KEY}
    assert "/etc/sudoers.d/90-rackwright" in right.sudoers
    assert "/etc/ssh/sshd_config.d/00-rackwright.conf" in right.sshd_files
    assert "/etc/ssh/authorized_keys.d/ada" in right.key_files
    assert right.sshd_settings["permitrootlogin"] == {"no"}
    assert right.sshd_settings["trustedusercakeys"] == {"none"}
    assert right.key_prefixes["rackwright-drift"].startswith("restrict,command=")


def test_members_of_privileged_groups_that_are_right(key):
    eve = AdminUser(name="eve", uid=3001, groups=("disk", "audio"))
    access = AccessOptions(users=(*ACCESS.users, eve))
    allowed = IntegrityOptions(allowed_group_members={"lxd": ("bob",), "audio": ("x",)})
    cluster = made(allowed, key=key, user="ada", access=access, docker=DockerOptions(users=("eve",)))
    right = declared(cluster, worker(cluster), allowed)
    more = {group: set(names) - {"ada"} for group, names in right.root_groups.items() if "ada" in names}
    empty: set[str] = set()
    assert more == {
        "sudo": empty,
        "wheel": empty,
        "admin": empty,
        "docker": empty,
        "disk": {"eve"},
        "lxd": {"bob"},
    }
    assert right.compared_groups == {"docker"}
    alone = made(key=key)
    assert set(declared(alone, worker(alone), IntegrityOptions()).root_groups) == set(right.root_groups)


def test_a_private_key_without_its_public_half(tmp_path):
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True, timeout=60
    )
    public = (tmp_path / "id.pub").read_text()
    (tmp_path / "id.pub").unlink()
    assert login_key(made(key=tmp_path / "id")) == parse_key(public).fingerprint
    (tmp_path / "id").write_text("not a key")
    assert login_key(made(key=tmp_path / "id")) is None
    assert login_key(made(key=tmp_path / "nothing")) is None


@pytest.mark.parametrize("passphrase", ["", "secret"])
@pytest.mark.parametrize("form", ["RFC4716", "PEM"])
def test_the_public_half_of_an_older_key_is_not_taken_for_the_login_key(tmp_path, passphrase, form):
    """With the wrong fingerprint, apply would remove the key that rackwright logs in with."""
    id_file = tmp_path / "id"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ecdsa", "-m", form, "-N", passphrase, "-f", id_file],
        check=True,
        timeout=60,
    )
    public = parse_key((tmp_path / "id.pub").read_text()).fingerprint
    assert login_key(made(key=id_file)) == public
    (tmp_path / "id.pub").write_text(f"{OWN}\n")
    encrypted_pem = (form, passphrase) == ("PEM", "secret")
    assert login_key(made(key=id_file)) == (OWN_PRINT if encrypted_pem else public), "PEM hides all of it"


def test_packages_that_roles_hold_beside_the_lock():
    cluster = made(gdrcopy=GdrcopyOptions())
    right = declared(cluster, worker(cluster), IntegrityOptions(allowed_holds=("jq",)))
    assert right.holds == {"jq", "gdrdrv-dkms", "libgdrapi"}
    by_parted = MigOptions(tool="mig-parted", version="0.12.1-1")
    assert by_parted.held_packages(worker(cluster)) == ("nvidia-mig-manager",)
    assert MigOptions().held_packages(worker(cluster)) == ()


DROP_IN = "/etc/systemd/system/chrony.service.d/evil.conf"


@pytest.mark.parametrize(
    ("fragment", "drop_ins", "foreign"),
    [
        ("/usr/lib/systemd/system/chrony.service", (DROP_IN,), (DROP_IN,)),
        ("/etc/systemd/system/chrony.service", (), ("/etc/systemd/system/chrony.service",)),
        ("", ("/run/systemd/system.control/chrony.service.d/50-x.conf",), None),
        ("", ("/usr/lib/systemd/system/chrony.service.d/debian.conf",), ()),
        ("", ("/etc/systemd/system/chrony.service.d/90-rackwright.conf",), ()),
        ("/etc/systemd/system/rackwright-drift.service", (), ()),
    ],
)
def test_files_of_a_unit_that_nothing_declares(fragment, drop_ins, foreign):
    node = worker(made(time=TimeOptions()))
    assert foreign_unit_files(node, fragment, drop_ins) == (drop_ins if foreign is None else foreign)
    allowed = IntegrityOptions(allowed_drop_ins=(fragment or "/x", *drop_ins))
    assert foreign_unit_files(worker(made(allowed, time=TimeOptions())), fragment, drop_ins) == ()
    assert foreign_unit_files(worker(site({"time": TimeOptions()})), fragment, drop_ins) == ()


def test_every_unit_file_that_a_role_writes_is_declared():
    """Drop-ins of the plan on an empty node, against what the roles declare."""
    cluster = made(time=TimeOptions(), mariadb=MariadbOptions())
    for node in (head(cluster), worker(cluster)):
        written = {
            change.target
            for operation in planned(cluster, node).operations
            for change in operation.changes
            if change.kind == "file" and change.target.startswith("/etc/systemd/system/")
        }
        assert foreign_unit_files(node, "", tuple(sorted(written))) == ()


def test_an_empty_node_is_planned_without_changes_of_this_role(key):
    plan = planned(made(key=key), worker(made(key=key)))
    assert plan.error is None
    assert not [one for one in plan.operations if one.role == "integrity"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"allowed_authorized_keys": {"root": ["ssh-ed25519 x"]}}, "neither a line of authorized_keys nor a fingerprint"),
        ({"allowed_authorized_keys": {"root": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}}, "This is a private key"),
        ({"allowed_sudoers": ["/etc/sudoers.d/x"]}, "'/etc/sudoers.d/x' is not a file name"),
        ({"allowed_drop_ins": ["x.conf"]}, "'x.conf' is not an absolute path below /"),
        ({"setuid_paths": ["/"]}, "'/' is not an absolute path below /"),
        ({"allowed_setuid": ["/etc/../x"]}, "'/etc/../x' is not an absolute path below /"),
    ],
)  # fmt: skip
def test_options_that_are_refused(given, sentence):
    assert sentence in errors_in(IntegrityOptions, given)[0]
    assert OWN_PRINT not in sentence
