"""Files that kube-apiserver reads: encryption at rest, audit policy, admission. Pure functions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import yaml

from rackwright.kubernetes.versions import enforces_pod_security
from rackwright.render import render
from rackwright.roles.kubernetes.releases import release_of

if TYPE_CHECKING:
    from rackwright.roles.kubernetes.options import KubernetesOptions

FOLDER = "/etc/kubernetes/apiserver"
ENCRYPTION = f"{FOLDER}/encryption.yaml"
"""Names no digest: a change of the key is a rotation (docs/kubernetes.md)."""


def encryption_text(key: str) -> str:
    """The key is 32 bytes in base64; secrets that were written unencrypted are still read (`identity`)."""
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [
            {
                "resources": ["secrets"],
                "providers": [{"secretbox": {"keys": [{"name": "key1", "secret": key}]}}, {"identity": {}}],
            }
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)


def audit_text() -> str:
    """Who changed what; no bodies of secrets, no reads by the system itself."""
    return render("kubernetes/audit-policy.yaml.j2")


def admission_text(options: KubernetesOptions) -> str:
    """The PodSecurity level of namespaces that name none."""
    level = options.pod_security
    api = "pod-security.admission.config.k8s.io/" + (
        "v1" if release_of(options.version).minor >= 25 else "v1beta1"
    )
    configuration: dict[str, Any] = {
        "apiVersion": api,
        "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": level, "enforce-version": "latest", "warn": "restricted"},
        "exemptions": {"namespaces": ["kube-system"]},
    }
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "PodSecurity", "configuration": configuration}],
    }
    return yaml.safe_dump(document, sort_keys=False)


def audit_path(options: KubernetesOptions) -> str:
    """The content is in the name: kube-apiserver reads the file only when it starts, and another name restarts it."""
    return f"{FOLDER}/audit-{_digest(audit_text())}.yaml"


def admission_path(options: KubernetesOptions) -> str:
    """As for the audit policy."""
    return f"{FOLDER}/admission-{_digest(admission_text(options))}.yaml"


def files(options: KubernetesOptions) -> dict[str, str]:
    """Those without secrets, by path."""
    found = {}
    if options.audit.enabled:
        found[audit_path(options)] = audit_text()
    if enforces_pod_security(options.version):
        found[admission_path(options)] = admission_text(options)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
