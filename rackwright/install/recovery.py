"""Recovery keys of encrypted nodes, for when the TPM or the Tang server cannot unlock the root."""

from __future__ import annotations

from rackwright.errors import InstallError, SecretsError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import Encryption
from rackwright.secrets.store import store_of

SECRET = "install_recovery_key"


def recovery_key(cluster: Cluster, node: Node) -> str | None:
    """The passphrase of the node's disks, from the secrets store; None if they are not encrypted."""
    if node.install is None or node.install.encryption is Encryption.NONE:
        return None
    try:
        return store_of(cluster).get(SECRET).reveal()
    except SecretsError as error:
        raise InstallError(
            f"The disks of {node.name} must be encrypted, but the recovery key is missing: {error.message}",
            hint=f"rackwright secrets put {SECRET} FILE < recovery-key",
        ) from error
