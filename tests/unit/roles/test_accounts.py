"""The accounts role: options, what it writes and in which order, and what it refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.errors import SecretsError
from rackwright.osfamily.known import RELEASES, os_release
from rackwright.roles.access.options import AccessOptions, AdminUser
from rackwright.roles.accounts import texts
from rackwright.roles.accounts.options import SSHD_CONF, SUDOERS, AccountsOptions
from rackwright.roles.accounts.pam import stack
from rackwright.roles.integrity.declared import declared
from rackwright.roles.integrity.options import IntegrityOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.sites import expected, site, worker

GIVEN = {
    "servers": ["ldaps://ldap1.example.com", "ldaps://ldap2.example.com:1636"],
    "base": "dc=example,dc=com",
    "bind": {"dn": "cn=reader,dc=example,dc=com", "stored_as": "directory_reader"},
    "allowed_groups": ["hpc", "ops"],
    "sudo_groups": ["ops"],
}
OPTIONS = AccountsOptions.model_validate(GIVEN)
ACCESS = AccessOptions(users=(AdminUser(name="ada", uid=3000, sudo=True),))
PASSWORD = "reader's pass-word: %1 #2; 3=4"


def made(options=OPTIONS, **more):
    roles = {"access": ACCESS, "site_ca": SiteCaOptions(), "accounts": options}
    changes = {key: more.pop(key) for key in ("os", "path") if key in more}
    return site({**roles, **more}, **changes)


def changed(**given):
    return AccountsOptions.model_validate({**GIVEN, **given})


def sssd_conf(options, cluster=None):
    cluster = cluster or made(options)
    return texts.sssd_conf(cluster, worker(cluster), options, PASSWORD if options.bind else None)


def test_sssd_conf():
    assert sssd_conf(OPTIONS) == expected("accounts/sssd.conf")


def test_sssd_conf_of_active_directory():
    options = AccountsOptions.model_validate(
        {
            "servers": ["ldap://dc1.ad.example.com"],
            "base": "dc=ad,dc=example,dc=com",
            "user_base": "ou=Staff Members,dc=ad,dc=example,dc=com",
            "group_base": "ou=Groups,dc=ad,dc=example,dc=com",
            "kind": "ad",
            "numbers": "sid",
            "access_filter": "(memberOf=cn=hpc,ou=Groups,dc=ad,dc=example,dc=com)",
            "expiry": "ad",
            "ssh_key_attribute": "altSecurityIdentities",
            "shell": "/bin/bash",
            "public_ca": True,
        }
    )
    assert sssd_conf(options) == expected("accounts/sssd-ad.conf")


def test_sssd_conf_for_everyone_without_keys():
    options = AccountsOptions(
        servers=("ldap://ldap1",), base="dc=x", everyone=True, ssh_key_attribute=None, home=None
    )
    text = sssd_conf(options)
    assert "access_provider = permit\n" in text
    assert "services = nss, pam\n" in text
    assert not any(word in text for word in ("override_homedir", "authtok", "ssh"))


def test_sshd_s_settings_and_sudo_rights():
    cluster = made()
    assert texts.sshd_conf(cluster, worker(cluster), OPTIONS) == (
        "# Written by rackwright. Local users log in without a lookup in the directory.\n"
        "Match User *,!root,!admin,!rackwright-drift,!ada\n"
        "    AuthorizedKeysCommand /usr/libexec/rackwright/directory-keys\n"
        "    AuthorizedKeysCommandUser nobody\n"
        "# They may become root, so root of another node must not log in as one of them: neither host-based nor with "
        "a key that\n# it wrote into a shared home.\n"
        "Match User *,!root,!admin,!rackwright-drift,!ada Group ops\n"
        "    HostbasedAuthentication no\n"
        "    AuthorizedKeysFile /etc/ssh/authorized_keys.d/%u\n"
    )
    assert texts.sudoers(OPTIONS) == (
        "# Written by rackwright. Groups of the directory. Nodes take no passwords, so sudo asks for none.\n"
        "%ops ALL=(ALL:ALL) NOPASSWD: ALL\n"
    )
    neither = changed(sudo_groups=[], ssh_key_attribute=None)
    assert (texts.sshd_conf(cluster, worker(cluster), neither), texts.sudoers(neither)) == (None, None)


@pytest.mark.parametrize(
    ("getent", "printed"),
    [("exit 0", ""), ("exit 2", "asked for ubuntu\n"), ("exit 3", ""), ("exit 127", "")],
    ids=["a local account", "a user of the directory", "no answer", "no getent"],
)
def test_a_local_account_gets_no_key_of_the_directory(tmp_path, getent, printed):
    """Declared or not, e.g. the installer's `ubuntu`: an entry of this name would log in as the local user."""
    for name, lines in (("getent", f'echo "$@" >{tmp_path}/asked; {getent}'), ("sss", 'echo "asked for $1"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    program = tmp_path / "directory-keys"
    text = texts.keys_program(OPTIONS) or ""
    text = text.replace("/usr/bin/getent", f"{tmp_path}/getent")
    program.write_text(text.replace("/usr/bin/sss_ssh_authorizedkeys", f"{tmp_path}/sss"))
    done = subprocess.run(["sh", program, "ubuntu"], capture_output=True, text=True, timeout=10, check=True)
    assert (done.stdout, (tmp_path / "asked").read_text()) == (printed, "-s files passwd -- ubuntu\n")


def test_without_keys_of_the_directory_no_program_asks_for_them():
    assert texts.keys_program(changed(ssh_key_attribute=None)) is None


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
@pytest.mark.parametrize("make_home", [True, False])
def test_it_is_planned_on_every_release(os, make_home):
    cluster = made(changed(make_home=make_home), os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "accounts"]
    apt = os.family.package_tool == "apt"
    assert names == [
        "Install SSSD",
        "Write SSSD's settings",
        "Mask sssd-nss.socket",
        "Mask sssd-pam.socket",
        "Mask sssd-pam-priv.socket",
        "Mask sssd-ssh.socket",
        "Clear entries cached from another directory",
        "Start SSSD with its settings",
        *(
            ["Install the service that creates homes", "Start the service that creates homes"]
            if make_home and not apt
            else []
        ),
        *(["Write the PAM profile that creates homes"] if make_home and apt else []),
        "Add SSSD to PAM",
        *(["Look up users in files, then in the directory"] if apt else []),
        "Create /usr/libexec/rackwright",
        "Write the program that looks up keys in the directory",
        "Write the sshd settings for directory users",
        "Write the sudo rules for directory groups",
    ]
    written = content(plan, texts.CONF) or ""
    assert "ldap_uri = ldaps://ldap1.example.com, ldaps://ldap2.example.com:1636\n" in written
    assert PASSWORD not in written
    assert "sssctl config-check" in commands(plan, "Write SSSD's settings")[0]


@pytest.mark.parametrize(
    ("os", "access"),
    [("debian-12", "600 root:root"), ("debian-13", "640 root:root"), ("rocky-10", "640 root:sssd")],
)
def test_access_of_sssd_conf_is_what_its_unit_makes_of_it(os, access):
    cluster = made(os=os_release(os))
    plan = planned(cluster, worker(cluster))
    changes = [change for entry in plan.operations for change in entry.changes if change.target == texts.CONF]
    assert next(change.after for change in changes).startswith(f"file {access}")


def test_the_time_of_all_servers_is_within_the_deadline():
    assert [
        changed(servers=[f"ldaps://s{n}" for n in range(count)]).server_seconds for count in (1, 2, 3)
    ] == [4, 2, 2]
    assert changed(deadline_seconds=3).server_seconds == 1


def test_the_password_is_supplied_and_never_generated():
    assert OPTIONS.supplied_secrets == ("directory_reader",)
    assert OPTIONS.secrets == ()
    assert changed(bind=None).supplied_secrets == ()


@pytest.mark.parametrize("password", ["", " a", "a ", "a\nldap_tls_reqcert = never", "a\tb\x00"])
def test_a_password_that_the_file_cannot_hold_is_refused(password):
    cluster = made()
    with pytest.raises(SecretsError) as refused:
        texts.sssd_conf(cluster, worker(cluster), OPTIONS, password)
    assert "SSSD cannot read it from its file" in str(refused.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"servers": ["ldaps://a", "ldap://b"]}, "The servers use both schemes, ldap and ldaps."),
        ({"servers": ["ldaps://a", "ldaps://a"]}, "A server is listed more than once."),
        ({"servers": ["http://a"]}, "Not the URI of an LDAP server."),
        ({"servers": ["ldapi:///"]}, "Not the URI of an LDAP server."),
        ({"servers": ["ldap1.example.com"]}, "Not the URI of an LDAP server."),
        ({"servers": ["ldaps://a:99999"]}, "Not a valid port."),
        ({"servers": ["ldaps://a/dc=x"]}, None),
        ({"servers": ["ldaps://reader:secret@a"]}, None),
        ({"base": "example.com"}, None),
        ({"base": "dc=a\\,b"}, None),
        ({"base": "dc=a?sub?(uid=*)"}, None),
        ({"ca_file": "ca.pem", "public_ca": True}, "`ca_file` and `public_ca` exclude each other."),
        ({"allowed_groups": []}, "Who may log in is not declared."),
        ({"everyone": True}, "Of `allowed_groups`, `access_filter` and `everyone` only one can be declared."),
        ({"expiry": "shadow"}, "`expiry` works only with `access_filter`."),
        ({"allowed_groups": [], "access_filter": "uid=a"}, "Not an LDAP filter in parentheses."),
        ({"allowed_groups": [], "access_filter": "(uid=a)(uid=b)"}, "Not an LDAP filter in parentheses."),
        ({"allowed_groups": [], "access_filter": "((uid=a)"}, "Not an LDAP filter in parentheses."),
        ({"numbers": "sid"}, "Only Active Directory has SIDs."),
        ({"min_id": 20000, "max_id": 10000}, "`max_id` 10000 is below `min_id` 20000."),
        ({"deadline_seconds": 2}, "2 s is too short for 2 servers, each of which takes a second."),
        ({"home": "/home/all"}, "All users would have one home."),
        ({"home": "/home/../%u"}, "Not the absolute path of a home."),
        ({"home": "home/%u"}, "Not the absolute path of a home."),
        ({"min_id": 500}, "Input should be greater than or equal to 1000"),
        ({"sudo_groups": ["a b"]}, None),
    ],
)
def test_refused(given, sentence):
    errors = errors_in(AccountsOptions, {**GIVEN, **given})
    assert sentence in (None, errors[0])


def test_numbers_of_declared_users_are_outside():
    cluster = made(changed(min_id=2000))
    (found,) = worker(cluster).options["accounts"].problems(cluster)
    assert found == (
        "min_id",
        "The declared user ada has uid 3000, which is one of the directory's numbers (2000 to 2147483647).",
        "choose `min_id` and `max_id` so that declared users are outside",
    )
    assert list(OPTIONS.problems(made())) == []


def test_a_ca_is_needed(tmp_path):
    alone = site({"accounts": OPTIONS})
    (found,) = OPTIONS.problems(alone)
    assert found[1] == (
        "Which CA signed the servers' certificates is not declared: head1 does not run the role site_ca."
    )
    public = changed(public_ca=True)
    assert list(public.problems(site({"accounts": public}))) == []
    given = changed(ca_file="ca.pem")
    there = site({"accounts": given}, path=tmp_path / "cluster.yaml")
    assert [problem[1] for problem in given.problems(there)] == [
        "The certificate ca.pem cannot be read: no such file or directory."
    ]
    (tmp_path / "ca.pem").write_text("nothing")
    assert [problem[1] for problem in given.problems(there)] == [
        "ca.pem holds no certificates: it contains something other than certificates."
    ]


def test_names_of_the_nodes_own_groups_are_refused():
    bad = changed(allowed_groups=["docker"], sudo_groups=["wheel"])
    assert [(path, sentence) for path, sentence, _ in bad.problems(made(bad))] == [
        (
            f"{field}[0]",
            f"{name} is a local group of the nodes, which ignore a directory group with this name.",
        )
        for field, name in (("allowed_groups", "docker"), ("sudo_groups", "wheel"))
    ]


def test_one_directory_for_all_nodes():
    cluster = made()
    other = changed(min_id=50_000)
    nodes = tuple(
        node.with_options({**node.options, "accounts": other}) if node.name == "gpu2" else node
        for node in cluster.nodes
    )
    mixed = type(cluster)(**{**{name: getattr(cluster, name) for name in FIELDS}, "nodes": nodes})
    assert [problem[:2] for problem in OPTIONS.problems(mixed)] == [
        ("min_id", "`min_id` differs on gpu2: users would have other numbers there, or not exist.")
    ]


FIELDS = ("name", "domain", "path", "sha256", "networks", "ssh", "mirrors", "burnin")


def test_what_is_rarely_meant_is_warned_of():
    odd = changed(bind=None, sudo_groups=["root-team"])
    alone = site({"accounts": odd})
    assert [(path, sentence.split(",")[0]) for path, sentence, _ in odd.warnings(alone)] == [
        ("bind", "The nodes read the directory without a login"),
        ("sudo_groups[0]", "Members of root-team may become root but"),
        ("", "head1 does not run the role access: its sshd may take passwords of the directory's users."),
    ]
    assert list(OPTIONS.warnings(made())) == []


def test_its_files_are_no_drift_to_the_role_integrity():
    cluster = made(integrity=IntegrityOptions())
    right = declared(cluster, worker(cluster), IntegrityOptions())
    assert {SUDOERS, "/etc/sudoers.d/90-rackwright"} <= right.sudoers
    assert SSHD_CONF in right.sshd_files
    without = site({"access": ACCESS, "integrity": IntegrityOptions()})
    assert SUDOERS not in declared(without, worker(without), IntegrityOptions()).sudoers


def run(script, tmp_path: Path, **environment):
    return subprocess.run(
        ["sh", "-c", script.replace("/etc/", f"{tmp_path}/")],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **environment},
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("files", "files sss"),
        ("sss files systemd", "files sss systemd"),
        ("compat systemd", "compat sss systemd"),
        ("files systemd # sss", "files sss systemd # sss"),
    ],
)
def test_the_shell_puts_the_directory_after_files(tmp_path, before, after):
    path = tmp_path / "nsswitch.conf"
    path.write_text(
        f"# a comment\npasswd:         {before}\ngroup:\t{before}\nshadow: files\nhosts: files dns\n"
    )
    assert run(texts.NSSWITCH_READ, tmp_path).stdout.strip() != texts.NSSWITCH_RIGHT
    assert run(texts.NSSWITCH_WRITE, tmp_path).returncode == 0
    assert run(texts.NSSWITCH_READ, tmp_path).stdout.strip() == texts.NSSWITCH_RIGHT
    lines = path.read_text().splitlines()
    assert lines[1].split(maxsplit=1)[1].split("#")[0].split() == after.split("#")[0].split()
    assert lines[3:] == ["shadow: files", "hosts: files dns"]


AUTHSELECT = """\
#!/bin/sh
state={state}
case "$1" in
  check) [ -s $state ] ;;
  current) cat $state ;;
  select) shift; for one; do [ "$one" = --force ] || printf '%s ' "$one"; done | sed 's/ $//' >$state ;;
esac
"""


@pytest.mark.parametrize(
    ("before", "make_home", "after"),
    [
        ("", True, "sssd with-mkhomedir"),
        ("", False, "sssd"),
        ("local with-silent-lastlog", True, "sssd with-mkhomedir"),
        ("sssd with-faillock", True, "sssd with-faillock with-mkhomedir"),
        ("sssd with-faillock with-mkhomedir", False, "sssd with-faillock"),
    ],
)
def test_the_shell_selects_the_profile_and_keeps_features(tmp_path, before, make_home, after):
    state = tmp_path / "state"
    state.write_text(before)
    tool = tmp_path / "authselect"
    tool.write_text(AUTHSELECT.format(state=state))
    tool.chmod(0o755)
    chosen = stack(os_release("rocky-9").family, make_home=make_home)
    assert run(chosen.read, tmp_path).stdout.strip() != chosen.want
    assert run(chosen.write, tmp_path).returncode == 0
    assert state.read_text() == after
    assert run(chosen.read, tmp_path).stdout.strip() == chosen.want
