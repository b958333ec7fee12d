"""When a certificate is issued anew, and what is issued."""

from __future__ import annotations

import random
import subprocess
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from rackwright.boundary import Refused
from rackwright.certificates.authority import ca_problem, given_key, own_certificate
from rackwright.certificates.issuer import OnNode, described
from rackwright.certificates.read import certificates_in, is_signed_by, key_digest, names_of, pem
from rackwright.errors import SecretsError
from rackwright.secrets.secret import generate
from tests.unit.certificates.authorities import (
    DAY,
    NAMES,
    NOW,
    SECRET,
    issuer,
    key_pem,
    new_key,
    on_node,
    self_signed,
)

CA = issuer()
GOOD = on_node(CA)


def test_an_own_ca_is_the_same_for_every_run():
    assert issuer().trusted == CA.trusted
    assert issuer(ca_days=4000).certificate.subject == CA.certificate.subject
    assert is_signed_by(GOOD.certificate(), issuer(ca_days=4000).certificate)
    assert not is_signed_by(GOOD.certificate(), issuer(organization="other").certificate)
    assert not is_signed_by(GOOD.certificate(), issuer(generate("site_ca_key")).certificate)
    assert ca_problem(CA.certificate, NOW) is None


def test_certificates_of_all_keys_have_one_size():
    """A plan of a new cluster makes a key up, and its commands name the size of what they write."""
    assert {len(issuer(generate("site_ca_key")).trusted) for _ in range(20)} == {len(CA.trusted)}


@pytest.mark.parametrize(
    "secret", ["", "made yesterday\nx", "made 2026-11-24T10:00:00+00:00\nx", key_pem(new_key()), "x" * 43]
)
def test_a_secret_that_is_no_ca_key(secret):
    with pytest.raises(SecretsError, match="not one that rackwright generated") as refused:
        own_certificate(secret, name="a", organization="b", days=1)
    assert secret[:20] == "" or secret[-20:] not in str(refused.value)


def test_a_given_ca_needs_its_own_key():
    key = new_key()
    certificate = self_signed(key)
    assert given_key(key_pem(key), certificate) is not None
    with pytest.raises(SecretsError, match="does not match its certificate"):
        given_key(key_pem(new_key()), certificate)
    with pytest.raises(SecretsError, match="not an ECDSA or RSA key in PEM"):
        given_key("nothing", certificate)


@pytest.mark.parametrize(
    ("certificate", "problem"),
    [
        (self_signed(new_key()), None),
        (self_signed(new_key(), ca=False), "is not a CA certificate"),
        (self_signed(new_key(), NOW - DAY), f"expired on {NOW - DAY:%Y-%m-%d}"),
    ],
)
def test_what_is_wrong_with_a_ca(certificate, problem):
    assert ca_problem(certificate, NOW) == problem


def test_a_ca_of_the_future():
    assert ca_problem(CA.certificate, NOW - 2 * DAY) == (
        f"is not valid before {CA.certificate.not_valid_before_utc:%Y-%m-%d}"
    )


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (GOOD, None),
        (OnNode(), "it is missing"),
        (replace(GOOD, key=None), "its key is missing"),
        (replace(GOOD, pem="hello"), "it is unreadable: it contains something other than certificates"),
        (on_node(CA, names=("head1",)), "its names differ from those declared"),
        (on_node(issuer(generate("site_ca_key"))), "it is not signed by the site's CA"),
        (replace(GOOD, key_sha256="0" * 64), "the key on the node does not match it"),
        (replace(GOOD, key_sha256=None), "the key on the node is unreadable"),
        (on_node(CA, until=NOW - timedelta(hours=1)), "it has expired"),
        (on_node(CA, until=NOW + 30 * DAY), "it expires within 30 days"),
        (on_node(CA, until=NOW + 30 * DAY + timedelta(seconds=1)), None),
        (on_node(CA, since=NOW + timedelta(minutes=59)), None),
    ],
)
def test_why_one_is_issued(found, reason):
    assert CA.reason(found, NAMES, NOW) == reason


def test_a_certificate_of_the_future():
    assert CA.reason(on_node(CA, since=NOW + 2 * DAY), NAMES, NOW).startswith("it is not valid before ")


def test_one_that_ends_with_the_ca_is_not_issued_again_by_every_apply():
    short = issuer(ca_days=30)
    issued = short.issue(NAMES, NOW)
    (certificate,) = certificates_in(issued.chain)
    assert certificate.not_valid_after_utc == short.certificate.not_valid_after_utc
    found = OnNode("644 root:root", "640 root:x", issued.chain, key_digest(certificate))
    assert short.reason(found, NAMES, NOW + 5 * DAY) is None


@pytest.mark.parametrize("kind", ["ecdsa-p256", "rsa-3072"])
def test_what_is_issued(kind):
    issued = issuer(key=kind).issue(NAMES, NOW)
    (certificate,) = certificates_in(issued.chain)
    assert names_of(certificate) == set(NAMES)
    assert is_signed_by(certificate, CA.certificate)
    assert certificate.not_valid_after_utc == NOW + 90 * DAY
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)
    key = load_pem_private_key(issued.key.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey) == (kind == "rsa-3072")
    assert key.public_key() == certificate.public_key()
    assert issued.key not in repr(issued)
    assert "PRIVATE" not in repr(CA)
    assert CA.issue(NAMES, NOW).key != issued.key


def test_a_long_first_name_is_an_alternative_name_alone():
    name = "a" * 60 + ".example.org"
    (certificate,) = certificates_in(CA.issue((name,), NOW).chain)
    assert list(certificate.subject) == []
    assert certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).critical
    assert names_of(certificate) == {name}


def test_openssl_agrees(tmp_path):
    """The program that nodes verify with accepts it as a server's, and none of another CA."""
    ca, leaf, other = tmp_path / "ca.crt", tmp_path / "leaf.crt", tmp_path / "other.crt"
    ca.write_text(CA.trusted)
    leaf.write_text(CA.issue(NAMES, NOW).chain)
    other.write_text(issuer(generate("site_ca_key")).trusted)
    verify = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "head1"]
    assert (
        subprocess.run(
            [*verify, "-CAfile", ca, leaf], capture_output=True, timeout=60, check=False
        ).returncode
        == 0
    )
    assert (
        subprocess.run(
            [*verify, "-CAfile", other, leaf], capture_output=True, timeout=60, check=False
        ).returncode
        != 0
    )


def test_a_plan_describes_what_is_there():
    assert described(OnNode()) is None
    assert described(replace(GOOD, pem="x")) == "a file that is not a certificate"
    until = (NOW + 60 * DAY).strftime("%Y-%m-%d %H:%M UTC")
    assert described(GOOD) == f"until {until}, names 10.9.0.10, head1, head1.lab.test"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains something other than certificates"),
        ("x" * 16385, "more than 16384 characters"),
        (CA.trusted + SECRET, "contains something other than certificates"),
        (CA.trusted.replace("MII", "AAA"), "is not a valid certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "is not a valid certificate"),
    ],
)
def test_what_cannot_be_read_is_refused(text, message):
    with pytest.raises(Refused, match=message):
        certificates_in(text)


def test_whatever_a_node_has_is_judged_or_refused():
    """Bytes changed at random: what can still be loaded has a reason, a description, and ends no run."""
    chance = random.Random(14)
    der = GOOD.certificate().public_bytes(Encoding.DER)
    loaded = 0
    for _ in range(2000):
        changed = bytearray(der)
        for _ in range(chance.choice((1, 1, 2, 8))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        text = f"-----BEGIN CERTIFICATE-----\n{b64encode(changed).decode()}\n-----END CERTIFICATE-----\n"
        found = replace(GOOD, pem=text)
        reason = CA.reason(found, NAMES, NOW)
        assert reason is not None or bytes(changed) == der
        loaded += described(found) != "a file that is not a certificate"
    assert loaded > 100


def test_several_certificates_are_read_in_their_order():
    other = issuer(generate("site_ca_key")).certificate
    assert certificates_in(CA.trusted + "a comment\n" + pem(other)) == [CA.certificate, other]
