"""Manifests as objects: read, completed, in an order that works. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object

_CLUSTER_WIDE = frozenset(
    {
        *(
            "Namespace",
            "Node",
            "PersistentVolume",
            "StorageClass",
            "CSIDriver",
            "CSINode",
            "VolumeAttachment",
        ),
        *("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "APIService", "PriorityClass"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"),
        *("ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
        *("RuntimeClass", "IngressClass", "FlowSchema", "PriorityLevelConfiguration", "DeviceClass"),
        *("PodSecurityPolicy", "VolumeAttributesClass", "ClusterTrustBundle", "CertificateSigningRequest"),
    }
)
"""Built-in kinds without a namespace: `kubectl api-resources --namespaced=false`."""
_FIRST = {"Namespace": 0, "CustomResourceDefinition": 1}
_HOOK = "helm.sh/hook"


class NotAManifest(ValueError):  # noqa: N818 - reads as the sentence it is
    """Text that holds something else than objects."""


def objects_of(text: str, namespace: str | None = None) -> list[Object]:
    """Objects of a manifest, lists unpacked, hooks of charts left out; namespaces and definitions first.

    `namespace`: of namespaced objects that name none, as `helm install` sets it. Raises NotAManifest.
    """
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise NotAManifest(f"not valid YAML: {str(error).splitlines()[0]}") from None
    found = [item for document in documents for item in _unpacked(document) if not _is_hook(item)]
    if not found:
        raise NotAManifest("no object of the Kubernetes API")
    if namespace is not None:
        own = {
            str(item["spec"]["names"]["kind"]): item["spec"].get("scope")
            for item in found
            if _is_definition(item)
        }
        found = [_placed(item, namespace, own) for item in found]
    return sorted(found, key=lambda item: _FIRST.get(str(item["kind"]), 2))


def _unpacked(document: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - YAML
    if document is None:
        return
    if (
        not isinstance(document, dict)
        or not isinstance(document.get("kind"), str)
        or "apiVersion" not in document
    ):
        raise NotAManifest("a document without apiVersion and kind")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _unpacked(item)
        return
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise NotAManifest(f"a {document['kind']} without a name")
    yield document


def _is_hook(item: Mapping[str, Any]) -> bool:
    return _HOOK in (item["metadata"].get("annotations") or {})


def _is_definition(item: Mapping[str, Any]) -> bool:
    return str(item["kind"]) == "CustomResourceDefinition"


def _placed(item: dict[str, Any], namespace: str, own: Mapping[str, Any]) -> dict[str, Any]:
    cluster_wide = item["kind"] in _CLUSTER_WIDE or own.get(item["kind"]) == "Cluster"
    if cluster_wide or item["metadata"].get("namespace"):
        return item
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


def images_of(objects: Iterable[Object]) -> list[str]:
    """Images of containers in objects, sorted; definitions of custom resources describe images and have none."""
    found: set[str] = set()
    for item in objects:
        if not _is_definition(item):
            found.update(_images(item))
    return sorted(found)


def _images(value: Any) -> Iterator[str]:  # noqa: ANN401 - YAML
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "image" and isinstance(inner, str) and inner:
                yield inner
            else:
                yield from _images(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _images(inner)


def relocated(objects: Iterable[Object], registries: Mapping[str, str]) -> list[Object]:
    """The objects with images of the site's registries; the longest prefix that fits decides."""
    if not registries:
        return list(objects)
    return [item if _is_definition(item) else _relocated(item, registries) for item in objects]


def _relocated(value: Any, registries: Mapping[str, str]) -> Any:  # noqa: ANN401 - YAML
    if isinstance(value, Mapping):
        return {
            key: at_site(inner, registries)
            if key == "image" and isinstance(inner, str)
            else _relocated(inner, registries)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_relocated(inner, registries) for inner in value]
    return value


def at_site(image: str, registries: Mapping[str, str]) -> str:
    """An image's reference after replacement; images without a registry are docker.io's."""
    first, slash, _ = image.partition("/")
    whole = (
        image
        if slash and ("." in first or ":" in first)
        else f"docker.io/{image if slash else f'library/{image}'}"
    )
    for prefix in sorted(registries, key=len, reverse=True):
        if whole.startswith(f"{prefix}/"):
            return registries[prefix] + whole.removeprefix(prefix)
    return image
