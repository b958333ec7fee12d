"""The checks of the accounts role: each one passes, fails and cannot know; and its question to servers over TLS."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import Field

from rackwright.certificates.read import pem
from rackwright.claims.check import Undetermined
from rackwright.model.interfaces import NamesJobUsers
from rackwright.model.options import RoleOptions
from rackwright.roles.access.options import AccessOptions
from rackwright.roles.accounts import texts
from rackwright.roles.accounts.options import SSHD_CONF, SUDOERS, AccountsOptions
from rackwright.roles.accounts.reading import asks_sssd, makes_homes, members_of, parse_passwd
from rackwright.roles.accounts.servers import PROGRAM
from rackwright.roles.accounts.verify import CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.secrets.secret import Secret, generate
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_facts import answer, file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import head, site, worker

(RUNS, SETTINGS, ORDER, PAM, SERVERS, PROBE, KEYS, OVERLAP, SUDO, JOBS, NUMBERS) = (
    check.name for check in CHECKS
)
PASSWORD = "a secret of the store"


class Manager(RoleOptions, NamesJobUsers):
    """Stands for a workload manager that knows two users."""

    users: dict[str, int] = Field(default_factory=lambda: {"carol": 1, "ada": 2})


OPTIONS = AccountsOptions.model_validate(
    {
        "servers": ["ldaps://ldap1.example.com", "ldaps://ldap2.example.com:1636"],
        "base": "dc=example,dc=com",
        "bind": {"dn": "cn=reader,dc=example,dc=com", "stored_as": "directory_reader"},
        "allowed_groups": ["hpc", "ops"],
        "sudo_groups": ["ops"],
        "min_id": 20000,
        "max_id": 29999,
        "probe_user": "carol",
    }
)


def made(options=OPTIONS):
    return site(
        {"access": AccessOptions(), "site_ca": SiteCaOptions(), "manager": Manager(), "accounts": options}
    )


CLUSTER = made()
NODE = worker(CLUSTER)
CAROL = "carol:*:20001:20001:carol:/home/carol:/bin/bash\n"
ADA = "ada:x:3000:3000::/home/ada:/bin/bash\n"
LOCAL = (
    "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    "admin:x:1000:1000::/home/admin:/bin/bash\n"
)
MAY = "User dave may run the following commands on gpu1:\n    (ALL : ALL) NOPASSWD: ALL\n"
MAY_NOT = "User dave is not allowed to run sudo on gpu1.\n"


class Store:
    """A secrets store with one value for every name."""

    def get(self, name):
        return Secret(name, PASSWORD)


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr("rackwright.roles.accounts.verify.store_of", lambda cluster: Store())


def asks_servers(*lines):
    host = FakeHost({})
    host.run(
        f"python3 -IS -c{' %s' * 5}",
        PROGRAM,
        str(OPTIONS.server_seconds),
        "/etc/rackwright-ca.crt",
        "ldaps|ldap1.example.com|636",
        "ldaps|ldap2.example.com|1636",
    )
    return {host.asked[0]: "".join(f"{line}\n" for line in lines)}


SSHD = "sshd -T -C user={},host=localhost,addr=127.0.0.1"
COMMAND = "port 22\nauthorizedkeyscommand {}\n"
AUTHORIZED = texts.KEYS_PROGRAM
ACCOUNT, SESSION = "/etc/pam.d/common-account", "/etc/pam.d/common-session"
SSS = "getent -s sss passwd {}"
GROUP = "timeout 45 getent -s sss group ops"
SUDO_L = "env LC_ALL=C sudo -l -U dave"
BOTH = "timeout 45 getent passwd carol ada"
PROBED = f"timeout 45 {SSS.format('carol')}"
ADMIN = f"timeout 45 {SSS.format('admin')}"
EVERYONE = "timeout 45 getent passwd carol ada"
CONF = texts.sssd_conf(CLUSTER, NODE, OPTIONS, PASSWORD)
SNIPPETS = "find /etc/sssd/conf.d -name '*.conf'"
HEALTHY = {
    **unit("sssd.service"),
    **file(texts.CONF, CONF, "640"),
    **files({texts.CA_FILE: None, SSHD_CONF: texts.sshd_conf(CLUSTER, NODE, OPTIONS)}),
    **file(AUTHORIZED, texts.keys_program(OPTIONS), "755"),
    **file(SUDOERS, texts.sudoers(OPTIONS), "440"),
    SNIPPETS: "",
    **answer(texts.NSSWITCH_READ, f"{texts.NSSWITCH_RIGHT}\n"),
    **files({ACCOUNT: "account sufficient pam_localuser.so\naccount\t[default=bad]\tpam_sss.so\n"}),
    **files({SESSION: "session optional pam_umask.so\n"}),
    **asks_servers("ok TLSv1.3", "ok TLSv1.3"),
    PROBED: CAROL,
    SSHD.format("carol"): COMMAND.format(AUTHORIZED),
    SSHD.format("root"): COMMAND.format("none"),
    SSHD.format("admin"): COMMAND.format("none"),
    f"timeout 30 {AUTHORIZED} carol": "ssh-ed25519 AAAA carol\n",
    "getent -s files passwd": LOCAL,
    ADMIN: (2, "", ""),
    GROUP: "ops:*:21000:dave\n",
    SUDO_L: MAY,
    EVERYONE: CAROL + ADA,
}

CASES = [
    (RUNS, {}, "PASS", "sssd.service is active and enabled"),
    (RUNS, unit("sssd.service", "failed"), "FAIL", "sssd.service is failed"),
    (SETTINGS, {}, "PASS", "/etc/sssd/sssd.conf, and no other file"),
    (SETTINGS, file(texts.CONF, "x", "640"), "FAIL", "/etc/sssd/sssd.conf is not as declared"),
    (SETTINGS, file(texts.CONF, CONF, "644"), "FAIL", "/etc/sssd/sssd.conf is 644 root:root, not 640 root:root"),
    (
        SETTINGS,
        {SNIPPETS: "/etc/sssd/conf.d/a.conf\n"},
        "FAIL",
        "/etc/sssd/conf.d/a.conf changes SSSD's settings but is not declared",
    ),
    (SETTINGS, {SNIPPETS: (1, "", "find: missing folder")}, "UNKNOWN", None),
    (ORDER, {}, "PASS", "users and groups: files, then sss"),
    (
        ORDER,
        answer(texts.NSSWITCH_READ, "group: files, sss\npasswd: sss files\n"),
        "FAIL",
        "/etc/nsswitch.conf has passwd: sss files, not files and then sss",
    ),
    (ORDER, answer(texts.NSSWITCH_READ, ""), "UNKNOWN", None),
    (PAM, {}, "PASS", "/etc/pam.d/common-account asks SSSD who may log in"),
    (
        PAM,
        files({ACCOUNT: "account required pam_unix.so\n# account pam_sss.so\n"}),
        "FAIL",
        "/etc/pam.d/common-account does not ask SSSD: every user of the directory with a key may log in",
    ),
    (
        PAM,
        files({SESSION: "session optional pam_mkhomedir.so\n"}),
        "FAIL",
        "/etc/pam.d/common-session makes missing homes at login",
    ),
    (SERVERS, {}, "PASS", "ldaps://ldap1.example.com: TLSv1.3; ldaps://ldap2.example.com:1636: TLSv1.3"),
    (
        SERVERS,
        asks_servers("ok TLSv1.3", "fail its certificate is refused: certificate has expired"),
        "FAIL",
        (
            "ldaps://ldap2.example.com:1636: its certificate is refused: certificate has expired "
            "(ldaps://ldap1.example.com answers)"
        ),
    ),
    (SERVERS, asks_servers("ok TLSv1.3"), "UNKNOWN", "the node printed 1 lines about 2 servers"),
    (SERVERS, asks_servers("ok TLSv1.3", "Traceback"), "UNKNOWN", None),
    (PROBE, {}, "PASS", "carol has uid 20001, home /home/carol"),
    (
        PROBE,
        asks_servers("fail no answer within 2 s", "fail Connection refused"),
        "WARN",
        (
            "carol has uid 20001 from the cache; no server answers: ldaps://ldap1.example.com: no answer within 2 s; "
            "ldaps://ldap2.example.com:1636: Connection refused"
        ),
    ),
    (PROBE, asks_servers("fail no answer within 2 s", "ok TLSv1.3"), "PASS", None),
    (PROBE, {PROBED: (2, "", "")}, "FAIL", "the directory's user carol does not exist here"),
    (PROBE, {PROBED: CAROL.replace("20001", "700")}, "FAIL", "carol has uid 700, outside of 20000 to 29999"),
    (PROBE, {PROBED: (124, "", "")}, "UNKNOWN", "`getent -s sss passwd` cannot be read: status 124"),
    (PROBE, {PROBED: "carol\n"}, "UNKNOWN", None),
    (KEYS, {}, "PASS", "1 key of carol"),
    (
        KEYS,
        {SSHD.format("carol"): COMMAND.format("none")},
        "FAIL",
        f"sshd's authorizedkeyscommand of carol is none, not {AUTHORIZED}",
    ),
    (
        KEYS,
        {SSHD.format("admin"): COMMAND.format("/tmp/x")},
        "FAIL",
        "sshd's authorizedkeyscommand of admin is /tmp/x, not none",
    ),
    (KEYS, files({SSHD_CONF: None}), "FAIL", f"{SSHD_CONF} is missing"),
    (KEYS, files({AUTHORIZED: None}), "FAIL", f"{AUTHORIZED} is missing"),
    (
        KEYS,
        file(AUTHORIZED, texts.keys_program(OPTIONS), "775"),
        "FAIL",
        f"{AUTHORIZED} is 775 root:root, not 755 root:root",
    ),
    (KEYS, {f"timeout 30 {AUTHORIZED} carol": ""}, "WARN", "carol has no key in the attribute sshPublicKey"),
    (KEYS, {SSHD.format("root"): "port 22\n"}, "UNKNOWN", "`sshd -T` does not mention authorizedkeyscommand"),
    (KEYS, {f"timeout 30 {AUTHORIZED} carol": (1, "", "Error looking up public keys")}, "UNKNOWN", None),
    (OVERLAP, {}, "PASS", "3 local users"),
    (
        OVERLAP,
        {"getent -s files passwd": LOCAL + "stray:x:20005:20005::/:/bin/sh\n"},
        "FAIL",
        "local users have numbers of the directory: stray (20005)",
    ),
    (
        OVERLAP,
        {ADMIN: CAROL.replace("carol", "admin")},
        "WARN",
        "the node and the directory both have admin: the local ones take precedence",
    ),
    (OVERLAP, {ADMIN: (124, "", "")}, "UNKNOWN", None),
    (OVERLAP, {"getent -s files passwd": ""}, "UNKNOWN", "`getent -s files passwd` does not print root"),
    (SUDO, {}, "PASS", "ops: dave"),
    (SUDO, {GROUP: "ops:*:21000:\n"}, "PASS", "ops: no members"),
    (SUDO, {GROUP: (2, "", "")}, "FAIL", "the directory has no group ops, whose members should become root"),
    (SUDO, {SUDO_L: MAY_NOT}, "FAIL", "dave of ops may not become root without a password"),
    (SUDO, file(SUDOERS, texts.sudoers(OPTIONS), "644"), "FAIL", f"{SUDOERS} is 644 root:root, not 440 root:root"),
    (SUDO, {GROUP: "ops\n"}, "UNKNOWN", None),
    (SUDO, {SUDO_L: (127, "", "")}, "UNKNOWN", None),
    (JOBS, {}, "PASS", "2 users"),
    (JOBS, {EVERYONE: (2, ADA, "")}, "FAIL", "neither the node nor the directory has carol"),
    (JOBS, {EVERYONE: (124, "", "")}, "UNKNOWN", "`getent passwd`: status 124"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_check(name, changes, status, evidence):
    found = judged("accounts", CHECKS, name, CLUSTER, NODE, FakeHost({**HEALTHY, **changes}))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def hosts(**changes):
    return {node.name: FakeHost({**HEALTHY, **changes.get(node.name, {})}) for node in CLUSTER.nodes}


@pytest.mark.parametrize(
    ("changes", "status", "evidence"),
    [
        ({}, "PASS", "2 users on 3 nodes"),
        (
            {"gpu2": {EVERYONE: CAROL.replace("20001", "4002") + ADA}},
            "FAIL",
            "carol is 20001 on head1, 20001 on gpu1, 4002 on gpu2",
        ),
        ({"gpu1": {EVERYONE: (2, CAROL, "")}}, "FAIL", "ada is 3000 on head1, missing on gpu1, 3000 on gpu2"),
        (
            {name: {EVERYONE: (2, CAROL, "")} for name in ("head1", "gpu1", "gpu2")},
            "FAIL",
            "ada is on no node",
        ),
        ({"gpu1": {EVERYONE: (124, "", "")}}, "UNKNOWN", "gpu1: `getent passwd`: status 124"),
    ],
)
def test_numbers_are_compared_between_nodes(changes, status, evidence):
    found = judged("accounts", CHECKS, NUMBERS, CLUSTER, head(CLUSTER), hosts(**changes))
    assert (found.status, found.evidence) == (status, evidence)


def test_no_check_passes_without_an_answer():
    never_passes("accounts", CHECKS, CLUSTER, NODE)


def test_what_is_not_declared_is_not_claimed():
    plain = OPTIONS.model_copy(update={"probe_user": None})
    cluster = site({"accounts": plain})
    assert {PROBE, JOBS, NUMBERS}.isdisjoint(claimed("accounts", CHECKS, worker(cluster)))
    found = judged(
        "accounts",
        CHECKS,
        KEYS,
        cluster,
        worker(cluster),
        FakeHost(
            {
                **HEALTHY,
                **files({SSHD_CONF: texts.sshd_conf(cluster, worker(cluster), plain)}),
                SSHD.format("rackwright-directory-user"): COMMAND.format(AUTHORIZED),
            }
        ),
    )
    assert (found.status, found.evidence) == ("PASS", f"authorizedkeyscommand is {AUTHORIZED}")


def test_lines_that_cannot_be_read():
    for reader, text in ((parse_passwd, "a:b"), (parse_passwd, "a:x:-1:0:::"), (members_of, "a:b")):
        with pytest.raises(Undetermined):
            reader(text)
    assert asks_sssd("-account [default=bad] pam_sss.so\n")
    assert not asks_sssd("auth sufficient pam_sss.so\n#account required pam_sss.so\n")
    assert makes_homes("session optional pam_oddjob_mkhomedir.so\n")
    assert not makes_homes("# session optional pam_mkhomedir.so\n")


# The program, against servers in this process


@pytest.fixture(scope="module")
def authority():
    options = SiteCaOptions()
    return options.issuer(CLUSTER, generate("site_ca_key"))


def certificate(folder: Path, authority, *names, days=30):
    key = ec.generate_private_key(ec.SECP256R1())
    until = datetime.now(UTC) + timedelta(days=days)
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    (folder / "chain.pem").write_text(pem(authority.sign(key, names, until - timedelta(days=60), until)))
    (folder / "ca.pem").write_text(authority.trusted)


@contextmanager
def serving(folder: Path, before: bytes | None = None, *, silent: bool = False) -> Iterator[int]:
    """A server that first sends these bytes after a request, then speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "chain.pem", folder / "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)

    def serve() -> None:
        try:
            plain, _ = listener.accept()
            with plain:
                plain.settimeout(5)
                if silent:
                    while plain.recv(4096):
                        pass
                    return
                if before is not None and plain.recv(4096):
                    plain.sendall(before)
                with context.wrap_socket(plain, server_side=True) as secure:
                    secure.recv(1)
        except OSError:
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join(15)
        listener.close()


def ask(folder, *servers, seconds="2"):
    done = subprocess.run(
        [sys.executable, "-IS", "-c", PROGRAM, seconds, str(folder / "ca.pem"), *servers],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.splitlines()


ACCEPTS = bytes.fromhex("300c02010178070a010004000400")
REFUSES = bytes.fromhex("300c02010178070a010204000400")


def test_the_program_accepts_what_the_ca_signed(tmp_path, authority):
    certificate(tmp_path, authority, "localhost")
    with serving(tmp_path) as port:
        assert ask(tmp_path, f"ldaps|localhost|{port}") == ["ok TLSv1.3"]
    with serving(tmp_path, ACCEPTS) as port:
        assert ask(tmp_path, f"ldap|localhost|{port}") == ["ok TLSv1.3"]


def test_the_program_names_what_is_wrong(tmp_path, authority):
    certificate(tmp_path, authority, "localhost")
    with serving(tmp_path, REFUSES) as port:
        assert ask(tmp_path, f"ldap|localhost|{port}") == ["fail it refuses StartTLS"]
    with serving(tmp_path) as port:
        (shown,) = ask(tmp_path, f"ldaps|127.0.0.1|{port}")
    assert shown.startswith("fail its certificate is refused: IP address mismatch")
    with serving(tmp_path, silent=True) as port:
        assert ask(tmp_path, f"ldaps|localhost|{port}", seconds="1") == ["fail no answer within 1 s"]
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    assert ask(tmp_path, f"ldaps|127.0.0.1|{port}") == ["fail Connection refused"]
    certificate(tmp_path, authority, "localhost", days=-1)
    with serving(tmp_path) as port:
        assert ask(tmp_path, f"ldaps|localhost|{port}") == [
            "fail its certificate is refused: certificate has expired"
        ]


def test_the_program_trusts_the_declared_ca_alone(tmp_path, authority):
    other = SiteCaOptions().issuer(CLUSTER, generate("site_ca_key"))
    certificate(tmp_path, authority, "localhost")
    (tmp_path / "ca.pem").write_text(other.trusted)
    with serving(tmp_path) as port:
        (shown,) = ask(tmp_path, f"ldaps|localhost|{port}")
    assert shown.startswith("fail its certificate is refused: ")
