"""The files of Alertmanager, besides its settings (rackwright.roles.alertmanager.settings)."""

from __future__ import annotations

from shlex import quote

import yaml

from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import USER
from rackwright.model.services import IssuesCertificates
from rackwright.render import render
from rackwright.roles.alertmanager.options import AlertmanagerOptions
from rackwright.roles.alertmanager.release import GOSSIP_NAMES, has

HEADER = "# written by rackwright\n"
AMTOOL_DEFAULTS = "/etc/prometheus/amtool.yml"
"""What amtool reads besides a file in its user's home directory (amtool --help)."""


def conf(node: Node, options: AlertmanagerOptions) -> str:
    """Alertmanager's settings."""
    return options.names(node).paths["conf"]


def notifications_file(options: AlertmanagerOptions) -> str:
    """How notifications read."""
    return f"{options.folder}/notifications.tmpl"


def secret_file(options: AlertmanagerOptions, secret: str) -> str:
    """A password, key or URL that a receiver needs, for Alertmanager alone."""
    return f"{secrets_folder(options)}/{secret}"


def secrets_folder(options: AlertmanagerOptions) -> str:
    """Files of secrets, and nothing else."""
    return f"{options.folder}/secrets"


def strange_secrets(options: AlertmanagerOptions) -> str:
    """A shell command that prints the names of files in that folder which nothing declares, one a line."""
    known = " ".join(f"-e {quote(name)}" for name in ("", *sorted(options.supplied_secrets)))
    return f"{{ ls -A {quote(secrets_folder(options))} 2>/dev/null | grep -vxF {known} || :; }}"


def remove_strange_secrets(options: AlertmanagerOptions) -> str:
    """A shell command that removes these files."""
    remove = "xargs -r -d '\\n' rm -f --"
    return f"{strange_secrets(options)} | (cd {quote(secrets_folder(options))} && {remove})"


def password_file(options: AlertmanagerOptions) -> str:
    """The password with which root on this node asks Alertmanager."""
    return f"{options.folder}/password"


def amtool_login(options: AlertmanagerOptions) -> str:
    """How amtool connects."""
    return f"{options.folder}/amtool.yml"


def gossip_file(options: AlertmanagerOptions) -> str:
    """Certificates of the pair."""
    return f"{options.folder}/gossip.yml"


def peers(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> tuple[Node, ...]:
    """The others of a pair."""
    return tuple(cluster.by_name[name] for name in options.nodes if name != node.name)


def is_gossip_secured(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> bool:
    """Whether a pair talks over TLS, each side with a certificate."""
    return bool(peers(cluster, node, options)) and options.secured(node)


def arguments(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    return (
        f"--config.file={conf(node, options)}",
        f"--storage.path={options.names(node).paths['data']}",
        f"--web.external-url={options.url(cluster, node)}/",
        *_gossip(cluster, node, options),
    )


def _gossip(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> tuple[str, ...]:
    others = peers(cluster, node, options)
    if not others:
        return ("--cluster.listen-address=",)
    secured = is_gossip_secured(cluster, node, options)
    return (
        f"--cluster.listen-address={cluster.management_address(node)}:{options.gossip_port}",
        *(f"--cluster.peer={cluster.management_address(one)}:{options.gossip_port}" for one in others),
        *((f"--cluster.tls-config={gossip_file(options)}",) if secured else ()),
    )


def gossip_yml(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> str | None:
    """Who may be the other of a pair; None where gossip is not encrypted."""
    certificate, ca = next(iter(options.certificates(cluster, node)), None), node.offers(IssuesCertificates)
    if certificate is None or ca is None or not peers(cluster, node, options):
        return None
    own = {"cert_file": certificate.chain, "key_file": certificate.key}
    allowed = [str(cluster.management_address(one)) for one in peers(cluster, node, options)]
    server = {
        **own,
        "client_ca_file": ca.trust_file,
        "client_auth_type": "RequireAndVerifyClientCert",
        **({"client_allowed_sans": allowed} if has(node.os, GOSSIP_NAMES) else {}),
    }
    config = {"tls_server_config": server, "tls_client_config": {**own, "ca_file": ca.trust_file}}
    return HEADER + yaml.safe_dump(config, sort_keys=False)


def amtool_defaults(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> str:
    """So that root needs to give amtool neither a URL nor a password."""
    config = {"alertmanager.url": options.url(cluster, node), "http.config.file": amtool_login(options)}
    return HEADER + yaml.safe_dump(config, sort_keys=False)


def amtool_yml(node: Node, options: AlertmanagerOptions) -> str:
    """User, file with the password, and whom it trusts."""
    ca = node.offers(IssuesCertificates)
    config: dict[str, object] = {
        "basic_auth": {"username": USER, "password_file": password_file(options)},
        **({"tls_config": {"ca_file": ca.trust_file}} if ca is not None else {}),
    }
    return HEADER + yaml.safe_dump(config, sort_keys=False)


def notifications(options: AlertmanagerOptions) -> str:
    """Subject and text of notifications."""
    return render("alertmanager/notifications.tmpl.j2", runbooks=options.runbooks or "")


def readable_files(cluster: Cluster, node: Node, options: AlertmanagerOptions) -> dict[str, str]:
    """Files without secrets, by path, besides the settings."""
    found = {
        notifications_file(options): notifications(options),
        AMTOOL_DEFAULTS: amtool_defaults(cluster, node, options),
        amtool_login(options): amtool_yml(node, options),
        gossip_file(options): gossip_yml(cluster, node, options),
    }
    return {path: text for path, text in found.items() if text is not None}
