"""CAs and certificates of tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rackwright.certificates.authority import SigningKey, own_certificate
from rackwright.certificates.issuer import Issuer, OnNode
from rackwright.certificates.read import key_digest, pem
from rackwright.secrets.secret import generate

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
NAMES = ("head1.lab.test", "head1", "10.9.0.10")
SECRET = generate("site_ca_key")


def issuer(
    secret: str = SECRET, *, organization: str = "site", ca_days: int = 3650, key: str = "ecdsa-p256"
) -> Issuer:
    """A CA with the default policy."""
    own, certificate = own_certificate(secret, name="site CA", organization=organization, days=ca_days)
    return Issuer(own, certificate, pem(certificate), 90, 30, key)  # type: ignore[arg-type]


def on_node(
    ca: Issuer,
    since: datetime = NOW - DAY,
    until: datetime = NOW + 60 * DAY,
    names: tuple[str, ...] = NAMES,
    *,
    chain: str | None = "644 root:root",
    key: str | None = "640 root:docker-registry",
) -> OnNode:
    """A certificate of this CA, with its key, as a node has it."""
    certificate = ca.sign(new_key(), names, since, until)
    return OnNode(chain, key, pem(certificate), key_digest(certificate))


def new_key() -> SigningKey:
    """A fresh key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: SigningKey) -> str:
    """A key as PEM."""
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def self_signed(key: SigningKey, until: datetime = NOW + 400 * DAY, *, ca: bool = True) -> x509.Certificate:
    """A certificate as a site may have it."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Site Root")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - 800 * DAY)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
