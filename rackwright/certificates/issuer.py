"""Certificates that the site's CA issues, and when they must be reissued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rackwright.boundary import Refused
from rackwright.certificates.authority import SigningKey
from rackwright.certificates.read import (
    certificates_in,
    day,
    general_name,
    is_signed_by,
    key_digest,
    names_of,
    pem,
)

KeyKind = Literal["ecdsa-p256", "rsa-3072"]
_SLACK = timedelta(hours=1)
"""How far clocks may differ: a certificate is valid from an hour before it was issued."""
_COMMON_NAME_MAX = 64


@dataclass(frozen=True)
class OnNode:
    """A certificate as a node has it. Modes and owners as `640 root:root`; None: the file does not exist."""

    chain: str | None = None
    key: str | None = None
    pem: str = ""
    """The text of the chain file."""
    key_sha256: str | None = None
    """Of the public half of the key on the node; None where that is not a key, or openssl is missing."""

    def certificate(self) -> x509.Certificate:
        """The first of the file; Refused where it cannot be read."""
        return certificates_in(self.pem)[0]


@dataclass(frozen=True)
class Issued:
    """A new certificate and its key, PEM."""

    key: str = field(repr=False)
    chain: str


@dataclass(frozen=True)
class Issuer:
    """The site's CA with its policy."""

    key: SigningKey = field(repr=False)
    certificate: x509.Certificate = field(repr=False)
    trusted: str = field(repr=False)
    """What nodes trust, PEM: the CA, then further ones of the site."""
    days: int
    renew_before_days: int
    key_kind: KeyKind

    def reason(self, found: OnNode, names: Sequence[str], now: datetime) -> str | None:
        """Why a certificate has to be issued anew, by the control node's clock; None where it is good."""
        if found.chain is None or found.key is None:
            return "it is missing" if found.chain is None else "its key is missing"
        try:
            there = found.certificate()
            if names_of(there) != frozenset(names):
                return "its names differ from those declared"
        except Refused as error:
            return f"it is unreadable: {error}"
        if not is_signed_by(there, self.certificate):
            return "it is not signed by the site's CA"
        if found.key_sha256 is None:
            return "the key on the node is unreadable"
        if found.key_sha256 != key_digest(there):
            return "the key on the node does not match it"
        if there.not_valid_before_utc > now + _SLACK:
            return f"it is not valid before {day(there.not_valid_before_utc)}"
        return self.expiry(there, now)

    def expiry(self, there: x509.Certificate, now: datetime) -> str | None:
        """Why it is due by its age; None before that.

        One that ends with the CA itself is not due: a new one would end at the same time.
        """
        until = there.not_valid_after_utc
        if until <= now:
            return "it has expired"
        if until < self.certificate.not_valid_after_utc and until <= now + self.renew_before:
            return f"it expires within {self.renew_before_days} days"
        return None

    @property
    def renew_before(self) -> timedelta:
        """How long before its end a certificate is renewed."""
        return timedelta(days=self.renew_before_days)

    def issue(self, names: Sequence[str], now: datetime) -> Issued:
        """A new key and its certificate; they are kept nowhere here."""
        key = _new_key(self.key_kind)
        until = min(now + timedelta(days=self.days), self.certificate.not_valid_after_utc)
        certificate = self.sign(key, names, now - _SLACK, until)
        text = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Issued(text.decode("ascii"), pem(certificate))

    def sign(
        self, key: SigningKey, names: Sequence[str], since: datetime, until: datetime
    ) -> x509.Certificate:
        """A certificate of a server, which may show it as a client too."""
        common = (
            [x509.NameAttribute(NameOID.COMMON_NAME, names[0])] if len(names[0]) <= _COMMON_NAME_MAX else []
        )
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=isinstance(key, rsa.RSAPrivateKey),
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=False,
            crl_sign=False,
            encipher_only=False,
            decipher_only=False,
        )
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name(common))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(since)
            .not_valid_after(until)
            # critical where there is no other name (RFC 5280, 4.2.1.6)
            .add_extension(x509.SubjectAlternativeName(list(map(general_name, names))), critical=not common)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(purposes, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(self._authority_identifier(), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def _authority_identifier(self) -> x509.AuthorityKeyIdentifier:
        try:
            subject = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        except x509.ExtensionNotFound:
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject.value)


def described(found: OnNode) -> str | None:
    """`until 2026-12-01 10:00 UTC, names head1, 10.0.0.1`, for a plan; None where there is none."""
    if found.chain is None:
        return None
    try:
        there = found.certificate()
        return f"until {day(there.not_valid_after_utc)}, names {', '.join(sorted(names_of(there)))}"
    except Refused:
        return "a file that is not a certificate"


def _new_key(kind: KeyKind) -> SigningKey:
    if kind == "rsa-3072":
        return rsa.generate_private_key(65537, 3072)
    return ec.generate_private_key(ec.SECP256R1())
