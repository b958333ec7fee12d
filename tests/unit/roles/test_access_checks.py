"""The access role's checks: each seen to pass, to fail and not to know. Outputs are of Debian 13."""

from __future__ import annotations

import pytest

from rackwright.model.settings import Ssh
from rackwright.roles.access import known_hosts
from rackwright.roles.access.options import AccessOptions
from rackwright.roles.access.verify import (
    CHECKS,
    parse_offered_methods,
    parse_sshd_settings,
    parse_sudo_rights,
)
from tests.unit.roles.access_site import RECORDED, access_site
from tests.unit.roles.fake_facts import account, file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import expected, worker

CLUSTER = access_site()
SSHD = (RECORDED.parent / "sshd-T").read_text()
ASK_SSHD = "sshd -T -C user=root,host=localhost,addr=127.0.0.1"
ASK_METHODS, ASK_ORDINARY = (
    "ssh -F none -o BatchMode=yes -o ConnectTimeout=10 -o PreferredAuthentications=none "
    f"-o UserKnownHostsFile=/etc/ssh/ssh_known_hosts -p 22 -l {user} 10.9.0.11 true"
    for user in ("admin", "nobody")
)
SUDO_ADA = """\
Matching Defaults entries for ada on gpu1:
    env_reset, mail_badpass, use_pty

User ada may run the following commands on gpu1:
    (ALL : ALL) NOPASSWD: ALL
"""
REFUSED = "{0}@{1}: Permission denied (publickey,hostbased).\n"
NO_SHELL = (
    1,
    "This account is currently not available.\n",
    "Could not chdir to home directory /nonexistent: No such file or directory\n",
)
GROUPS = "getent group sudo wheel admin docker lxd disk"
HOST_KEYS = tuple(f"/etc/ssh/ssh_host_{kind}_key" for kind in ("rsa", "ecdsa", "ed25519"))


def _asked_for(user):
    return ASK_SSHD.replace("root", user, 1)


NO_HOSTBASED = SSHD.replace("hostbasedauthentication yes", "hostbasedauthentication no")
assert NO_HOSTBASED != SSHD


def _login(user, target):
    return (
        f"runuser -u {user} -- ssh -o BatchMode=yes -o ConnectTimeout=10 -o ConnectionAttempts=1 "
        f"-o PreferredAuthentications=hostbased -o UserKnownHostsFile=none -p 22 {target} uname -n"
    )


LOGINS = {_login("nobody", target): NO_SHELL for target in ("gpu2", "gpu2.test.example", "10.9.0.12")}
REFUSALS = {
    _login(user, target): (255, "", f"{user}@{target}: Permission denied (publickey).\n")
    for user, target in (
        ("root", "gpu2"),
        ("admin", "gpu2"),
        ("root", "head1"),
        ("admin", "head1"),
        ("nobody", "head1"),
    )
}

BOBS_KEY = expected("access/authorized_keys").splitlines(keepends=True)[0]
HEALTHY = {
    **{_asked_for(user): NO_HOSTBASED for user in ("ada", "admin", "cy")},
    ASK_SSHD: NO_HOSTBASED,
    GROUPS: (2, "sudo:x:27:cy\ndisk:x:6:\n", ""),  # this node has no wheel, admin, docker and lxd
    **{key: value for path in HOST_KEYS for key, value in file(path, "", "600").items()},
    ASK_METHODS: (255, "", "admin@10.9.0.11: Permission denied (publickey).\n"),
    ASK_ORDINARY: (255, "", REFUSED.format("nobody", "10.9.0.11")),
    **unit("ssh.service"),
    **account("ada", 3000, ("adm", "hpc")),
    **account("bob", 3001),
    "getent shadow ada": "ada:!:20777:0:99999:7:::\n",
    "getent shadow bob": "bob:!:20777:0:99999:7:::\n",
    **file("/etc/ssh/authorized_keys.d/ada", expected("access/authorized_keys")),
    **file("/etc/ssh/authorized_keys.d/bob", BOBS_KEY),
    "getent shadow eve": "eve:!:20777:0:99999:7::1:\n",
    **file("/etc/ssh/authorized_keys.d/eve", None),
    "visudo -c": "/etc/sudoers: parsed OK\n/etc/sudoers.d/90-rackwright: parsed OK\n",
    "env LC_ALL=C sudo -l -U ada": SUDO_ADA,
    "env LC_ALL=C sudo -l -U admin": SUDO_ADA.replace("ada", "admin"),
    "env LC_ALL=C sudo -l -U bob": "User bob is not allowed to run sudo on gpu1.\n",
    **file("/etc/ssh/ssh_known_hosts", expected("access/known_hosts")),
    **LOGINS,
    **REFUSALS,
    **file("/etc/ssh/shosts.equiv", expected("access/shosts.equiv")),
}

METHODS = "the running sshd offers only the declared login methods"
RUNS = "sshd is running and enabled at boot"
USERS = "admin users exist as declared"
RIGHTS = "sudo rights are exactly those declared"
NODE_TO_NODE = "users log in from node to node without prompts"
PRIVILEGED = "users who may become root do not log in from node to node without a key"
NO_WAY_UP = "heads refuse host-based logins from this node"
SET_TO_REFUSE = "sshd refuses host-based logins of users who may become root"
WEAK = "sshd offers no weak algorithm"
PRIVATE_KEYS = "only root can read sshd's private keys"
REMOVED = "removed users are locked out"


def _set(key, value):
    lines = [f"{key} {value}" if line.startswith(f"{key} ") else line for line in NO_HOSTBASED.splitlines()]
    assert lines != NO_HOSTBASED.splitlines()
    return {ASK_SSHD: "\n".join(lines)}


FAILURES = [
    (
        "sshd is configured to refuse root",
        _set("permitrootlogin", "prohibit-password"),
        "PermitRootLogin is prohibit-password, not no",
    ),
    (
        "sshd is configured to refuse passwords",
        _set("passwordauthentication", "yes"),
        "PasswordAuthentication is yes, not no",
    ),
    (
        "sshd is configured to refuse empty passwords",
        _set("permitemptypasswords", "yes"),
        "PermitEmptyPasswords is yes, not no",
    ),
    (
        "sshd is configured to refuse keyboard-interactive logins",
        _set("kbdinteractiveauthentication", "yes"),
        "KbdInteractiveAuthentication is yes, not no",
    ),
    ("sshd is configured not to forward X11", _set("x11forwarding", "yes"), "X11Forwarding is yes, not no"),
    (
        "sshd accepts many logins at once",
        _set("maxstartups", "10:30:100"),
        "MaxStartups is 10:30:100, not 1000:30:2000",
    ),
    ("sshd accepts many logins at once", _set("maxsessions", "10"), "MaxSessions is 10, not 64"),
    (
        METHODS,
        {ASK_METHODS: (255, "", "x: Permission denied (publickey,password,hostbased).\n")},
        "sshd offers hostbased, password to admin",
    ),
    (
        METHODS,
        {ASK_ORDINARY: (255, "", "x: Permission denied (publickey).\n")},
        "sshd does not offer hostbased to nobody",
    ),
    (
        METHODS,
        {ASK_METHODS: (255, "", REFUSED.format("admin", "10.9.0.11"))},
        "sshd offers hostbased to admin",
    ),
    (METHODS, {ASK_METHODS: (0, "", "")}, "admin logs in without any credential"),
    (
        RUNS,
        unit("ssh.service", state="disabled"),
        "ssh.service is active but disabled: it does not start at boot",
    ),
    (
        RUNS,
        unit("ssh.service", state="masked", load="masked"),
        "ssh.service is masked: nothing can start it",
    ),
    (USERS, account("bob", None), "the user bob does not exist"),
    (
        USERS,
        account("ada", 1001, ("adm", "hpc")),
        "ada has uid 1001 and shell /bin/bash, not 3000 and /bin/bash",
    ),
    (USERS, {"getent shadow bob": "bob:!:20777:0:99999:7::1:\n"}, "the account of bob is locked"),
    (USERS, account("ada", 3000), "ada is not in adm, hpc"),
    (
        "admin users' keys are in place",
        file("/etc/ssh/authorized_keys.d/bob", BOBS_KEY + "ssh-ed25519 AAAA eve\n"),
        "/etc/ssh/authorized_keys.d/bob is not as declared: ssh-ed25519 AAAA eve",
    ),
    (REMOVED, {"getent shadow eve": "eve:!:20777:0:99999:7:::\n"}, "the account of eve is not locked"),
    (REMOVED, file("/etc/ssh/authorized_keys.d/eve", BOBS_KEY), "the keys of eve are still there"),
    (
        "sudo's configuration is valid",
        {"visudo -c": (1, "", "/etc/sudoers.d/x:1:5: syntax error\n")},
        "visudo reports an error: /etc/sudoers.d/x:1:5: syntax error",
    ),
    (RIGHTS, {"env LC_ALL=C sudo -l -U bob": SUDO_ADA}, "bob may become root, but is declared without sudo"),
    (
        RIGHTS,
        {"env LC_ALL=C sudo -l -U admin": "User admin is not allowed to run sudo on gpu1.\n"},
        "admin may not become root without a password",
    ),
    (
        RIGHTS,
        {"env LC_ALL=C sudo -l -U ada": SUDO_ADA.replace("NOPASSWD: ", "")},
        "ada may not become root without a password",
    ),
    (
        "every node's host key is known",
        file("/etc/ssh/ssh_known_hosts", expected("access/known_hosts-unknown")),
        "/etc/ssh/ssh_known_hosts is not as declared: # no host key known: head1",
    ),
    (
        NODE_TO_NODE,
        {_login("nobody", "gpu2.test.example"): (255, "", REFUSED.format("nobody", "gpu2.test.example"))},
        (
            "nobody cannot log in to gpu2.test.example without a prompt: "
            "nobody@gpu2.test.example: Permission denied (publickey,hostbased)."
        ),
    ),
    (
        NODE_TO_NODE,
        {_login("nobody", "10.9.0.12"): (255, "", "Host key verification failed.\n")},
        "nobody cannot log in to 10.9.0.12 without a prompt: Host key verification failed.",
    ),
    (NODE_TO_NODE, {_login("nobody", "gpu2"): "gpu1\n"}, "nobody logged in to gpu2 but reached gpu1"),
    (
        PRIVILEGED,
        {_login("root", "gpu2"): "gpu2\n"},
        "root logs in to gpu2 by a host-based login from this node",
    ),
    (
        PRIVILEGED,
        {_login("admin", "head1"): "head1\n"},
        "admin logs in to head1 by a host-based login from this node",
    ),
    (
        NO_WAY_UP,
        {_login("nobody", "head1"): NO_SHELL},
        "nobody logs in to head1 by a host-based login from this node",
    ),
    (
        NO_WAY_UP,
        {_login("nobody", "head1"): (255, "", "Connection closed by 10.9.0.10 port 22\n")},
        "nobody logs in to head1 by a host-based login from this node",
    ),
    (
        SET_TO_REFUSE,
        {_asked_for("admin"): SSHD},
        "sshd accepts host-based logins of admin, who may become root here: root of another node could log in as admin",
    ),
    (
        SET_TO_REFUSE,
        {_asked_for("cy"): SSHD},  # a member of the group sudo whom the cluster file does not name
        "sshd accepts host-based logins of cy, who may become root here: root of another node could log in as cy",
    ),
    (
        WEAK,
        _set("macs", "hmac-sha2-512,hmac-sha1,umac-64@openssh.com"),
        "sshd accepts hmac-sha1, umac-64@openssh.com (macs)",
    ),
    (WEAK, _set("ciphers", "aes256-ctr,3des-cbc"), "sshd accepts 3des-cbc (ciphers)"),
    (
        WEAK,
        _set("kexalgorithms", "curve25519-sha256,diffie-hellman-group-exchange-sha1"),
        "sshd accepts diffie-hellman-group-exchange-sha1 (kexalgorithms)",
    ),
    (
        PRIVATE_KEYS,
        file(HOST_KEYS[1], "", "644"),
        f"{HOST_KEYS[1]} is a file with 644 root:root, not a file that only root can read (600 root:root)",
    ),
    (
        "nodes trusted for host-based logins are as declared",
        file("/etc/ssh/shosts.equiv", expected("access/shosts.equiv") + "evil1\n"),
        "/etc/ssh/shosts.equiv is not as declared: evil1",
    ),
]


EXTRA = "sshd's file has the declared extra lines"  # seen to fail in test_extra_lines.py


def test_every_check_was_seen_to_fail():
    assert {case[0] for case in FAILURES} | {EXTRA} == {check.name for check in CHECKS}


@pytest.mark.parametrize("name", claimed("access", CHECKS, worker(CLUSTER)))
def test_a_healthy_node_passes(name):
    result = judged("access", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost(HEALTHY))
    assert (result.status, bool(result.evidence)) == ("PASS", True), result.evidence


@pytest.mark.parametrize(("name", "wrong", "evidence"), FAILURES)
def test_a_false_claim_fails(name, wrong, evidence):
    result = judged("access", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **wrong}))
    assert (result.status, result.evidence) == ("FAIL", evidence)


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_node_without_tools_is_unknown(name):
    assert judged("access", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({})).status == "UNKNOWN"


@pytest.mark.parametrize("answer", ["", "rubbish\n", (1, "", "input/output error\n"), (255, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    host = FakeHost({}, always=answer)
    assert judged("access", CHECKS, name, CLUSTER, worker(CLUSTER), host).status in ("FAIL", "UNKNOWN")


@pytest.mark.parametrize(
    "printed",
    [
        "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.9.0.12 port 22",
        "connect to host gpu2 port 22: Connection refused",
        "No route to host",
    ],
)
@pytest.mark.parametrize("name", [NODE_TO_NODE, PRIVILEGED, NO_WAY_UP])
def test_a_neighbour_that_is_down_is_unknown_and_not_this_nodes_fault(name, printed):
    down = {line: (255, "", f"ssh: {printed}\n") for line in HEALTHY if "runuser" in line}
    result = judged("access", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **down}))
    assert result.status == "UNKNOWN"
    assert printed.splitlines()[-1] in result.evidence


def test_a_login_stopped_by_a_host_key_proves_nothing():
    answers = {**HEALTHY, _login("root", "gpu2"): (255, "", "Host key verification failed.\n")}
    found = judged("access", CHECKS, PRIVILEGED, CLUSTER, worker(CLUSTER), FakeHost(answers))
    assert found.status == "UNKNOWN"


def test_a_login_that_needs_a_job_was_accepted_by_sshd():
    closed = dict.fromkeys(LOGINS, (255, "", "Connection closed by 10.9.0.12 port 22\n"))
    result = judged("access", CHECKS, NODE_TO_NODE, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **closed}))
    assert (result.status, result.evidence) == (
        "PASS",
        "gpu2 accepts nobody by short name, full name and address",
    )


def test_a_head_is_not_asked_for_a_way_up():
    assert NO_WAY_UP not in claimed("access", CHECKS, CLUSTER.by_name["head1"])


def test_a_host_key_that_does_not_exist_is_not_readable():
    answers = {**HEALTHY, **file(HOST_KEYS[1], None)}
    assert (
        judged("access", CHECKS, PRIVATE_KEYS, CLUSTER, worker(CLUSTER), FakeHost(answers)).status == "PASS"
    )


def test_an_undeclared_host_key_is_a_failure(tmp_path):
    cluster = access_site(ssh=Ssh(user="admin", known_hosts=tmp_path / "none"))
    text = known_hosts.ssh_known_hosts(cluster)
    host = FakeHost({**HEALTHY, **file("/etc/ssh/ssh_known_hosts", text)})
    result = judged("access", CHECKS, "every node's host key is known", cluster, worker(cluster), host)
    assert (result.status, result.evidence) == (
        "FAIL",
        f"{tmp_path}/none has no host key of head1, gpu1, gpu2",
    )


def test_without_node_to_node_hostbased_is_one_method_too_many():
    cluster = access_site(AccessOptions(node_to_node=False))
    result = judged("access", CHECKS, METHODS, cluster, worker(cluster), FakeHost(HEALTHY))
    assert (result.status, result.evidence) == ("FAIL", "sshd offers hostbased to nobody")
    assert NODE_TO_NODE not in claimed("access", CHECKS, worker(cluster))
    assert USERS not in claimed("access", CHECKS, worker(cluster))


def test_every_worker_is_left_once_and_entered_once():
    asked = {}
    for node in CLUSTER.nodes:
        host = FakeHost({}, always="")
        judged("access", CHECKS, NODE_TO_NODE, CLUSTER, node, host)
        asked[node.name] = host.asked[0].split()[-3]
    assert asked == {"head1": "gpu1", "gpu1": "gpu2", "gpu2": "gpu1"}  # no worker logs in to a head


def test_readings():
    assert parse_sshd_settings(SSHD)["authorizedkeysfile"] == (
        ".ssh/authorized_keys /etc/ssh/authorized_keys.d/%u"
    )
    assert parse_offered_methods("a@b: Permission denied (publickey).\n") == {"publickey"}
    assert parse_offered_methods("ssh: connect to host b port 22: Connection refused\n") is None
    assert parse_sudo_rights(SUDO_ADA)
    assert not parse_sudo_rights(SUDO_ADA.replace("NOPASSWD: ALL", "NOPASSWD: /usr/bin/id"))
