"""Where an add-on's objects come from: a manifest or a chart beside the cluster file."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rackwright.catalog import addons as catalogue
from rackwright.catalog.table_files import addon_table
from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.kubernetes_offers import SetsChartValues
from rackwright.model.mirrored import MirrorItem
from rackwright.roles.kubernetes_addons.manifests import NotAManifest, images_of, objects_of, relocated

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.kubernetes_addons.options import Addon, KubernetesAddonsOptions

_HELM_SECONDS = 120


class Unusable(Exception):  # noqa: N818 - reads as the sentence it is
    """An add-on's file cannot be used; has a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Found(NamedTuple):
    """An add-on as the cluster file and the catalogue have it."""

    name: str
    row: catalogue.Addon | None
    version: str | None
    path: Path
    """Absolute."""
    namespace: str
    values: Mapping[str, Any]

    @property
    def is_chart(self) -> bool:
        """Whether helm renders it."""
        return self.path.name.endswith(".tgz")


def found_of(name: str, addon: Addon, cluster: Cluster) -> Found:
    """What an add-on is."""
    row = addon_table().find(name)
    version = addon.version or (row.version if row is not None else None)
    values = _merged(_of_roles(cluster, name), addon.values)
    chart = row is not None and row.chart is not None and (bool(values) or row.manifest is None)
    default = Path("addons") / f"{name}-{version}.{'tgz' if chart else 'yaml'}"
    namespace = addon.namespace or (row.namespace if row is not None else name.replace("_", "-"))
    return Found(name, row, version, cluster.path.parent / (addon.file or default), namespace, values)


def _of_roles(cluster: Cluster, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = {}
    for options in cluster.primary.options.values():
        if isinstance(options, SetsChartValues):
            found = _merged(found, options.chart_values(cluster).get(name, {}))
    return found


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """As helm merges values: maps key by key, all else replaced."""
    found = dict(below)
    for key, value in above.items():
        there = found.get(key)
        both = isinstance(there, Mapping) and isinstance(value, Mapping)
        found[key] = _merged(there, value) if both else value  # type: ignore[arg-type]
    return found


def objects_for(options: KubernetesAddonsOptions, cluster: Cluster) -> list[Object]:
    """Objects of all add-ons, each add-on's namespaces and definitions first. Raises Unusable."""
    found: list[Object] = []
    for name, addon in options.addons.items():
        found += relocated(
            objects_in(found_of(name, addon, cluster), addon.sha256, cluster), options.registries
        )
    order = {"Namespace": 0, "CustomResourceDefinition": 1}
    return sorted(found, key=lambda item: order.get(str(item["kind"]), 2))


def objects_in(found: Found, sha256: str | None, cluster: Cluster) -> list[Object]:
    """Objects of one add-on. Raises Unusable."""
    try:
        content = found.path.read_bytes()
    except OSError as error:
        raise Unusable(
            f"Cannot read {found.path.name}: {(error.strerror or 'unreadable').lower()}.", _how(found)
        ) from None
    there = hashlib.sha256(content).hexdigest()
    if sha256 is not None and there != sha256:
        raise Unusable(
            f"{found.path.name} has the SHA-256 {there}, and {sha256} is declared.",
            "read the difference first",
        )
    try:
        if not found.is_chart:
            return objects_of(content.decode("utf-8"))
        text = _rendered(
            str(found.path), there, found.name, found.namespace, json.dumps(found.values), _version(cluster)
        )
        made = objects_of(text, found.namespace)
    except UnicodeDecodeError:
        raise Unusable(f"{found.path.name} is not text.", None) from None
    except NotAManifest as error:
        raise Unusable(f"{found.path.name} is not a manifest: {error}.", None) from None
    names = {item["metadata"]["name"] for item in made if item["kind"] == "Namespace"}
    if found.namespace not in {*names, "kube-system"}:
        made.insert(0, _namespace(found))
    return made


def _namespace(found: Found) -> Object:
    """What `helm install --create-namespace` makes, with the rights that the add-on's pods need."""
    metadata: dict[str, Any] = {"name": found.namespace}
    if found.row is not None and found.row.privileged:
        metadata["labels"] = {"pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _how(found: Found) -> str | None:
    """How the file comes there."""
    row, where = found.row, f"{found.path.parent.name}/{found.path.name}"
    if row is None:
        return None
    if found.is_chart and row.chart is not None:
        return f"{row.chart.pull(found.version or row.version)}, and save it as {where}"
    return f"save it as {where}: {row.manifest}" if row.manifest is not None else None


def _version(cluster: Cluster) -> str:
    runs = cluster.primary.offers(RunsKubernetes)
    return runs.version if runs is not None else ""


@lru_cache(maxsize=32)
def _rendered(path: str, sha256: str, name: str, namespace: str, values: str, version: str) -> str:
    """`helm template` of a chart; once for equal charts and values. Raises Unusable.

    Twice, in fact: a chart that makes up passwords or certificates would differ at each apply.
    """
    del sha256
    if shutil.which("helm") is None:
        raise Unusable(
            f"{Path(path).name} is a chart, and helm is not installed on this control node.",
            "install helm here; or render it elsewhere with `helm template`, and set `file` to the manifest",
        )
    command = ["helm", "template", name.replace("_", "-"), path, "--namespace", namespace, "--values", "-"]
    command += ["--include-crds", "--skip-tests", "--kube-version", version]
    first, second = (_run(command, values, path) for _ in range(2))
    if first != second:
        raise Unusable(
            f"{Path(path).name} renders differently each time, e.g. with a new certificate.",
            "set a value for what it makes up; or keep one rendering as a manifest, and set `file` to it",
        )
    return first


def _run(command: list[str], values: str, path: str) -> str:
    try:
        done = subprocess.run(
            command, input=values, capture_output=True, text=True, timeout=_HELM_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(f"helm did not render {Path(path).name}: {type(error).__name__}.") from None
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1][:300]
        raise Unusable(f"helm did not render {Path(path).name}: {why}.")
    return done.stdout


def mirrored_of(options: KubernetesAddonsOptions, cluster: Cluster) -> Iterator[MirrorItem]:
    """The file of each add-on, and its images: those of its objects, or those of the catalogue before the file exists."""
    for name, addon in options.addons.items():
        found = found_of(name, addon, cluster)
        row = found.row
        url = None
        if row is not None and found.version == row.version:
            url = row.chart.archive if found.is_chart and row.chart is not None else row.manifest
        kind: Any = "chart" if found.is_chart else "manifest"
        yield MirrorItem(kind, found.path.name, found.version, url, addon.sha256, role="kubernetes_addons")
        try:
            images = images_of(relocated(objects_in(found, addon.sha256, cluster), options.registries))
        except Unusable:
            images = list(row.images) if row is not None and found.version == row.version else []
        for image in images:
            yield MirrorItem("image", image, role="kubernetes_addons")
