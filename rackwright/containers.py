"""Options that all container runtimes of a node share: where they run, mirror, limits and networks."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import IssuesCertificates, ServesRegistries
from rackwright.model.strings import HttpUrl, RegistryName, RegistryUser, SecretName
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole

Problem = tuple[str, str, str | None]
EMPTY: Mapping[str, str] = MappingProxyType({})


class RuntimeOptions(RoleOptions):
    """Base of the options of roles that run containers."""

    on: tuple[NodeRole, ...] = Field(
        default=(NodeRole.WORKER,),
        min_length=1,
        description="Node roles whose nodes get it; it is not installed on other nodes.",
    )

    def runs_on(self, node: Node) -> bool:
        """On nodes that hold one of `on`."""
        return super().runs_on(node) and node.holds(*self.on)


class RegistryAuth(Frozen):
    """A login at a registry. Its password is in the secrets store, never in the cluster file."""

    user: RegistryUser = Field(description="User or robot account, e.g. `ci`; for nvcr.io `$oauthtoken`.")
    stored_as: SecretName = Field(
        description="Name of the password in the secrets store, e.g. `registry_ci`: add it with `rackwright "
        "secrets put`. It is never generated."
    )


class RegistryAccess(Frozen):
    """How nodes reach one registry."""

    plain_http: bool = Field(
        default=False,
        description="Use plain HTTP: an attacker on the path can change images and read the password.",
    )
    ca: Path | None = Field(
        default=None,
        description="PEM certificate of the CA that signed the registry's, next to the cluster file. None: "
        "the site's CA for registries of the cluster (role site_ca), else one that the OS trusts.",
    )
    auth: RegistryAuth | None = Field(
        default=None, description="root's login, to pull and push. None: no login."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.plain_http and self.ca is not None:
            raise ValueError("A registry cannot have both `ca` and `plain_http`: remove one of them.")
        return self


class PullingOptions(RuntimeOptions):
    """Of runtimes that pull images: through the cluster's `mirrors.containers`, where it names one."""

    certificates: ClassVar[str]
    """Where the runtime looks for the CA of a registry: a folder with one folder for each registry."""

    registries: dict[RegistryName, RegistryAccess] = Field(
        default_factory=dict,
        description="Registries by host[:port] that need more than HTTPS with a trusted certificate, e.g. "
        "{registry.example.com:5000: {ca: site-ca.pem, auth: {user: ci, stored_as: registry_ci}}}.",
    )
    memlock_mib: int | Literal["unlimited"] = Field(
        default="unlimited",
        description="Locked memory limit of a container in MiB. RDMA pins its buffers, so fabrics need `unlimited` "
        "(rdma-core and NCCL fail to register memory below it).",
    )
    nofile: int = Field(
        default=1048576, ge=1024, le=1073741816, description="Open files limit of a process in a container."
    )

    @field_validator("memlock_mib")
    @classmethod
    def _is_positive(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError("memlock_mib must be a number of MiB of at least 1, or `unlimited`.")
        return value

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, given: object) -> object:
        if isinstance(given, dict) and "insecure_registries" in given:
            raise mistake(
                "`insecure_registries` no longer exists: declare plain HTTP for each registry.",
                'e.g. `registries: {"10.1.0.10:5000": {plain_http: true}}`',
            )
        return given

    @property
    def plain_http(self) -> tuple[str, ...]:
        """Registries that are declared to have no TLS."""
        return tuple(name for name, access in self.registries.items() if access.plain_http)

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Passwords of the registries."""
        return tuple(access.auth.stored_as for access in self.registries.values() if access.auth is not None)

    def url(self, name: str) -> str:
        """URL of a registry: https, unless it is declared otherwise."""
        return f"{'http' if name in self.plain_http else 'https'}://{name}"

    def ca_path(self, name: str) -> str | None:
        """The declared CA of a registry on a node."""
        access = self.registries.get(name)
        return f"{self.certificates}/{name}/ca.crt" if access is not None and access.ca is not None else None

    def trust_links(self, cluster: Cluster, node: Node) -> dict[str, str]:
        """Links to the site's CA by path, for registries of the cluster that have its certificates."""
        trust = trust_file(node)
        if trust is None:
            return {}
        return {
            f"{self.certificates}/{name}/ca.crt": trust
            for name in site_registries(cluster)
            if name not in self.plain_http and self.ca_path(name) is None
        }

    def trusted_by(self, cluster: Cluster, node: Node, name: str) -> str | None:
        """The file with which the runtime trusts a registry; None: what the OS trusts."""
        path = f"{self.certificates}/{name}/ca.crt"
        return self.ca_path(name) or (path if path in self.trust_links(cluster, node) else None)

    def ca_files(self, cluster: Cluster) -> dict[str, str]:
        """Certificate by path on a node. Raises OSError, or ValueError if a file is not ASCII text."""
        return {
            f"{self.certificates}/{name}/ca.crt": (cluster.path.parent / access.ca).read_text("ascii")
            for name, access in self.registries.items()
            if access.ca is not None
        }

    def basic_auth(self, name: str, secret: Callable[[str], str]) -> str | None:
        """The login at a registry as clients send and store it: base64 of `user:password`."""
        access = self.registries.get(name)
        if access is None or access.auth is None:
            return None
        return b64encode(f"{access.auth.user}:{secret(access.auth.stored_as)}".encode()).decode()

    def auth_json(self, secret: Callable[[str], str], keys: Mapping[str, str] = EMPTY) -> str | None:
        """root's file of logins, as docker and podman read it; None without any. `keys`: names it has for registries."""
        logins = {keys.get(name, name): self.basic_auth(name, secret) for name in self.registries}
        auths = {name: {"auth": auth} for name, auth in sorted(logins.items()) if auth is not None}
        return json.dumps({"auths": auths}, indent=2) + "\n" if auths else None

    def warnings(self, cluster: Cluster) -> Iterable[Problem]:
        """Passwords that cross the network in the clear."""
        for name, access in self.registries.items():
            if access.plain_http and access.auth is not None:
                yield (
                    f'registries["{name}"].auth',
                    f"The password of {access.auth.user} crosses the network unencrypted.",
                    "give the registry a certificate, and remove `plain_http`",
                )

    @property
    def memlock_bytes(self) -> int:
        """The limit in bytes; -1 for none."""
        return -1 if self.memlock_mib == "unlimited" else int(self.memlock_mib) << 20

    def mirror(self, cluster: Cluster) -> str | None:
        """URL of the cluster's mirror of docker.io."""
        name = cluster.mirrors.containers
        return None if name is None else self.url(name)


def trust_file(node: Node) -> str | None:
    """The certificate of the site's CA on a node; None where it has none."""
    issues = node.offers(IssuesCertificates)
    return None if issues is None else issues.trust_file


def site_registries(cluster: Cluster) -> tuple[str, ...]:
    """Host and port of the cluster's registries that have certificates of the site's CA."""
    serving = (node.offers(ServesRegistries) for node in cluster.nodes)
    return tuple(name for one in serving if one is not None for name in one.registry_names(cluster))


class DaemonOptions(PullingOptions):
    """Of docker and containerd: distributions and Docker's own repository ship containerd in packages that
    exclude each other (containerd, containerd.io), so all such roles of a node have one source.
    """

    source: Literal["distribution", "docker"] = "distribution"
    repository: HttpUrl = Field(
        default="https://download.docker.com/linux",
        description="Base URL of Docker's repository or the site's copy of it, for `source: docker`.",
    )


class AddressPool(Frozen):
    """A range that is divided into one subnet for each container network."""

    base: IPv4Network = Field(description="The whole range; it must not overlap any declared network.")
    size: int = Field(default=24, ge=8, le=30, description="Prefix length of each subnet.")


def registry_problems(options: PullingOptions, cluster: Cluster) -> Iterator[Problem]:
    """Certificates that are not there, or are something else; plain HTTP where the registry speaks TLS."""
    for name in sorted(set(options.plain_http) & set(site_registries(cluster))):
        yield (
            f'registries["{name}"].plain_http',
            f"The registry {name} has a certificate of the site's CA and does not accept plain HTTP.",
            "remove `plain_http`",
        )
    for name, access in options.registries.items():
        if access.ca is None:
            continue
        path = f'registries["{name}"].ca'
        try:
            text = (cluster.path.parent / access.ca).read_text("ascii")
        except (OSError, ValueError) as error:
            why = (
                (error.strerror or "it is unreadable").lower()
                if isinstance(error, OSError)
                else "it is not text"
            )
            yield path, f"Cannot read {access.ca}: {why}.", "the path is relative to the cluster file"
            continue
        if "-----BEGIN CERTIFICATE-----" not in text or "PRIVATE KEY" in text:
            yield path, f"{access.ca} must contain only certificates.", "use the CA's certificate in PEM"


def pool_problems(cluster: Cluster, pools: Iterable[tuple[str, IPv4Network]]) -> Iterator[Problem]:
    """Ranges of container networks that would hide a network of the cluster from the nodes."""
    for path, pool in pools:
        for network in cluster.networks.values():
            if pool.overlaps(network.cidr):
                yield (
                    path,
                    (
                        f"The range {pool} overlaps the network {network.name}, {network.cidr}: nodes with "
                        "containers would no longer reach it."
                    ),
                    "choose a private range that no site network uses",
                )


def source_problems(role: str, options: DaemonOptions, cluster: Cluster) -> Iterator[Problem]:
    """A source that a node's distribution does not have, or two sources of containerd on one node."""
    for node in cluster.running(role, options):
        if options.source == "distribution" and not node.os.container_daemons[role]:
            yield (
                "source",
                f"{node.name} runs {role}, but {node.os} has no package for it.",
                "set `source: docker` for Docker's own repository, or use podman",
            )
            return
        for other, given in node.options.items():
            if isinstance(given, DaemonOptions) and given.source != options.source:
                yield (
                    "source",
                    (
                        f"{node.name} would get {role} from {options.source} and {other} from {given.source}; "
                        "their containerd packages conflict."
                    ),
                    f"use the same source for {role} and {other}",
                )
                return


def user_problems(
    cluster: Cluster, role: str, options: RoleOptions, users: Iterable[str]
) -> Iterator[Problem]:
    """Users of a role that no role on its nodes creates."""
    for node in cluster.running(role, options):
        declared = node.offers(DeclaresUsers)
        known = {account.name for account in declared.accounts} if declared is not None else set()
        for index, name in enumerate(users):
            if name not in known:
                yield (
                    f"users[{index}]",
                    f"{node.name} has no user {name} in the access role.",
                    "declare the user under `roles.access.users`",
                )
                return
