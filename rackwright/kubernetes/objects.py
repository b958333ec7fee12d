"""Objects of the Kubernetes API as roles declare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

Object = Mapping[str, Any]
"""One object as the API has it: `apiVersion`, `kind`, `metadata`, and what its kind adds."""

MANAGED_BY = "app.kubernetes.io/managed-by"
ROLE = "rackwright.dev/role"
FOLDER = "/etc/kubernetes/rackwright"
"""On the primary control-plane node: what each role declares, and the list of what it applied."""


@dataclass(frozen=True, order=True)
class Identity:
    """What makes an object one and the same."""

    kind: str
    """As kubectl takes it: `deployment.apps`; core kinds have no group: `service`."""
    namespace: str
    """Empty for what belongs to the cluster, and for the default namespace of a kind that has one."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" + (f" in {self.namespace}" if self.namespace else "")


def identity(item: Object) -> Identity:
    """The identity of an object."""
    group, slash, _ = item["apiVersion"].partition("/")
    kind = item["kind"].lower() + (f".{group}" if slash else "")
    metadata = item["metadata"]
    return Identity(kind, metadata.get("namespace", ""), metadata["name"])


def labelled(role: str, objects: Iterable[Object]) -> list[Object]:
    """The objects with the labels by which a role recognizes its own."""
    return [_labelled(role, item) for item in objects]


def _labelled(role: str, item: Object) -> Object:
    metadata = item["metadata"]
    labels = {**metadata.get("labels", {}), MANAGED_BY: "rackwright", ROLE: role}
    return {**item, "metadata": {**metadata, "labels": labels}}


def yaml_text(objects: Sequence[Object]) -> str:
    """Documents that kubectl reads, in the order given: namespaces and definitions go first."""
    return yaml.safe_dump_all(map(_plain, objects), sort_keys=False, default_flow_style=False, width=120)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Mappings and sequences as dict and list, each a new one: YAML would write shared ones as anchors."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def document_objects(objects: Sequence[Object]) -> list[dict[str, Any]]:
    """The objects as plain dicts and lists, as a reader of the text has them."""
    return [_plain(item) for item in objects]
