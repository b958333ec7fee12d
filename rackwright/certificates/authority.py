"""The site's CA: its key from the secrets store, and its certificate.

An own CA's certificate is derived from its key, the day the key was made and the declared options, with a signature
that is the same each time (RFC 6979): every operator and every run has the same certificate, only the key is
stored, and a longer life needs no new key.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import NameOID

from rackwright.certificates.read import is_ca
from rackwright.errors import SecretsError

_MADE = "made "
_SERIAL_BYTES = 19
"""A serial number has at most 20 bytes, and its first bit is 0 (RFC 5280, 4.1.2.2)."""
_SIGNATURE_BYTES = 103
"""Every second signature of P-384 has this size. All certificates have it, so that a plan of a new cluster, which makes
a key up, has the commands of the apply that follows."""
_ATTEMPTS = 64
_MAY_SIGN = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def own_certificate(
    secret: str, *, name: str, organization: str, days: int
) -> tuple[SigningKey, x509.Certificate]:
    """Key and certificate of a CA whose key rackwright generated; SecretsError where the secret is something else.

    + days: from the day the key was made
    """
    first, _, text = secret.partition("\n")
    try:
        made = datetime.fromisoformat(first.removeprefix(_MADE)) if first.startswith(_MADE) else None
    except ValueError:
        made = None
    key = _signing_key(text if made is not None else "")
    if made is None or made.tzinfo is None or not isinstance(key, ec.EllipticCurvePrivateKey):
        raise SecretsError(
            "The key of the site's CA is not one that rackwright generated.",
            hint="declare the site's own CA with `authority: given` and `certificate:`",
        )
    until = made + timedelta(days=days)
    for attempt in range(_ATTEMPTS):
        certificate = _self_signed(key, organization, name, (made - timedelta(hours=1), until), attempt)
        if len(certificate.signature) == _SIGNATURE_BYTES:
            break
    return key, certificate


def _self_signed(
    key: ec.EllipticCurvePrivateKey,
    organization: str,
    name: str,
    valid: tuple[datetime, datetime],
    attempt: int,
) -> x509.Certificate:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(_serial(public, f"{organization}\0{name}\0{valid[1].isoformat()}\0{attempt}"))
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_MAY_SIGN, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA384(), ecdsa_deterministic=True)
    )


def given_key(secret: str, certificate: x509.Certificate) -> SigningKey:
    """The key of a CA of the site's own; SecretsError where it is none, or not that of its certificate."""
    key = _signing_key(secret)
    if key is None:
        raise SecretsError(
            "The key of the site's CA is not an ECDSA or RSA key in PEM without a passphrase.",
            hint="rackwright secrets put site_ca_key FILE < ca.key",
        )
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise SecretsError(
            "The key of the site's CA does not match its certificate.",
            hint="store the matching key: rackwright secrets put site_ca_key FILE < ca.key",
        )
    return key


def ca_problem(certificate: x509.Certificate, now: datetime) -> str | None:
    """Why no certificate can be issued with a CA's certificate, as the end of a sentence; None where one can."""
    if not is_ca(certificate):
        return "is not a CA certificate"
    if not isinstance(certificate.public_key(), ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        return "has a key that is neither ECDSA nor RSA"
    if certificate.not_valid_after_utc <= now:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if certificate.not_valid_before_utc > now + timedelta(hours=1):
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}"
    return None


def _signing_key(text: str) -> SigningKey | None:
    try:
        key: PrivateKeyTypes = serialization.load_pem_private_key(text.encode(), password=None)
    except Exception:  # noqa: BLE001 - ValueError, TypeError, UnsupportedAlgorithm; no message may quote a key
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) else None


def _serial(public: ec.EllipticCurvePublicKey, text: str) -> int:
    encoded = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    number = int.from_bytes(hashlib.sha256(encoded + text.encode()).digest()[:_SERIAL_BYTES], "big")
    top = 1 << (8 * _SERIAL_BYTES - 2)
    return number % top + top
