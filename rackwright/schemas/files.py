"""Documents about the cluster file and what belongs to it: validate, show, lock, catalogue, secrets, lab, machines."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rackwright.clusterfile.origins import Value
from rackwright.errors import Problem
from rackwright.install.inventory import Inventory
from rackwright.lab.status import NodeStatus
from rackwright.lock.content import GroupLock
from rackwright.model.sku import Sku
from rackwright.schemas.base import ClusterName, Document, Open, Part


class Validate(Document):
    """`validate`: every mistake of a cluster file, and warnings, in file order."""

    kind: Literal["rackwright.validate"]
    file: str
    valid: bool
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


class Show(Document):
    """`show`: every resolved value with where it comes from."""

    kind: Literal["rackwright.show"]
    file: str
    node: str | None = Field(description="The node of `--node`; null: the whole cluster.")
    values: tuple[Value, ...]
    nodes: tuple[str, ...] | None = Field(default=None, description="Without `--node`: every name.")
    details: tuple[Open, ...] | None = Field(
        default=None, description="Without `--node`: what it takes to make a machine for each node."
    )


class ListedSku(Part):
    """A node model of the catalogue."""

    name: str
    description: str


class Catalog(Document):
    """`catalog`: the list of node models, one of them, or a shared table."""

    kind: Literal["rackwright.catalog"]
    skus: tuple[ListedSku, ...] | None = None
    sku: Sku | None = None
    unknown: tuple[str, ...] | None = Field(
        default=None, description="Paths of the model without a known value."
    )
    table: Open | None = Field(default=None, description="`about`, `sources` and `rows`.")


class LockReason(Part):
    """Why something was refused."""

    message: str
    hint: str | None


class Refused(Part):
    """A kind of node that no stack fits."""

    sku: str
    os: str
    source: str
    reasons: tuple[LockReason, ...]


class Remaining(Part):
    """What is still to do before anything is installed."""

    where: str
    message: str
    hint: str | None


class Lock(Document):
    """`lock`: the exact versions of the GPU stack."""

    kind: Literal["rackwright.lock"]
    file: str
    lock: str = Field(description="Path of the lock.")
    state: str
    tables: dict[str, str] = Field(description="Day of each table that was used.")
    groups: tuple[GroupLock, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...]
    remaining: tuple[Remaining, ...]


class Render(Document):
    """`render`: every file a node would get; secrets are placeholders."""

    kind: Literal["rackwright.render"]
    cluster: str = ClusterName
    node: str
    files: dict[str, str] = Field(description="Text by path.")


class Secret(Part):
    """A secret, without its value."""

    name: str
    changed: str | None = Field(description="When it last changed; null: not known.")
    rotation_unfinished: bool
    seen_by_removed: tuple[str, ...] = Field(
        description="Removed recipients that may have kept it: rotate it."
    )


class Secrets(Document):
    """`secrets list`: the names of the secrets; values are never printed."""

    kind: Literal["rackwright.secrets"]
    cluster: str = ClusterName
    secrets: tuple[Secret, ...]


class Recipient(Part):
    """A public key."""

    key: str
    own: bool = Field(description="Whether it is this user's.")
    decrypts: bool = Field(description="Whether it can decrypt the store now; false: from the next apply on.")


class Recipients(Document):
    """`secrets show-recipients`: who can decrypt the store."""

    kind: Literal["rackwright.secrets.recipients"]
    cluster: str = ClusterName
    recipients: tuple[Recipient, ...]


class LabStatus(Document):
    """`lab status`: the nodes of a rack."""

    kind: Literal["rackwright.lab.status"]
    name: str
    up: bool = Field(description="Every node without a declared fault is ready, and every BMC is served.")
    mirror: str
    nodes: tuple[NodeStatus, ...]


class Drilled(Part):
    """One drill."""

    alert: str
    fault: str
    node: str | None
    outcome: Literal["passed", "not fired", "not resolved", "skipped", "error"]
    fired_after_seconds: float | None
    resolved_after_seconds: float | None
    detail: str


class Drill(Document):
    """`drill alerts`: whether each alert fired and resolved."""

    kind: Literal["rackwright.drill.alerts"]
    cluster: str = ClusterName
    drills: tuple[Drilled, ...]


class Discover(Document):
    """`discover`: what was found in each machine."""

    kind: Literal["rackwright.discover"]
    cluster: str = ClusterName
    machines: dict[str, Inventory] = Field(description="By node.")


class Certificates(Document):
    """`decommission`: the certificate of each erasure."""

    kind: Literal["rackwright.decommission"]
    cluster: str = ClusterName
    certificates: dict[str, dict[str, Any]] = Field(
        description="By node; docs/bare-metal.md has their fields."
    )
