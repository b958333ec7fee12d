"""The cluster's certificate authorities, from the secrets store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from rackwright.certificates.authority import SigningKey, own_certificate
from rackwright.certificates.clients import client_kubeconfig
from rackwright.certificates.read import pem

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

FOLDER = "/etc/kubernetes/pki"
_DAYS = 3650
_JOIN_MINUTES = 60
"""Longer than a run waits for the control plane, and short enough to be worth nothing afterwards."""
_AUTHORITIES = {
    "ca": ("kubernetes_ca_key", "kubernetes"),
    "etcd/ca": ("kubernetes_etcd_ca_key", "etcd-ca"),
    "front-proxy-ca": ("kubernetes_front_proxy_ca_key", "front-proxy-ca"),
}
"""By file below the folder: its secret, and its name."""
Reveal = Callable[[str], str]


@dataclass(frozen=True)
class PkiFile:
    """One file of a control-plane node."""

    path: str
    text: str
    secret: bool

    def __repr__(self) -> str:
        return f"PkiFile({self.path})"


def authority(cluster: Cluster, name: str, secret: Reveal) -> tuple[SigningKey, x509.Certificate]:
    """Key and certificate of an authority; SecretsError where the secret is none that rackwright generated."""
    key_secret, common_name = _AUTHORITIES[name]
    return own_certificate(secret(key_secret), name=common_name, organization=cluster.name, days=_DAYS)


def files(cluster: Cluster, secret: Reveal) -> tuple[PkiFile, ...]:
    """What kubeadm finds and uses instead of making its own."""
    found = []
    for name in _AUTHORITIES:
        key, certificate = authority(cluster, name, secret)
        found.append(PkiFile(f"{FOLDER}/{name}.crt", pem(certificate), secret=False))
        found.append(PkiFile(f"{FOLDER}/{name}.key", _private(key), secret=True))
    signing = secret("kubernetes_service_account_signing_key")
    public = serialization.load_pem_private_key(signing.encode(), password=None).public_key()
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    found.append(PkiFile(f"{FOLDER}/sa.key", signing, secret=True))
    found.append(PkiFile(f"{FOLDER}/sa.pub", public.public_bytes(*form).decode(), secret=False))
    return tuple(found)


def imagined() -> tuple[PkiFile, ...]:
    """The same files without their content, where no secret is at hand (`rackwright render`)."""
    names = [f"{name}.{kind}" for name in _AUTHORITIES for kind in ("crt", "key")]
    return tuple(
        PkiFile(f"{FOLDER}/{name}", f"(from the secrets store: {name})\n", secret=name.endswith(".key"))
        for name in (*names, "sa.key", "sa.pub")
    )


def join_kubeconfig(options: KubernetesOptions, cluster: Cluster, node: Node, secret: Reveal) -> str:
    """With which a node joins: as itself; a control-plane node as an administrator, for that long."""
    user, groups = f"system:node:{node.name}", ["system:nodes"]
    if options.runs_control_plane(node):
        user, groups = "rackwright-join", ["system:masters"]
    server = f"https://{options.endpoint(cluster)}"
    issuer = authority(cluster, "ca", secret)
    return client_kubeconfig(issuer, server, user, groups, datetime.now(UTC), _JOIN_MINUTES)


def _private(key: SigningKey) -> str:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()
