"""Mistakes in the accounts section that only show against the resolved cluster."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.boundary import Refused
from rackwright.certificates.read import is_ca
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.logins import DeclaresLogins
from rackwright.model.services import IssuesCertificates
from rackwright.roles.accounts import texts
from rackwright.roles.accounts.options import AccountsOptions

Problem = tuple[str, str, str | None]


def problems_of(options: AccountsOptions, cluster: Cluster) -> Iterator[Problem]:
    """All of them, in the order of the file."""
    yield from _one_directory(options, cluster)
    yield from _trust(options, cluster)
    yield from _groups(options)
    yield from _numbers(options, cluster)


def _one_directory(options: AccountsOptions, cluster: Cluster) -> Iterator[Problem]:
    for node in cluster.nodes:
        other = node.offers(AccountsOptions)
        if other is None:
            continue
        for name, value in options.identity.items():
            if other.identity[name] != value:
                yield (
                    name,
                    f"`{name}` differs on {node.name}: users would have other numbers there, or not exist.",
                    f"declare {', '.join(options.identity)} once, for all nodes",
                )
                return


def _trust(options: AccountsOptions, cluster: Cluster) -> Iterator[Problem]:
    if options.ca_file is not None:
        yield from _ca_file(options, cluster)
    elif not options.public_ca:
        for node in cluster.running("accounts", options):
            if node.offers(IssuesCertificates) is None:
                yield (
                    "",
                    f"Which CA signed the servers' certificates is not declared: {node.name} does not run the role site_ca.",
                    "give `ca_file`, declare `public_ca: true`, or run site_ca on every node",
                )
                return


def _ca_file(options: AccountsOptions, cluster: Cluster) -> Iterator[Problem]:
    try:
        found = texts.ca_certificates(cluster, options)
    except OSError as error:
        why = (error.strerror or "it cannot be opened").lower()
        yield (
            "ca_file",
            f"The certificate {options.ca_file} cannot be read: {why}.",
            "it is beside the cluster file",
        )
        return
    except Refused as error:
        yield (
            "ca_file",
            f"{options.ca_file} holds no certificates: {error}.",
            "give them as PEM, without keys",
        )
        return
    if not any(is_ca(one) for one in found):
        yield (
            "ca_file",
            f"{options.ca_file} holds no certificate of a CA.",
            "give that of the CA that signed the servers' certificates",
        )


def _groups(options: AccountsOptions) -> Iterator[Problem]:
    for field in ("allowed_groups", "sudo_groups"):
        for index, group in enumerate(getattr(options, field)):
            if group in texts.HIDDEN_GROUPS:
                yield (
                    f"{field}[{index}]",
                    f"{group} is a local group of the nodes, which ignore a directory group with this name.",
                    "use another group of the directory",
                )


def _numbers(options: AccountsOptions, cluster: Cluster) -> Iterator[Problem]:
    seen = set()
    for node in cluster.running("accounts", options):
        declared = node.offers(DeclaresUsers)
        for user in declared.accounts if declared is not None else ():
            if options.min_id <= user.uid <= options.max_id and user.name not in seen:
                seen.add(user.name)
                yield (
                    "min_id",
                    (
                        f"The declared user {user.name} has uid {user.uid}, which is one of the directory's numbers "
                        f"({options.min_id} to {options.max_id})."
                    ),
                    "choose `min_id` and `max_id` so that declared users are outside",
                )


def warnings_of(options: AccountsOptions, cluster: Cluster) -> Iterator[Problem]:
    """Allowed, but rarely intended."""
    if options.bind is None:
        yield (
            "bind",
            "The nodes read the directory without a login, and so can everyone else.",
            "declare `bind`",
        )
    if options.allowed_groups:
        for index, group in enumerate(options.sudo_groups):
            if group not in options.allowed_groups:
                yield (
                    f"sudo_groups[{index}]",
                    f"Members of {group} may become root but, unless they are in another allowed group, cannot log in.",
                    f"add {group} to `allowed_groups`",
                )
    for node in cluster.running("accounts", options):
        if options.ssh_key_attribute is not None and node.offers(DeclaresLogins) is None:
            yield (
                "",
                f"{node.name} does not run the role access: its sshd may take passwords of the directory's users.",
                "add the role `access`",
            )
            return
