"""Options of the kubernetes_addons role."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from rackwright.model.kubernetes_offers import AppliesAddons
from rackwright.model.mirrored import MirrorItem, NeedsMirrored
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import KubernetesName, Sha256
from rackwright.model.types import NodeRole, Workload
from rackwright.roles.kubernetes_addons.problems import file_problems_of, problems_of
from rackwright.roles.kubernetes_addons.sources import mirrored_of

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

AddonName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Prefix = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9./:_-]{0,200}$")]


class Addon(Frozen):
    """One add-on: by its name in `rackwright catalog --table addons`, or any other with `file`."""

    several_lines: ClassVar[frozenset[str]] = frozenset({"values"})

    version: str | None = Field(
        default=None, pattern=r"^v?[0-9][0-9A-Za-z.+-]{0,40}$", description="None: the catalogue's."
    )
    file: Path | None = Field(
        default=None,
        description="Manifest (.yaml) or chart (.tgz), relative to the cluster file. None: `addons/<name>-<version>.yaml`, or "
        ".tgz for what has values or only a chart.",
    )
    sha256: Sha256 | None = Field(default=None, description="Of the file. None: not compared.")
    namespace: KubernetesName | None = Field(
        default=None, description="Of a chart's release. None: the catalogue's; of others the add-on's name."
    )
    values: dict[str, Any] = Field(
        default_factory=dict, description="A chart's values, over those that other roles have for it."
    )


class KubernetesAddonsOptions(RoleOptions, AppliesAddons, NeedsMirrored):
    """Manifests and charts of other projects."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.KUBERNETES, Workload.SLURM_ON_KUBERNETES})

    addons: dict[AddonName, Addon] = Field(
        min_length=1, description="Add-ons by name, e.g. {metrics_server: {}}."
    )
    registries: dict[Prefix, Prefix] = Field(
        default_factory=dict,
        description="Where images of a registry or folder come from instead, e.g. {registry.k8s.io: mirror.example.com/k8s}. "
        "It changes images in manifests; what an operator starts itself takes its chart's values.",
    )

    def runs_on(self, node: Node) -> bool:
        """On the primary head, where objects are applied."""
        return super().runs_on(node) and node.primary

    @property
    def applied(self) -> Iterable[str]:
        """Their names."""
        return tuple(self.addons)

    def mirrored(self, cluster: Cluster, node: Node) -> Iterable[MirrorItem]:
        """Files, and the images that they name."""
        return mirrored_of(self, cluster)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Unknown names, unsupported releases, values that are refused."""
        return problems_of(self, cluster)

    def lock_problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Files that are missing or altered, charts without helm: what is still to do before an apply."""
        return file_problems_of(self, cluster)
