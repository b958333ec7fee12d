"""The CA that agents trust, and this control node's server certificate; kept in the state folder.

Separate from the site's CA, whose key may be elsewhere or may not exist yet. Certificates are
valid from 1970, so that a machine with a dead clock battery can still reach the head, which corrects its clock.
"""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rackwright.atomic_write import write_atomically
from rackwright.install.record import folder

_BEGIN, _LIFE = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=3650)
_CA, _KEY, _SERVER = "ca.pem", "ca.key", "server.pem"


@dataclass(frozen=True)
class Credentials:
    """Files that the server needs, and what agents are given."""

    ca: bytes
    chain: Path
    """Certificate and key of the server, PEM."""


def credentials(cluster: str, addresses: frozenset[IPv4Address]) -> Credentials:
    """The CA, created on the first call, and a new certificate for these addresses."""
    place = folder(cluster)
    with (place / ".authority.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two first runs create one CA
        return credentials_in(place, addresses)


def credentials_in(place: Path, addresses: frozenset[IPv4Address]) -> Credentials:
    """As above, in any folder."""
    if not (place / _CA).exists():
        _make_ca(place)
    ca = x509.load_pem_x509_certificate((place / _CA).read_bytes())
    loaded = serialization.load_pem_private_key((place / _KEY).read_bytes(), password=None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)  # as _make_ca writes it
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.IPAddress(address) for address in sorted(addresses)])
    certificate = (
        _builder(x509.Name([]), ca.subject, key.public_key())
        .add_extension(names, critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(loaded.public_key()), critical=False
        )
        .sign(loaded, hashes.SHA256())
    )
    chain = place / _SERVER
    write_atomically(chain, certificate.public_bytes(serialization.Encoding.PEM) + _pem(key))
    return Credentials((place / _CA).read_bytes(), chain)


def _make_ca(place: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rackwright install")])
    certificate = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(False, False, False, False, False, True, True, False, False),  # signs certificates
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_atomically(place / _KEY, _pem(key))
    write_atomically(
        place / _CA, certificate.public_bytes(serialization.Encoding.PEM)
    )  # written last: it implies that both exist


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(datetime.now(UTC) + _LIFE)
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
