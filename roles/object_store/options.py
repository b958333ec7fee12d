"""Options of the object_store role.

Environment: "AWS SDKs and Tools Reference Guide" (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_CA_BUNDLE) and rclone's
documentation, "Environment Variables" (RCLONE_CONFIG_name_key), read 2026-11-26.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.mount_names import unit_name
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import IssuesCertificates
from rackwright.model.strings import HttpUrl, NodePath, SecretName
from rackwright.model.text import mistake

EndpointName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,19}$")]
"""Part of the names of variables: no dash."""
_Bucket = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
_Prefix = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]*/)+$")]
_MountPath = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9_][A-Za-z0-9._-]*){2,}$")]
UNITS = "/etc/systemd/system"
PREFIX = "rackwright-s3-"
"""How services of mounts begin."""


class Endpoint(Frozen):
    """One S3 endpoint."""

    url: HttpUrl = Field(description="e.g. https://s3.example.com")
    region: str = Field(
        default="us-east-1",
        pattern=r"^[a-z0-9-]{1,40}$",
        description="Region that requests are signed for; most stores outside AWS accept any.",
    )
    path_style: bool = Field(
        default=True,
        description="Buckets in the path and not in the host name, as most stores outside of AWS need.",
    )
    provider: Literal["AWS", "Ceph", "Minio", "Other"] = Field(
        default="Other", description="rclone's `provider`, for store-specific behaviour."
    )


class BucketMount(Frozen):
    """A bucket that services and users read as files."""

    endpoint: EndpointName = Field(description="Name of the endpoint.")
    bucket: _Bucket = Field(description="Bucket.")
    prefix: _Prefix | None = Field(default=None, description="Folder in it, with a slash at the end.")
    tool: Literal["rclone", "mountpoint-s3"] = Field(
        default="rclone",
        description="`rclone`: of the distribution. `mountpoint-s3`: AWS's own (`mount-s3`), which the site mirrors.",
    )
    access_key: SecretName = Field(
        description="Secret that holds the access key; the site adds it to the secrets store."
    )
    secret_key: SecretName = Field(description="Secret that holds the secret key, likewise.")
    cache: NodePath | None = Field(
        default=None,
        description="Folder for a read cache, e.g. on scratch. None: no cache on disk.",
    )
    cache_gib: int = Field(default=50, ge=1, le=1_000_000, description="GiB of that cache.")


class ObjectStoreOptions(RoleOptions, WritesUnitFiles):
    """S3 endpoints in the environment of login shells, and buckets mounted read-only."""

    endpoints: dict[EndpointName, Endpoint] = Field(min_length=1, description="Endpoints by name.")
    default: EndpointName | None = Field(
        default=None, description="Endpoint for AWS's tools and SDKs. None: the first one."
    )
    ca: Literal["site", "system"] | NodePath = Field(
        default="system",
        description="Which CA signs the endpoints' certificates: `site`: the role site_ca; `system`: what the distribution "
        "trusts; or a file of certificates (PEM) on the node.",
    )
    rclone: bool = Field(
        default=True, description="Whether rclone is installed and knows the endpoints by name."
    )
    mounts: dict[_MountPath, BucketMount] = Field(
        default_factory=dict, description="Mounted buckets by folder."
    )

    @model_validator(mode="after")
    def _names_endpoints(self) -> ObjectStoreOptions:
        named = [(self.default, "`default`")] if self.default is not None else []
        named += [(one.endpoint, f"the mount {path}") for path, one in self.mounts.items()]
        for name, where in named:
            if name not in self.endpoints:
                raise mistake(
                    f"{where} names {name}, which is not an endpoint.", f"one of: {', '.join(self.endpoints)}"
                )
        return self

    @property
    def default_endpoint(self) -> Endpoint:
        """What AWS's tools talk to."""
        return self.endpoints[self.default or next(iter(self.endpoints))]

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Keys of the mounts; users have their own."""
        keys = (key for one in self.mounts.values() for key in (one.access_key, one.secret_key))
        return tuple(dict.fromkeys(keys))

    @property
    def software(self) -> tuple[str, ...]:
        """What is installed, by the names of rackwright.osfamily."""
        tools = {one.tool for one in self.mounts.values()} | ({"rclone"} if self.rclone else set())
        return tuple(sorted(tools))

    def ca_file(self, node: Node) -> str | None:
        """File of certificates for the tools; None: what the distribution trusts."""
        if self.ca == "site":
            issues = node.offers(IssuesCertificates)
            return None if issues is None else issues.trust_file
        return None if self.ca == "system" else self.ca

    def unit_of(self, path: str) -> str:
        """The service of a mount."""
        return f"{PREFIX}{unit_name(path).removesuffix('.mount')}.service"

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Services of the mounts."""
        return tuple(f"{UNITS}/{self.unit_of(path)}" for path in self.mounts)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A CA that no role has, and mounts on top of declared filesystems."""
        for node in cluster.running("object_store", self):
            if self.ca == "site" and node.offers(IssuesCertificates) is None:
                yield (
                    "ca",
                    f"No role issues the site's certificates on {node.name}.",
                    "add `site_ca: {}` under `roles`",
                )
                return
            for path, mount in self.mounts.items():
                if mount.tool == "mountpoint-s3" and self.ca != "system":
                    yield (
                        f"mounts.{path}.tool",
                        "mountpoint-s3 trusts only the distribution's CAs, but `ca` is another file.",
                        "e.g. `tool: rclone`",
                    )
                    return
                for one in node.filesystems:
                    if path == one.path or path.startswith(f"{one.path}/") or one.path.startswith(f"{path}/"):
                        yield (
                            f"mounts.{path}",
                            f"{path} conflicts with {one.path}, where {node.name} has {one.name}.",
                            "mount each on a separate path",
                        )
                        return

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Keys and data in plain text."""
        for name, one in self.endpoints.items():
            if urlsplit(one.url).scheme == "http":
                yield (
                    f"endpoints.{name}.url",
                    f"{one.url} is not encrypted: every hop on the path can read the data.",
                    None,
                )
