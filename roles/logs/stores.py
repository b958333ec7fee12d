"""Options of the places where lines can be kept."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rackwright.model.options import Frozen
from rackwright.model.package_archive import PackageArchive, PackageVersion
from rackwright.model.strings import HttpUrl, Identifier, NodePath, SecretName
from rackwright.model.text import mistake

_SIZE = re.compile(r"[1-9][0-9]{0,5}[MGT]")
_FACTORS = {"M": 2**20, "G": 2**30, "T": 2**40}


def _is_size(size: str) -> str:
    if not _SIZE.fullmatch(size):
        raise mistake(f"{size} is not a size.", "e.g. `50G` or `512M`")
    return size


Size = Annotated[str, AfterValidator(_is_size)]


def size_bytes(size: str) -> int:
    """`2G` -> 2147483648."""
    return int(size[:-1]) * _FACTORS[size[-1]]


class JournalStore(Frozen):
    """Journal files of systemd-journal-remote on the server: the distribution's own software."""

    type: Literal["journal"] = "journal"
    port: int = Field(default=19532, ge=1, le=65535, description="TCP port on the management address.")
    max_use: Size = Field(
        default="50G",
        description="Disk space of all nodes' files; the oldest closed ones are removed beyond it, at any age.",
    )
    keep_free: Size = Field(default="10G", description="What is left free on that filesystem.")
    max_file: Size = Field(
        default="32M",
        description="Size at which a node's file is closed and a new one begun: only closed files are ever removed.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if size_bytes(self.max_file) < 8 * 2**20:  # what journal files are allocated in
            raise mistake("Journal files of less than 8M are not made.", "e.g. `max_file: 32M`")
        return self


class LokiStore(Frozen):
    """Grafana Loki on the server, Grafana Alloy on every node."""

    type: Literal["loki"]
    archive: PackageArchive | None = Field(
        default=None,
        description="Grafana's archive of packages, or the site's signed copy of it.",
    )
    version: PackageVersion | None = Field(
        default=None, description="Exact version of the package loki, e.g. `3.5.7`; held."
    )
    alloy_version: PackageVersion | None = Field(
        default=None, description="Exact version of the package alloy, e.g. `1.11.3-1`; held."
    )
    port: int = Field(default=3100, ge=1, le=65535, description="TCP port on the management address.")
    folder: NodePath = Field(
        default="/var/lib/loki", description="Where Loki keeps chunks and index, on the server."
    )
    since: str = Field(
        default="2025-01-01",
        pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$",
        description="From when on the index has today's form (schema_config). Never changed once lines are kept.",
    )
    rate_mb: int = Field(
        default=64, ge=1, le=10_000, description="MB a second that all nodes together may send."
    )
    burst_mb: int = Field(default=128, ge=1, le=10_000, description="MB that may come at once.")
    stream_rate_mb: int = Field(
        default=8, ge=1, le=1000, description="MB a second of one unit on one node: a flood takes no more."
    )

    @model_validator(mode="after")
    def _is_loki(self) -> Self:
        if self.version is not None and int(re.sub(r"^[0-9]+:", "", self.version).partition(".")[0]) < 3:
            raise mistake(
                f"Loki {self.version} keeps no structured metadata, in which a line's job is; and the distribution's "
                "package loki, a program for genetics, has version 2.",
                "e.g. `version: 3.5.7`",
            )
        return self


Origin = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$")]
"""Where a server answers, without a path: the shippers add theirs."""


class Login(Frozen):
    """A user of the search cluster."""

    user: Identifier = Field(description="Its name, e.g. `rackwright_writer`.")
    stored_as: SecretName = Field(
        description="Name of the password in the secrets store: put it there with `rackwright secrets put`. It is "
        "never generated."
    )


class SearchStore(Frozen):
    """What Elasticsearch and OpenSearch have in common: a cluster that the site runs, with its own certificates and users."""

    urls: tuple[Origin, ...] = Field(
        min_length=1,
        max_length=20,
        description="Where it answers, e.g. `[https://search1.example.com:9200]`.",
    )
    sends: Login = Field(
        description="As whom nodes send: it needs the right to add documents to the data streams alone."
    )
    manages: Login = Field(
        description="As whom the server sets up templates, pipelines and policies, and reads for `rackwright logs`."
    )
    ca: NodePath | None = Field(
        default=None,
        description="File on every node with the CA that signed the cluster's certificate, PEM. None: CAs that the OS trusts.",
    )
    prefix: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,30}$")] = Field(
        default="rackwright", description="Beginning of the names of data streams, templates and policies."
    )
    dashboards_url: HttpUrl | None = Field(
        default=None,
        description="Where Kibana or OpenSearch Dashboards answers; None: the saved objects are a file on the server.",
    )
    shards: int = Field(default=1, ge=1, le=100, description="Primary shards of each index.")
    replicas: int = Field(default=1, ge=0, le=10, description="Copies of each; 0 on a cluster of one node.")
    rollover_gb: int = Field(
        default=30, ge=1, le=50, description="GB at which a shard is full and a new index begun."
    )

    @model_validator(mode="after")
    def _is_encrypted(self) -> Self:
        if plain := [url for url in (*self.urls, self.dashboards_url or "") if url.startswith("http://")]:
            raise mistake(
                f"Passwords would cross the network in the clear to {plain[0]}.", "use its https URL"
            )
        if self.sends.user == self.manages.user:
            raise mistake(
                "Every node would have the rights to remove all lines.",
                "give `sends` a user that may only add documents",
            )
        return self


class ElasticStore(SearchStore):
    """Elasticsearch, to which Filebeat sends."""

    type: Literal["elastic"]
    archive: PackageArchive | None = Field(
        default=None, description="Elastic's archive of packages, or the site's signed copy of it."
    )
    filebeat_version: PackageVersion | None = Field(
        default=None,
        description="Exact version of the package filebeat, e.g. `8.19.4`; held. Its journald input is final from 8.16 on.",
    )


class OpensearchStore(SearchStore):
    """OpenSearch, to which rsyslog sends."""

    type: Literal["opensearch"]
    queue: Size = Field(
        default="1G", description="Disk space on each node for lines that the cluster has not taken yet."
    )


Store = Annotated[
    JournalStore | LokiStore | ElasticStore | OpensearchStore,
    Field(discriminator="type"),
]
