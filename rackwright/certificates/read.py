"""Parses certificates from files of the site and from nodes, whose text is untrusted."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from rackwright.boundary import Refused

PEM_MAX_BYTES = 16384
"""Of the certificates in one file of a node: eight of RSA 4096 take that much."""
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


def certificates_in(text: str, limit: int = PEM_MAX_BYTES) -> list[x509.Certificate]:
    """Every certificate of a PEM text; Refused where there is none, or it cannot be read."""
    if len(text) > limit:
        raise Refused(f"it has more than {limit} characters")
    blocks = _BLOCK.findall(text)
    if not blocks or text.count("-----BEGIN") != len(blocks):
        raise Refused("it contains something other than certificates")
    try:
        found = [x509.load_pem_x509_certificate(block.encode("ascii")) for block in blocks]
        for one in found:  # what is read only now, and later must not fail
            _ = (one.extensions, one.not_valid_before_utc, one.not_valid_after_utc, one.public_key())
    except Exception as error:  # noqa: BLE001 - ValueError, and what an odd certificate makes of it
        raise Refused(f"it is not a valid certificate: {error}") from None
    return found


def pem(certificate: x509.Certificate) -> str:
    """As text."""
    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of the whole certificate, hexadecimal."""
    return hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()


def key_digest(certificate: x509.Certificate) -> str:
    """SHA-256 of its public key, as `openssl pkey -pubout -outform DER | sha256sum` prints it of the private one."""
    encoded = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(encoded).hexdigest()


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """DNS names and addresses that it is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return frozenset((*found.get_values_for_type(x509.DNSName), *addresses))


def general_name(name: str) -> x509.GeneralName:
    """A DNS name or an address, as certificates have them."""
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def is_ca(certificate: x509.Certificate) -> bool:
    """Whether it may sign others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether this authority's key signed it, and it names this authority as its issuer."""
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # noqa: BLE001 - InvalidSignature, or any error caused by an unusual key
        return False
    return True


def day(moment: datetime) -> str:
    """`2026-12-01 10:00 UTC`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
