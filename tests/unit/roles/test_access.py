"""The access role: options, known_hosts, the files it writes, and what it does on each family."""

from __future__ import annotations

import base64
import hmac

import pytest
from pydantic import ValidationError

from rackwright.data import Site
from rackwright.model.settings import Ssh
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import os_release
from rackwright.render import render
from rackwright.roles.access import known_hosts, trust
from rackwright.roles.access.deploy import sshd_conf
from rackwright.roles.access.options import AccessOptions
from rackwright.ssh.known_hosts import KnownHosts
from tests.unit.roles.access_site import KEY, OPTIONS, RECORDED, access_site
from tests.unit.roles.fake_host import commands, errors_in, planned
from tests.unit.roles.sites import expected, worker

CUT = KEY[:60] + " ada@example"
OTHER_KIND = f"ssh-rsa {KEY.split()[1]} ada@example"
USER = {"name": "ada", "uid": 3000}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"users": [{"name": "Ada", "uid": 3000}]},
            (
                "'Ada' is not a user name: it starts with a lower-case letter or underscore and continues with "
                "lower-case letters, digits, '_' or '-', 31 characters at most."
            ),
        ),
        (
            {"users": [{"name": "root", "uid": 3000}]},
            "root is not an admin user: it cannot log in; declare a user with `sudo: true`.",
        ),
        ({"users": [{"name": "ada", "uid": 0}]}, "Input should be greater than or equal to 1000"),
        ({"users": [{"name": "ada"}]}, "Field required"),
        ({"users": [USER, USER]}, "User ada is listed more than once."),
        ({"users": [USER, {"name": "bob", "uid": 3000}]}, "Users ada and bob have the same uid 3000."),
        ({"users": [USER], "removed_users": ["ada"]}, "User ada is both in users and in removed_users."),
        (
            {"users": [USER], "groups": [{"name": "ops", "gid": 3000}]},
            "Groups ada and ops have the same gid 3000.",
        ),
        (
            {"users": [USER], "groups": [{"name": "ada", "gid": 4000}]},
            "Group ada is listed more than once, or is a user's own group.",
        ),
        ({"removed_users": ["root"]}, "root cannot be a removed user."),
        (
            {"users": [{**USER, "shell": "bash"}]},
            "'bash' is not the absolute path of a shell.",
        ),
        (
            {"max_startups": "100"},
            "max_startups '100' is not of the form start:rate:full, e.g. '1000:30:2000'.",
        ),
        (
            {"max_startups": "100:30:50"},
            "max_startups '100:30:50' needs 1 <= start <= full and a rate of 1 to 100 percent.",
        ),
        ({"password_authentication": True}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(AccessOptions, given) == [sentence]


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----b3BlbnNzaC1rZXktdjEA",
            "This is a private key; only public keys belong here. Treat it as leaked.",
        ),
        (f"{KEY}\n{KEY}", "The text at `0` contains a line break."),
        (CUT, "The ssh-ed25519 key data does not match its type; was it truncated when copied?"),
        (KEY[:61], "The ssh-ed25519 key is not valid base64; was it truncated when copied?"),
        (OTHER_KIND, "The ssh-rsa key data does not match its type; was it truncated when copied?"),
        (
            f'command="reboot" {KEY}',
            (
                "An authorized key starts with its type (one of ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, "
                "ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, sk-ssh-ed25519@openssh.com, "
                "sk-ecdsa-sha2-nistp256@openssh.com), not with 'command=\"reboot\"'."
            ),
        ),
    ],
)
def test_keys_that_are_refused(key, sentence):
    assert errors_in(AccessOptions, {"users": [{**USER, "authorized_keys": [key]}]})[0] == sentence


def test_a_private_key_is_not_repeated_in_the_message():
    private = "-----BEGIN OPENSSH PRIVATE KEY-----"
    with pytest.raises(ValidationError) as refused:
        AccessOptions.model_validate({"users": [{**USER, "authorized_keys": [private]}]})
    assert private not in refused.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("options", "login", "problems"),
    [
        (OPTIONS, "admin", []),
        (
            OPTIONS,
            "root",
            [
                (
                    "",
                    "ssh.user is root, and the access role forbids root logins.",
                    "log in as an admin user that may use sudo (`ssh.user`)",
                )
            ],
        ),
        (
            OPTIONS,
            "eve",
            [
                (
                    "removed_users[0]",
                    "eve is the ssh.user rackwright logs in with and cannot be a removed user.",
                    None,
                )
            ],
        ),
        (
            OPTIONS,
            "bob",
            [
                (
                    "users[1].sudo",
                    "bob is the ssh.user rackwright logs in with and must be able to become root.",
                    "set `sudo: true`",
                )
            ],
        ),
        (OPTIONS, "ada", []),
    ],
)
def test_rackwright_is_never_locked_out(options, login, problems):
    assert list(options.problems(access_site(ssh=Ssh(user=login)))) == problems


def test_the_deploy_refuses_a_lock_out_too():
    cluster = access_site(ssh=Ssh(user="eve"))
    plan = planned(cluster, worker(cluster))
    assert "eve is the ssh.user rackwright logs in with and cannot be a removed user." in str(plan.error)


def test_known_hosts_reads_plain_and_hashed_names_and_leaves_out_revoked_keys():
    known = KnownHosts(RECORDED.read_text())
    assert [key.kind for key in known.keys("10.9.0.10")] == ["ssh-ed25519"]
    assert [key.kind for key in known.keys("10.9.0.11")] == ["ecdsa-sha2-nistp256"]  # the other is revoked
    assert [key.key[-8:] for key in known.keys("10.9.0.12")] == ["KOYLRi3Y"]  # stands there hashed
    assert known.keys("gpu1.test.example") == ()  # @cert-authority is not a host key
    assert known.keys("10.9.0.99") == ()


def test_a_name_with_a_port_plain_and_hashed():
    name = "[10.9.0.1]:2222"
    salt = b"0" * 20
    digest = base64.b64encode(hmac.digest(salt, name.encode(), "sha1")).decode()
    hashed = f"|1|{base64.b64encode(salt).decode()}|{digest}"
    for field in (name, hashed):
        known = KnownHosts(f"{field} ssh-ed25519 AAAA\n")
        assert [key.key for key in known.keys(name)] == ["AAAA"]
        assert known.keys("10.9.0.1") == ()


def test_every_node_gets_all_host_keys_under_all_names():
    assert known_hosts.ssh_known_hosts(access_site()) == expected("access/known_hosts")


def test_with_another_port_names_are_known_both_ways():
    cluster = access_site(ssh=Ssh(user="admin", port=2222, known_hosts=RECORDED))
    assert known_hosts.host_names(cluster, cluster.by_name["head1"]) == (
        "head1",
        "head1.test.example",
        "10.9.0.10",
        "[head1]:2222",
        "[head1.test.example]:2222",
        "[10.9.0.10]:2222",
    )
    assert known_hosts.without_key(cluster) == ("head1", "gpu1", "gpu2")  # the file knows port 22 only


def test_a_missing_host_key_is_named_and_stops_nothing(tmp_path):
    cluster = access_site(ssh=Ssh(user="admin", known_hosts=tmp_path / "none"))
    assert known_hosts.ssh_known_hosts(cluster) == expected("access/known_hosts-unknown")


def test_a_changed_known_hosts_file_is_read_again(tmp_path):
    path = tmp_path / "known_hosts"
    cluster = access_site(ssh=Ssh(user="admin", known_hosts=path))
    assert "no host key known: head1" in known_hosts.ssh_known_hosts(cluster)
    path.write_text(RECORDED.read_text())
    assert known_hosts.ssh_known_hosts(cluster) == expected("access/known_hosts")


@pytest.mark.parametrize(
    ("os", "options", "file"),
    [
        (os_release("debian-12"), OPTIONS, "sshd-debian12.conf"),
        (os_release("debian-13"), OPTIONS, "sshd-debian13.conf"),
        (os_release("rocky-9"), AccessOptions(node_to_node=False), "sshd-without-node-to-node.conf"),
    ],
)
def test_sshd_settings(os, options, file):
    cluster = access_site(options, os=os)
    assert sshd_conf(Site(cluster, worker(cluster)), options) == expected(f"access/{file}")


def test_the_other_whole_files():
    cluster = access_site()
    assert render("access/ssh.conf.j2") == expected("access/ssh.conf")
    assert render("access/sudoers.j2", users=("ada", "cy")) == expected("access/sudoers")
    assert render("access/authorized_keys.j2", keys=(KEY,)) == expected("access/authorized_keys")
    assert known_hosts.shosts_equiv(cluster, worker(cluster)) == expected("access/shosts.equiv")


def test_no_user_gets_in_from_a_node_that_is_easier_to_break_into():
    """(target, source): whether the target takes host-based logins from the source."""
    made = {
        name: worker(access_site()).model_copy(
            update={"name": name, "roles": frozenset(map(NodeRole, name.split("-")))}
        )
        for name in ("head", "worker", "login", "storage", "head-worker", "login-worker")
    }
    let_in = {
        target: {source for source in made if trust.lets_in(made[target], made[source])} for target in made
    }
    assert let_in == {
        "head": {"head", "head-worker"},
        "storage": {"head", "head-worker"},
        "head-worker": {"head", "head-worker"},
        "login": {"head", "head-worker", "login"},
        "login-worker": {"head", "head-worker", "login"},
        "worker": set(made),
    }


def test_a_head_names_heads_only_and_a_worker_all_nodes():
    cluster = access_site()
    head = known_hosts.shosts_equiv(cluster, cluster.by_name["head1"]).splitlines()
    assert [line for line in head if not line.startswith("#")] == ["head1", "head1.test.example", "10.9.0.10"]
    assert "head1" in known_hosts.shosts_equiv(cluster, worker(cluster)).splitlines()


def test_sshd_refuses_host_based_logins_of_everyone_who_becomes_root():
    cluster = access_site()
    text = sshd_conf(Site(cluster, worker(cluster)), OPTIONS)
    assert "Match User ada,admin,root\n    HostbasedAuthentication no\n" in text  # bob has no sudo
    assert text.endswith("Match Group sudo,wheel,admin,docker,lxd,disk\n    HostbasedAuthentication no\n")


def test_privileged_groups_are_group_names():
    (sentence,) = errors_in(AccessOptions, {"privileged_groups": ["wheel,!*"]})
    assert sentence.startswith("'wheel,!*' is not a group name")


def _access(plan):
    assert plan.error is None
    return [operation.name for operation in plan.operations if operation.role == "access"]


NAMES = [
    "Install ssh and sudo",
    "Create the folder for declared keys",
    "Create group hpc",
    "Create group ada",
    "Create group adm",
    "Create user ada",
    "Unlock the account of ada",
    "Write the keys of ada",
    "Create group bob",
    "Create user bob",
    "Unlock the account of bob",
    "Write the keys of bob",
    "Lock the account of eve",
    "Write the sudo rules",
    "Write every node's host keys",
    "Write /etc/ssh/shosts.equiv",
    "Write the ssh client settings",
]


def test_what_ubuntu_gets():
    cluster = access_site(os=os_release("ubuntu-22.04"))
    plan = planned(cluster, worker(cluster))
    assert _access(plan) == [*NAMES, "Write sshd's settings", "Start sshd with its settings"]
    assert commands(plan, "Create group hpc") == ("groupadd --gid 4000 hpc",)
    assert commands(plan, "Create group adm") == ("groupadd --system adm",)
    (make,) = commands(plan, "Create user ada")
    assert make == (
        "useradd --uid 3000 --gid ada --groups hpc,adm --shell /bin/bash --home-dir /home/ada "
        "--create-home ada"
    )
    assert commands(plan, "Unlock the account of bob") == ("usermod --expiredate '' bob",)
    assert commands(plan, "Lock the account of eve") == ("usermod --lock --expiredate 1 eve",)
    assert any("ssh.service" in command for command in commands(plan, "Start sshd with its settings"))
    (write,) = commands(plan, "Write the sudo rules")
    assert 'visudo -cqf "$t"' in write
    assert 'chmod 440 "$t"' in write
    (write,) = commands(plan, "Write sshd's settings")
    assert 'sshd -t -f "$t"' in write


def test_what_el9_gets():
    cluster = access_site(os=os_release("rocky-9"))
    plan = planned(cluster, worker(cluster))
    assert _access(plan) == [
        *NAMES,
        "Allow ssh-keysign in SELinux",
        "Write sshd's settings",
        "Start sshd with its settings",
    ]
    assert commands(plan, "Allow ssh-keysign in SELinux") == ("setsebool -P ssh_keysign on",)
    assert any("sshd.service" in command for command in commands(plan, "Start sshd with its settings"))
    (install,) = commands(plan, "Install ssh and sudo")
    assert "install openssh-clients openssh-server sudo" in install


def test_without_node_to_node_nothing_is_trusted():
    options = AccessOptions(node_to_node=False)
    cluster = access_site(options)
    names = _access(planned(cluster, worker(cluster)))
    assert "Write /etc/ssh/shosts.equiv" not in names
    assert "Write the ssh client settings" not in names
