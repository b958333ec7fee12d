"""Mistakes of the kubernetes_addons role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.catalog.table_files import addon_table
from rackwright.documents.nearest import suggest
from rackwright.kubernetes.objects import identity
from rackwright.kubernetes.versions import minor_of
from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.kubernetes_offers import SetsChartValues
from rackwright.roles.kubernetes_addons.sources import Found, Unusable, found_of, objects_in

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.roles.kubernetes_addons.options import KubernetesAddonsOptions

Problem = tuple[str, str, str | None]


def problems_of(options: KubernetesAddonsOptions, cluster: Cluster) -> Iterator[Problem]:
    """What is wrong in the cluster file."""
    runs = cluster.primary.offers(RunsKubernetes)
    if runs is None:
        yield (
            "",
            "The role kubernetes_addons needs Kubernetes on the primary head.",
            "add the role kubernetes",
        )
        return
    for name, addon in options.addons.items():
        path = f"addons.{name}"
        known = addon_table().find(name)
        if known is None and addon.file is None:
            names = [row.name for row in addon_table().rows]
            hint = suggest(name, names, what="add-ons in the catalogue")
            yield path, f"The catalogue has no add-on {name}, and `file` is not set.", hint
            continue
        found = found_of(name, addon, cluster)
        first = known.kubernetes_from if known is not None and addon.version is None else None
        if known is not None and first is not None and minor_of(runs.version) < first:
            yield (
                path,
                f"{name} {known.version} is for Kubernetes 1.{first} or later, not {runs.version}.",
                "set `version` and `file` to an older release",
            )
            continue
        if addon.values and not found.is_chart:
            yield (
                f"{path}.values",
                f"{found.path.name} is a manifest, which has no values.",
                "set `file` to a chart, .tgz",
            )
        yield from _refused(path, found, cluster)


def file_problems_of(options: KubernetesAddonsOptions, cluster: Cluster) -> Iterator[Problem]:
    """Files that are missing, altered or no manifests; objects of two add-ons."""
    owners: dict[str, str] = {}
    for name, addon in options.addons.items():
        if addon_table().find(name) is None and addon.file is None:
            continue
        try:
            objects = objects_in(found_of(name, addon, cluster), addon.sha256, cluster)
        except Unusable as error:
            yield f"addons.{name}.file", str(error), error.hint
            continue
        for item in objects:
            one = str(identity(item))
            if item["kind"] != "Namespace" and owners.setdefault(one, name) != name:
                yield f"addons.{name}", f"{one} belongs to {owners[one]} already.", None


def _refused(path: str, found: Found, cluster: Cluster) -> Iterator[Problem]:
    if not found.is_chart:
        return
    for options in cluster.primary.options.values():
        if isinstance(options, SetsChartValues):
            for setting in options.refused_values(found.name, found.values):
                yield (
                    f"{path}.values",
                    f"`{setting}` has to be false in the values of {found.name}: a role does it on the host.",
                    "remove it from `values`",
                )
