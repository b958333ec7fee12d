"""Options of the cvmfs role.

Sources, read 2026-11-26: CernVM-FS documentation, "Client Configuration" (the files of /etc/cvmfs and their parameters) and
"Getting Started"; EESSI's documentation, "Native installation" (software.eessi.io, cvmfs-config-eessi).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.mount_names import unit_name
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import SetsProxy
from rackwright.model.strings import HttpUrl, NodePath, PackageName
from rackwright.model.text import mistake

EESSI = "software.eessi.io"
EESSI_CONFIG = "cvmfs-config-eessi"
UNITS = "/etc/systemd/system"
Fqrn = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+$")]
"""Fully qualified name of a repository."""
_PROXY = re.compile(r"https?://[A-Za-z0-9.-]+:[0-9]{1,5}")
_SERVER = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*/(@fqrn@|@org@|[A-Za-z0-9._-]+)"
)


class Repository(Frozen):
    """A repository, as far as no package of configuration describes it."""

    servers: tuple[str, ...] = Field(
        default=(),
        description="URLs of its replicas, nearest first, with @fqrn@ for its name: http://s1.example.com/cvmfs/@fqrn@",
    )
    keys: NodePath | None = Field(
        default=None, description="Folder of its public keys on the node, which the site puts there."
    )

    @field_validator("servers")
    @classmethod
    def _are_servers(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        for url in servers:
            if not _SERVER.fullmatch(url):
                raise mistake(
                    f"{url!r} is not the URL of a replica.", "e.g. `http://s1.example.com/cvmfs/@fqrn@`"
                )
        return servers

    @model_validator(mode="after")
    def _is_whole(self) -> Repository:
        if bool(self.servers) != (self.keys is not None):
            raise mistake(
                "`servers` and `keys` belong together: set both, or neither where a package has them."
            )
        return self


class CvmfsOptions(RoleOptions, WritesUnitFiles):
    """Repositories of CernVM-FS below /cvmfs."""

    eessi: bool = Field(
        default=False,
        description=f"Whether {EESSI} is mounted, the software stack of EESSI, with the package {EESSI_CONFIG}.",
    )
    repositories: dict[Fqrn, Repository] = Field(
        default_factory=dict, description="Further repositories by name, e.g. `atlas.cern.ch: {}`."
    )
    config_packages: tuple[PackageName, ...] = Field(
        default=("cvmfs-config-default",),
        description="Packages of repositories' addresses and keys, from the site's mirror.",
    )
    proxies: tuple[str, ...] = Field(
        default=(),
        description="HTTP proxies (squid) of the site, which share the load: http://10.0.0.10:3128. None: the proxy of the "
        "role `proxy`.",
    )
    direct: bool = Field(
        default=False,
        description="Whether nodes may contact the replicas directly when no proxy answers. A rack that does so puts "
        "load on public replicas.",
    )
    cache: NodePath = Field(default="/var/lib/cvmfs", description="Folder of the cache, e.g. on scratch.")
    cache_mib: int = Field(
        default=20000, ge=1000, le=10_000_000, description="MiB that the cache may take (CVMFS_QUOTA_LIMIT)."
    )
    timeout_seconds: int = Field(
        default=5, ge=1, le=60, description="How long to wait for one proxy or replica."
    )

    @field_validator("proxies")
    @classmethod
    def _are_proxies(cls, proxies: tuple[HttpUrl, ...]) -> tuple[HttpUrl, ...]:
        for url in proxies:
            if not _PROXY.fullmatch(url):
                raise mistake(f"{url!r} is not the address of a proxy.", "e.g. `http://10.0.0.10:3128`")
        return proxies

    @model_validator(mode="after")
    def _has_repositories(self) -> CvmfsOptions:
        if not self.mounted:
            raise mistake("No repository is declared.", "e.g. `eessi: true`")
        return self

    @property
    def mounted(self) -> dict[str, Repository]:
        """Every repository by name."""
        return {**({EESSI: Repository()} if self.eessi else {}), **self.repositories}

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages of configuration."""
        return tuple(dict.fromkeys((*self.config_packages, *((EESSI_CONFIG,) if self.eessi else ()))))

    def proxies_of(self, cluster: Cluster, node: Node) -> tuple[str, ...]:
        """Declared here, or the site's."""
        sets = node.offers(SetsProxy)
        if self.proxies or sets is None:
            return self.proxies
        given = sets.proxy_environment(cluster, node)
        url = (given.get("HTTP_PROXY") or "").rstrip("/")
        return (url,) if url else ()

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Mount and automount of each repository."""
        names = [unit_name(f"/cvmfs/{name}").removesuffix(".mount") for name in self.mounted]
        return tuple(f"{UNITS}/{name}.{kind}" for name in names for kind in ("mount", "automount"))

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Nodes with neither a proxy nor `direct: true`."""
        for node in cluster.running("cvmfs", self):
            if not self.proxies_of(cluster, node) and not self.direct:
                yield (
                    "proxies",
                    f"{node.name} has no proxy for CernVM-FS.",
                    "e.g. `proxies: [http://10.0.0.10:3128]`; for a few nodes `direct: true`",
                )
                return
            under = next((one for one in node.filesystems if self.cache.startswith(f"{one.path}/")), None)
            if under is not None and under.kind.shared:
                yield (
                    "cache",
                    f"{self.cache} is on {under.name}, which nodes share: each node needs a separate cache.",
                    "e.g. `cache: /scratch/cvmfs` on the node's own drives",
                )
                return
