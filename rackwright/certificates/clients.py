"""Short-lived client certificates of a cluster's own CA, as kubeconfig files."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rackwright.certificates.authority import SigningKey
from rackwright.certificates.read import pem

_SLACK = timedelta(hours=1)
"""How far clocks may differ."""


def client_kubeconfig(
    authority: tuple[SigningKey, x509.Certificate],
    server: str,
    user: str,
    groups: Sequence[str],
    now: datetime,
    minutes: int,
) -> str:
    """A kubeconfig whose certificate names a user and its groups, and is valid for some minutes; it holds a key.

    + server: URL of the API server
    """
    key, certificate = _issue(authority, user, groups, now, minutes)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "kubernetes",
                "cluster": {"server": server, "certificate-authority-data": _encoded(pem(authority[1]))},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _encoded(certificate),
                    "client-key-data": _encoded(key),
                },
            }
        ],
        "contexts": [{"name": "kubernetes", "context": {"cluster": "kubernetes", "user": user}}],
        "current-context": "kubernetes",
    }
    return json.dumps(config, indent=1) + "\n"


def _issue(
    authority: tuple[SigningKey, x509.Certificate],
    user: str,
    groups: Sequence[str],
    now: datetime,
    minutes: int,
) -> tuple[str, str]:
    """Key and certificate, PEM."""
    signer, ca = authority
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + timedelta(minutes=minutes))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode(), pem(certificate)


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
