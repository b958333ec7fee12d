"""Certificates of a rack's BMCs: the lab's CA, one certificate per address, and an untrusted one."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rackwright.certificates.read import is_ca, pem
from rackwright.errors import LabError
from rackwright.lab import keys, names, state
from rackwright.lab.spec import NodeSpec, RackSpec

CA_NAME = "rackwright lab BMC CA"
_LIFE = timedelta(days=3650)
_EARLIER = timedelta(days=3650)
"""Certificates are valid from so long ago: a machine whose clock is wrong can still check them."""


def folder(rack: str) -> Path:
    """Where a rack's BMCs keep their certificates and keys."""
    return names.rack_state(rack) / "bmcs"


def chain(rack: str, node: str, *, other: bool = False) -> Path:
    """Certificate and key of one BMC in one file; `other`: those of the fault bmc:certificate."""
    return folder(rack) / f"{node}{'.other' if other else ''}.pem"


def ensure(spec: RackSpec) -> None:
    """The CA, put where the cluster file declares it, and certificates for BMCs that have none."""
    folder(spec.name).mkdir(mode=0o700, parents=True, exist_ok=True)
    key, certificate = _authority(folder(spec.name) / "ca.pem")
    for path in sorted({one.bmc.authority for one in spec.racked if one.bmc and one.bmc.authority}):
        _publish(path, pem(certificate))
    for one in spec.racked:
        assert one.bmc is not None
        if not chain(spec.name, one.name).exists():
            _issue(spec.name, one, one.bmc.address, key, certificate)


def _authority(path: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    if path.exists():
        text = path.read_bytes()
        key = serialization.load_pem_private_key(text, password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key, x509.load_pem_x509_certificate(text)
    key, certificate = new_authority(CA_NAME)
    write_chain(path, key, certificate)
    return key, certificate


def new_authority(name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """A CA that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        **dict.fromkeys(("digital_signature", "content_commitment", "key_encipherment"), False),
        **dict.fromkeys(("data_encipherment", "key_agreement", "encipher_only", "decipher_only"), False),
        **dict.fromkeys(("key_cert_sign", "crl_sign"), True),
    )
    builder = _builder(subject, subject, key).add_extension(usage, critical=True)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return key, builder.sign(key, hashes.SHA256())


def new_certificate(
    address: str, name: str, signing: ec.EllipticCurvePrivateKey, issuer: x509.Certificate
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """A certificate of the server at an address."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    builder = (
        _builder(subject, issuer.subject, key)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
    )
    return key, builder.sign(signing, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _issue(
    rack: str, node: NodeSpec, address: str, key: ec.EllipticCurvePrivateKey, authority: x509.Certificate
) -> None:
    stranger = new_authority("another CA")
    write_chain(chain(rack, node.name, other=True), *new_certificate(address, node.name, *stranger))
    write_chain(chain(rack, node.name), *new_certificate(address, node.name, key, authority))


def write_chain(path: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    """A certificate and its key in one file, which is private."""
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    state.write_text(path, pem(certificate) + private.decode("ascii"), 0o600)


def _publish(path: Path, text: str) -> None:
    """Write the CA's certificate to its declared place, unless that has one that is not the lab's."""
    if path.exists():
        old = path.read_text(errors="replace")
        if old == text:
            return
        if not _is_ours(old):
            raise LabError(
                f"{path} is the declared CA of the BMCs and not the lab's: it is not replaced",
                hint="declare another path for the lab, e.g. `ca: .lab/bmc_ca.pem`",
            )
    keys.make_folder(path.parent)
    state.write_text(path, text)
    status = path.parent.stat()
    os.chown(path, status.st_uid, status.st_gid)


def _is_ours(text: str) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(text.encode())
    except ValueError:
        return False
    named = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return is_ca(certificate) and [name.value for name in named] == [CA_NAME]
