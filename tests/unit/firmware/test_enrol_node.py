"""A signing key enrolled on one node: what mokutil is asked, what its answers mean, and what a failure leaves behind.

mokutil's texts are those of its source, 0.6.0 (src/mokutil.c).
"""

from __future__ import annotations

import re
from base64 import b64decode
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from rackwright.bmc.mok_manager import NotEnrolled
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed, FirmwareError
from rackwright.firmware.enrol_node import EnrolNode
from rackwright.firmware.mokutil import KeyState, one_time_password, read_key, state_of, survey
from rackwright.model.types import NodeRole, Platform
from tests.factories import make_cluster, make_node
from tests.unit.bmc.mok_machine import Machine

CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, platform=Platform.BARE_METAL),
    make_node("gpu1", 11, platform=Platform.BARE_METAL),
    make_node("box1", 12, platform=Platform.CONTAINER),
)
FILE = "/tmp/tmp.x/key.der"


@pytest.fixture(scope="module")
def site_key():
    """(private key, certificate)."""
    private = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "site")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, private.public_key(), 10, now, now + timedelta(days=9))
    return private, made.sign(private, SHA256())


@pytest.fixture
def key(site_key, tmp_path):
    path = tmp_path / "site-mok.der"
    path.write_bytes(site_key[1].public_bytes(Encoding.DER))
    return read_key(path)


class Node:
    """A node with mokutil, and the machine below it."""

    def __init__(self, key, *, enrolled=False, takes=True):
        self.key, self.enrolled, self.takes = key, enrolled, takes
        self.requested, self.commands, self.typed = None, [], []
        self.machine = Machine(first="off")
        self.reboots, self.shows = 0, None

    def run(self, node, command, *, stdin=None, timeout):
        self.commands.append(command)
        for encoded in re.findall(r"printf %s (\S+) \|", command):
            assert b64decode(encoded) == self.key.der
        if "--revoke-import" in command:
            self.requested = None
        if "--import" in command.replace("--revoke-import", ""):
            first, second, rest = stdin.split("\n")
            assert (first, rest) == (second, "")
            self.typed.append(first)
            self.requested = first if self.takes else None
        state = "is already enrolled" if self.enrolled else "is not enrolled"
        if self.requested is not None and not self.enrolled:
            state = "is already in the enrollment request"
        return CommandResult(command, 0, f"{FILE} {state}\n", "input password: \ninput password again: \n")

    def reboot(self, attended):
        def order():
            self.reboots += 1
            first = "countdown" if self.shows is None else "off"
            self.machine.__init__(self.requested, keys=(self.key.sha1,), first=first)
            if self.shows is not None:
                self.machine.say(self.shows)

        attended(order)
        self.enrolled, self.requested = self.machine.rebooted, None

    def enrol(self):
        enrolment = EnrolNode(CLUSTER, "gpu1", self.key, self, lambda: closing(self.machine), self.reboot, 30)
        return enrolment.run()


def test_the_key_is_asked_for_answered_for_and_read_back(key):
    node = Node(key)
    assert node.enrol() == ("site-mok.der enrolled",)
    assert (node.reboots, node.machine.closed) == (1, True)
    (password,) = node.typed
    assert password.encode() in node.machine.typed
    assert not any(password in command for command in node.commands)
    assert node.enrol() == ()
    assert node.reboots == 1


def test_each_password_is_used_once():
    passwords = {one_time_password().reveal() for _ in range(50)}
    assert len(passwords) == 50
    assert all(re.fullmatch("[a-z0-9]{16}", one) for one in passwords)
    assert str(one_time_password()) == "(secret of the enrolment)"


def test_a_request_that_is_not_taken_reboots_nothing(key):
    node = Node(key, takes=False)
    with pytest.raises(
        FirmwareError, match="gpu1 did not accept the request to enrol the key: input password again:"
    ):
        node.enrol()
    assert node.reboots == 0


def test_a_refusal_leaves_no_request(key):
    node = Node(key)
    node.reboot = lambda attended: (_ for _ in ()).throw(NotEnrolled("MokManager of gpu1 says: no."))
    node.requested = "earlier"
    with pytest.raises(NotEnrolled):
        node.enrol()
    assert node.requested is None


def test_mokmanager_that_enrols_and_mokutil_that_does_not_agree(key):
    node = Node(key)
    node.reboot = lambda attended: None
    with pytest.raises(FirmwareError, match="mokutil reports it as not enrolled"):
        node.enrol()


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("is already enrolled", KeyState.ENROLLED),
        ("is already in db", KeyState.TRUSTED),
        ("is already in the built-in trusted keyring", KeyState.TRUSTED),
        ("is already in the enrollment request", KeyState.REQUESTED),
        ("is not enrolled", KeyState.MISSING),
        ("is blocked in dbx", KeyState.BLOCKED),
        ("is blocked in MokListX", KeyState.BLOCKED),
    ],
)
def test_what_mokutil_says(key, said, state):
    assert state_of(Says(f"{FILE} {said}\n"), CLUSTER, "gpu1", key) is state


class Says:
    """Every node answers this."""

    def __init__(self, out, status=0, **failing):
        self.out, self.status, self.failing = out, status, failing

    def run(self, node, command, *, stdin=None, timeout):
        if node in self.failing:
            raise ConnectionFailed(f"{node} does not answer.")
        return CommandResult(command, self.status, self.out, "")


@pytest.mark.parametrize(
    ("out", "status", "words"),
    [
        ("sh: 1: mokutil: not found\n", 127, "gpu1 has no mokutil"),
        (
            "EFI variables are not supported on this system\n",
            1,
            "EFI variables are not supported on this system",
        ),
        ("\x1b]0;x\x07\n", 0, r"whether the key is enrolled: \\x1b\]0;x\\x07"),
    ],
)
def test_what_is_not_known(key, out, status, words):
    with pytest.raises(FirmwareError, match=words):
        state_of(Says(out, status), CLUSTER, "gpu1", key)


def test_nodes_are_asked_side_by_side(key):
    found = survey(CLUSTER, CLUSTER.nodes, key, shell=Says(f"{FILE} is not enrolled\n", head1=True))
    assert found["gpu1"] is KeyState.MISSING
    assert found["head1"] == "head1 does not answer."
    assert found["box1"].startswith("out of scope: ")


def test_certificates(site_key, tmp_path, key):
    private, certificate = site_key
    assert key.sha1 == certificate.fingerprint(SHA1())
    path = tmp_path / "mok"
    path.write_bytes(certificate.public_bytes(Encoding.PEM))
    assert read_key(path).der == key.der
    for content, words in (
        (
            private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "contains something other than certificates",
        ),
        (private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), "neither DER nor PEM"),
        (certificate.public_bytes(Encoding.PEM) * 2, "it contains 2 certificates"),
        (b"0" * 20000, "more than 16384 bytes"),
        (b"", "neither DER nor PEM"),
    ):
        path.write_bytes(content)
        with pytest.raises(FirmwareError, match=words):
            read_key(path)
    with pytest.raises(FirmwareError, match=r"Cannot read .*: No such file or directory"):
        read_key(tmp_path / "none")
