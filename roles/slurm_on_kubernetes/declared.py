"""Everything that the role declares in the cluster, by flavour: objects, and secrets apart from them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rackwright.roles.slurm_on_kubernetes import frame, services, slinky, soperator, workers
from rackwright.roles.slurm_on_kubernetes.places import slurm_of

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions


class DeclaredSecret(NamedTuple):
    """A Secret of the API: the name of a value in the secrets store by its key."""

    name: str
    values: tuple[tuple[str, str], ...]


def objects(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """In the order in which they are applied."""
    found = [frame.namespace(options)]
    if options.flavour == "slinky":
        return found + slinky.objects(options, cluster)
    if options.flavour == "soperator":
        return found + soperator.objects(options, cluster)
    found += frame.objects(options, cluster)
    return found + services.objects(options, cluster) + workers.objects(options, cluster)


def secrets(options: SlurmOnKubernetesOptions, cluster: Cluster) -> tuple[DeclaredSecret, ...]:
    """Those that the pods of the flavour mount."""
    password = DeclaredSecret("slurm-database", (("password", slurm_of(cluster).storage_secret),))
    login = DeclaredSecret("slurm-login", (("ssh_host_ed25519_key", "slurm_login_ssh_key"),))
    jwt = DeclaredSecret("slurm-jwt", (("jwt.key", "slurm_jwt_key"),))
    if options.flavour == "slinky":
        return (DeclaredSecret("slurm-auth", (("slurm.key", "slurm_auth"),)), password, jwt)
    munge = DeclaredSecret("munge", (("munge.key", "munge_key"),))
    if options.flavour == "soperator":
        return (munge, password, login)
    return (munge, password, *([login] if options.login.enabled else []))


def contents(secret: DeclaredSecret, reveal: Callable[[str], str]) -> dict[str, bytes]:
    """Values by key, as files of a pod have them; keys of the store that are base64 are decoded."""
    return {key: decoded(name, reveal(name)) for key, name in secret.values}


def decoded(name: str, value: str) -> bytes:
    """A secret as bytes: base64 where the store keeps it so."""
    if name not in ("munge_key", "slurm_jwt_key"):
        return value.encode()
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:  # the placeholder of an offline plan
        return value.encode()
