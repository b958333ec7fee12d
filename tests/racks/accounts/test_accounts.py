"""Users of a directory log in, become root by group, run jobs, and are there while the directory is not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from rackwright.roles.accounts.texts import KEYS_PROGRAM
from rackwright.secrets.secret import generate
from rackwright.status import Status
from tests.racks.accounts import directory
from tests.racks.accounts.conftest import (
    ALL_ROLES,
    DEADLINE_SECONDS,
    LOGIN_SECONDS,
    SETTLED,
    log_in,
    log_in_by_host,
    online,
    verdicts,
)
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_SERVERS = "every server of the directory answers with a certificate that the node accepts"
_REFUSED = ("Permission denied", "Connection closed")


@pytest.mark.smoke
def test_a_second_plan_is_empty_and_all_claims_hold(site: Site):
    assert site.cli("plan", str(site.file)).out.strip() == "plan: nothing to change on 4 of 4 nodes"
    assert verdicts(site, roles=ALL_ROLES) == {}


@pytest.mark.smoke
def test_a_user_logs_in_with_the_key_of_the_directory_and_has_a_home(site: Site):
    site.on("worker1", "rm -rf /home/carol")
    login = log_in(site, "carol", "worker1", "id -un; id -Gn; pwd; stat -c '%a %U' .; ls -A")
    assert login.status == 0, login
    user, groups, folder, access, *files = login.said.splitlines()
    assert (user, set(groups.split()), folder) == ("carol", {"carol", "research"}, "/home/carol")
    assert access == "700 carol"
    assert ".profile" in files


@pytest.mark.smoke
def test_a_user_outside_of_the_allowed_groups_is_refused(site: Site):
    assert site.on("worker1", "id -u erin").strip() == "20003"
    login = log_in(site, "erin", "worker1", "id")
    assert login.status == 255
    assert any(word in login.said for word in _REFUSED), login


def test_who_leaves_the_group_is_refused(site: Site):
    member = "dn: cn=research,ou=groups,dc=lab,dc=test\nchangetype: modify\n{}: memberUid\nmemberUid: erin\n"
    directory.change(site, member.format("add"))
    online(site)
    assert log_in(site, "erin", "worker1", "id -un").said == "erin"
    directory.change(site, member.format("delete"))
    online(site)
    assert log_in(site, "erin", "worker1", "id").status == 255


@pytest.mark.smoke
def test_members_of_the_sudo_group_become_root_and_others_do_not(site: Site):
    assert log_in(site, "dave", "worker1", "sudo -n id -u").said.splitlines()[-1] == "0"
    refused = log_in(site, "carol", "worker1", "sudo -n id -u")
    assert refused.status == 1
    assert "password is required" in refused.said or "not in the sudoers" in refused.said


def test_a_user_logs_in_from_node_to_node_and_one_who_becomes_root_does_not(site: Site):
    assert log_in_by_host(site, "carol", "worker1", "id -un").said.splitlines()[-1] == "carol"
    refused = log_in_by_host(site, "dave", "worker1", "id -un")
    assert (refused.status, "Permission denied" in refused.said) == (255, True), refused


def test_a_key_in_the_home_of_one_who_becomes_root_does_not_count(site: Site):
    """Root of any node that mounts the home could have written it."""
    key = site.on("head1", "ssh-keygen -y -f /root/bob.key").strip()
    for user in ("carol", "dave"):
        write = f"umask 077; mkdir -p .ssh; echo {key} >.ssh/authorized_keys"
        assert log_in(site, user, "worker1", write).status == 0
    assert log_in(site, "carol", "worker1", "id -un", key="bob").said == "carol"
    assert log_in(site, "dave", "worker1", "id -un", key="bob").status == 255
    site.on("worker1", "rm -r /home/carol/.ssh /home/dave/.ssh")


def test_the_directory_replaces_nothing_of_the_node(site: Site):
    """It has a bob with another number, a mallory with a system's number, and a group docker."""
    assert site.on("worker1", "id -u bob; id -Gn bob").split()[:2] == ["3001", "bob"]
    assert "research" not in site.on("worker1", "id -Gn bob")
    assert (
        log_in(site, "bob", "worker1", "id").status == 255
    )  # carol's key, which the directory has for its bob
    for name in ("passwd bob", "passwd mallory", "passwd root", "group docker"):
        assert site.on("worker1", f"getent -s sss {name} || echo none").strip() == "none"


@pytest.mark.smoke
def test_a_job_runs_as_a_user_of_the_directory(site: Site):
    said = site.on(
        "head1",
        "cd /; runuser -u carol -- srun -Q -t 1 -N 2 --mpi=none sh -c 'echo $(id -un) $(uname -n)'",
        300,
    )
    assert sorted(said.splitlines()) == ["carol worker1", "carol worker2"]
    assert "carol|research" in site.on("head1", "sacctmgr -nP show user carol format=User,DefaultAccount")


@pytest.mark.parametrize("how", [directory.stopped, directory.hanging], ids=["stopped", "hanging"])
def test_without_the_directory_known_users_log_in_and_none_waits_long(site: Site, how):
    assert log_in(site, "carol", "worker1", "true").status == 0
    with how(site):
        site.on("worker1", "sss_cache -E")
        # the node's own, first: SSSD does not yet know that the directory is gone
        began = time.monotonic()
        site.on("worker1", "runuser -u bob -- id; sshd -T -C user=rack,host=x,addr=127.0.0.1 >/dev/null")
        assert time.monotonic() - began < LOGIN_SECONDS
        assert site.on("worker1", "id -u carol").strip() == "20001"
        first = log_in(site, "carol", "worker1", "id -un")
        assert (first.status, first.said) == (0, "carol")
        assert first.seconds < DEADLINE_SECONDS + LOGIN_SECONDS
        began = time.monotonic()
        assert site.on("worker1", "getent passwd stranger || echo $?").strip() == "2"
        assert time.monotonic() - began < DEADLINE_SECONDS + 1
        assert log_in(site, "dave", "worker1", "sudo -n id -u").said.splitlines()[-1] == "0"
        found = verdicts(site, "worker1")
        assert found["worker1", _SERVERS][0] is Status.FAIL
        status, evidence = found["worker1", SETTLED]
        assert (status, "from the cache" in evidence) == (Status.WARN, True), evidence
        assert set(found) == {("worker1", _SERVERS), ("worker1", SETTLED)}
    online(site)
    assert verdicts(site) == {}


def test_the_first_lookup_waits_no_longer_than_declared(site: Site):
    """On a node whose SSSD has just started, has nothing cached, and finds silent servers."""
    with directory.hanging(site):
        site.on(
            "worker2",
            "systemctl stop sssd; rm -f /var/lib/sss/db/*.ldb /var/lib/sss/mc/*; systemctl start sssd",
        )
        began = time.monotonic()
        assert site.on("worker2", "getent passwd carol || echo $?").strip() == "2"
        assert time.monotonic() - began < DEADLINE_SECONDS + 1
        login = log_in(site, "bob", "worker2", "true")
        assert login.seconds < LOGIN_SECONDS
    online(site)
    assert verdicts(site) == {}


def test_a_node_that_boots_without_the_directory_lets_known_users_in(site: Site):
    assert log_in(site, "carol", "worker1", "true").status == 0
    with directory.stopped(site):
        site.cli("lab", "reboot", "worker1", "--file", str(site.file))
        login = log_in(site, "carol", "worker1", "id -un")
        assert (login.status, login.said) == (0, "carol")


@pytest.mark.parametrize(
    ("names", "stranger", "days", "why"),
    [
        (("head1.lab.test",), True, 30, "its certificate is refused"),
        (("other.lab.test",), False, 30, "its certificate is refused: Hostname mismatch"),
        (("head1.lab.test",), False, -1, "its certificate is refused: certificate has expired"),
    ],
    ids=["another CA", "another name", "expired"],
)
def test_a_server_with_a_wrong_certificate_is_not_asked(site: Site, names, stranger, days, why):
    directory.serve_certificate(
        site, names, ca=generate("site_ca_key") if stranger else None, days=days, restart=True
    )
    try:
        site.on("worker1", "systemctl restart sssd; sss_cache -E")
        assert site.on("worker1", "getent passwd dave2 || echo none").strip() == "none"
        found = verdicts(site, "worker1")
        status, evidence = found["worker1", _SERVERS]
        assert (status, why in evidence) == (Status.FAIL, True), evidence
        assert found["worker1", SETTLED][0] is Status.WARN
    finally:
        directory.serve_certificate(site, ("head1.lab.test", "head1"), restart=True)
    online(site)
    assert verdicts(site) == {}


_FAULTS = {
    "SSSD is running and enabled at boot": "systemctl disable --now -q sssd",
    "SSSD's settings are as declared": "sed -i 's/^access_provider.*/access_provider = permit/' /etc/sssd/sssd.conf",
    "users and groups are looked up in files, then in the directory": (
        "sed -i 's/^passwd:.*/passwd: sss files/' /etc/nsswitch.conf"
    ),
    "PAM asks SSSD who may log in": "sed -i '/pam_sss/d' /etc/pam.d/common-account",
    "sshd looks up keys in the directory for directory users only": (
        "rm /etc/ssh/sshd_config.d/10-rackwright-directory.conf"
    ),
    "the directory's groups that may become root are as declared": "rm /etc/sudoers.d/91-rackwright-directory",
}


@pytest.mark.parametrize("claim", _FAULTS)
def test_verify_finds_a_fault_and_apply_repairs_it(site: Site, claim):
    site.on("worker2", _FAULTS[claim])
    found = verdicts(site, "worker2")
    assert found["worker2", claim][0] is Status.FAIL, found
    site.converge()
    online(site)
    assert verdicts(site) == {}


def test_a_file_that_changes_the_settings_is_found(site: Site):
    site.on("worker2", "echo '[domain/directory]' >/etc/sssd/conf.d/10-more.conf")
    try:
        status, evidence = verdicts(site, "worker2")["worker2", "SSSD's settings are as declared"]
        assert (status, "10-more.conf" in evidence) == (Status.FAIL, True)
    finally:
        site.on("worker2", "rm /etc/sssd/conf.d/10-more.conf")


def test_a_local_user_with_a_number_or_a_name_of_the_directory_is_found(site: Site):
    claim = "local users share no number or name with the directory"
    site.on("worker2", "useradd -u 20077 -M stray")
    try:
        status, evidence = verdicts(site, "worker2")["worker2", claim]
        assert (status, "stray (20077)" in evidence) == (Status.FAIL, True)
    finally:
        site.on("worker2", "userdel stray")
    with local_user(site, "worker2", "erin", 4001):
        status, evidence = verdicts(site, "worker2")["worker2", claim]
        assert (status, "both have erin" in evidence) == (Status.WARN, True)


def test_another_number_on_one_node_is_found(site: Site):
    with local_user(site, "worker2", "carol", 4002):
        status, evidence = verdicts(site)["head1", "users have the same number on every node"]
        assert (status, "4002 on worker2" in evidence) == (Status.FAIL, True)


@contextmanager
def local_user(site: Site, node: str, name: str, uid: int) -> Iterator[None]:
    """A line of passwd: useradd refuses a name that the directory has."""
    site.on(node, f"echo {name}:x:{uid}:{uid}::/:/bin/sh >>/etc/passwd")
    try:
        yield
    finally:
        site.on(node, f"sed -i '/^{name}:/d' /etc/passwd")


def test_an_undeclared_local_account_gets_no_key_of_the_directory(site: Site):
    assert site.on("worker2", f"{KEYS_PROGRAM} carol").startswith("ssh-")
    with local_user(site, "worker2", "carol", 4002):
        assert site.on("worker2", f"{KEYS_PROGRAM} carol") == ""
        assert log_in(site, "carol", "worker2", "id").status == 255


def declaring(site: Site, **options: Any) -> AbstractContextManager[None]:
    """Other options of the role; None takes one away."""

    def change(declared: dict[str, Any]) -> None:
        accounts = declared["roles"]["accounts"]
        accounts.update(options)
        for name in [name for name, value in options.items() if value is None]:
            del accounts[name]

    return site.declaring(change)


def apply_accounts(site: Site) -> None:
    site.apply(0, "--role", "accounts")


def test_the_next_server_answers_where_the_first_is_dead(site: Site):
    """The first of three refuses connections, the second has an address that no machine has; by ldaps this time."""
    servers = ["ldaps://head1.lab.test:1636", "ldaps://10.98.0.200", "ldaps://head1.lab.test"]
    with declaring(site, servers=servers, deadline_seconds=12):
        apply_accounts(site)
        site.on(
            "worker1",
            "systemctl stop sssd; rm -f /var/lib/sss/db/*.ldb /var/lib/sss/mc/*; systemctl start sssd",
        )
        began = time.monotonic()
        assert site.on("worker1", "id -u carol").strip() == "20001"
        assert time.monotonic() - began < 12 + 1
        assert log_in(site, "carol", "worker1", "id -un").said == "carol"
        status, evidence = verdicts(site, "worker1")["worker1", _SERVERS]
        assert status is Status.FAIL
        assert "ldaps://head1.lab.test:1636: Connection refused" in evidence
        assert "ldaps://10.98.0.200: " in evidence
        assert "(ldaps://head1.lab.test answers)" in evidence
    apply_accounts(site)
    online(site)


def test_a_filter_and_expired_accounts_decide_who_logs_in(site: Site):
    entry = "dn: uid={},ou=people,dc=lab,dc=test\nchangetype: modify\n"
    directory.change(
        site,
        f"{entry.format('erin')}add: objectClass\nobjectClass: shadowAccount\n-\nadd: shadowExpire\nshadowExpire: 1\n\n"
        f"{entry.format('carol')}add: description\ndescription: hpc\n\n"
        f"{entry.format('erin')}add: description\ndescription: hpc\n",
    )
    with declaring(site, allowed_groups=None, access_filter="(description=hpc)", expiry="shadow"):
        apply_accounts(site)
        online(site)
        assert log_in(site, "carol", "worker1", "id -un").said == "carol"
        for refused in ("dave", "erin"):  # one does not match, one is expired
            assert log_in(site, refused, "worker1", "id").status == 255
        directory.change(site, f"{entry.format('erin')}delete: shadowExpire\n")
        online(site)
        assert log_in(site, "erin", "worker1", "id -un").said == "erin"
        with directory.stopped(site):
            assert log_in(site, "carol", "worker1", "id -un").said == "carol"
            assert log_in(site, "dave", "worker1", "id").status == 255
    apply_accounts(site)
    online(site)
    assert verdicts(site) == {}


def test_an_older_release_does_the_same(site: Site):
    """Debian 12: SSSD 2.8, which takes its settings from a file with mode 600 alone."""
    assert site.on("old1", "stat -c '%a %U:%G' /etc/sssd/sssd.conf").strip() == "600 root:root"
    site.on("old1", "rm -rf /home/carol")
    login = log_in(site, "carol", "old1", "id -un; stat -c %a .; . /etc/os-release; echo $VERSION_ID")
    assert login.said.split() == ["carol", "700", "12"]
    assert log_in(site, "erin", "old1", "id").status == 255
    assert log_in(site, "dave", "old1", "sudo -n id -u").said.splitlines()[-1] == "0"
    with directory.hanging(site):
        site.on("old1", "sss_cache -E")
        assert lookup_seconds(site, "old1", "carol") < DEADLINE_SECONDS + 1
        login = log_in(site, "carol", "old1", "id -un")
        assert (login.status, login.said) == (0, "carol")


def lookup_seconds(site: Site, node: str, user: str) -> float:
    """How long a lookup takes by the node's own clock."""
    began, ended = site.on(node, f"date +%s.%N; getent passwd {user} >/dev/null; date +%s.%N").split()
    return float(ended) - float(began)


def test_groups_that_name_members_by_dn_and_groups_in_groups(site: Site):
    assert "labs" not in site.on("worker1", "id -Gn carol").split()
    with declaring(site, kind="rfc2307bis", allowed_groups=["labs"], make_home=False):
        apply_accounts(site)
        online(site)
        assert operations(site.plan(0, role="accounts")) == set()
        assert site.on("worker1", "grep -l mkhomedir /etc/pam.d/* || echo none").strip() == "none"
        assert verdicts(site) == {}
        assert {"research", "labs"} <= set(site.on("worker1", "id -Gn carol").split())
        assert log_in(site, "carol", "worker1", "id -un").said == "carol"
        assert log_in(site, "erin", "worker1", "id").status == 255
    apply_accounts(site)
    online(site)


def test_active_directory_s_schema_with_numbers_from_sids(site: Site):
    """An imitation: it has no tokenGroups, by which SSSD finds the groups of a user, so access is by a filter."""
    windows = {
        "kind": "ad",
        "numbers": "sid",
        "base": directory.WINDOWS,
        "user_base": f"ou=Staff Members,{directory.WINDOWS}",
        "allowed_groups": None,
        "access_filter": "(objectClass=user)",
        "expiry": "ad",
        "sudo_groups": None,
        "ssh_key_attribute": "altSecurityIdentities",
        "shell": "/bin/bash",
        "min_id": 200_000,
        "max_id": 2_000_200_000,
        "probe_user": "frank",
    }
    with declaring(site, **windows):
        apply_accounts(site)
        online(site, "frank")
        numbers = {site.on(node, "id -u Frank; id -g frank") for node in ("head1", "worker1", "old1")}
        assert len(numbers) == 1, numbers
        assert log_in(site, "frank", "worker1", "id -un; pwd").said.split()[-2:] == ["frank", "/home/frank"]
        assert log_in(site, "grace", "worker1", "id").status == 255  # her account is disabled
        assert verdicts(site, "worker1", "old1").keys() <= {
            ("worker1", "users known to the workload manager exist")
        }
    apply_accounts(site)
    online(site)
    assert verdicts(site) == {}


def test_cached_entries_of_another_directory_are_dropped(site: Site):
    with declaring(site, max_id=20001):
        apply_accounts(site)
        assert site.on("worker1", "id -u carol; id -u dave 2>/dev/null || echo none").split() == [
            "20001",
            "none",
        ]
    apply_accounts(site)
    online(site)
    assert site.on("worker1", "id -u dave").strip() == "20002"
