"""Which secrets are generated and so can be rotated, and how to replace the others."""

from __future__ import annotations

from rackwright.errors import SecretsError
from rackwright.model.cluster import Cluster
from rackwright.model.services import IssuesCertificates
from rackwright.secrets.names import DRIFT_NOTIFY_URLS, DRIFT_SSH_KEY


def replace_command(cluster: Cluster, name: str) -> str:
    """The command that replaces a secret by a new value."""
    if name == DRIFT_NOTIFY_URLS:  # each checker has a copy, which `secrets put` alone leaves as it is
        return f"rackwright drift install {cluster.path} --every TIME --notify @URLS.txt"
    return f"rackwright secrets {'rotate' if is_generated(cluster, name) else 'put'} {name} {cluster.path}"


def is_generated(cluster: Cluster, name: str) -> bool:
    """Whether the secret is one that rackwright generates for this cluster and can replace, and not the site's."""
    if name in _ca_keys(cluster):
        return False
    return name == DRIFT_SSH_KEY or (name in _names(cluster) and name not in _names(cluster, supplied=True))


def refuse_supplied(cluster: Cluster, name: str) -> None:
    """SecretsError for a secret of which another service decides: a generated value would lock the nodes out."""
    if is_generated(cluster, name):
        return
    if name in _ca_keys(cluster):
        raise SecretsError(
            f"{name} cannot be rotated: nodes reject certificates of a new CA until all of them trust it. Nothing was "
            "changed.",
            hint="replace the CA in three applies, with both trusted in between: docs/site-ca.md",
        )
    if name == DRIFT_NOTIFY_URLS or name in _names(cluster, supplied=True):
        why = "the site supplies it, and its service would reject a generated value"
    else:
        why = f"no role of {cluster.path} generates it, so it may be a password of another service"
    raise SecretsError(
        f"{name} cannot be rotated: {why}. Nothing was changed.",
        hint=f"change it in that service, then run: {replace_command(cluster, name)}",
    )


def _ca_keys(cluster: Cluster) -> set[str]:
    return {
        options.key_secret
        for node in cluster.nodes
        for options in node.options.values()
        if isinstance(options, IssuesCertificates)
    }


def _names(cluster: Cluster, *, supplied: bool = False) -> set[str]:
    return {
        name
        for node in cluster.nodes
        for options in node.options.values()
        for name in (options.supplied_secrets if supplied else options.secrets)
    }
