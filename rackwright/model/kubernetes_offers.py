"""What roles that put objects into Kubernetes need from each other, found with `node.offers(Interface)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class GivesGpus:
    """Options of the role that makes Kubernetes count a node's GPUs."""

    def gpu_resources(self, node: Node) -> Mapping[str, int]:
        """What the node offers to pods by resource name, e.g. {"nvidia.com/gpu": 8}; empty without GPUs.

        Empty too where GPUs are claimed (DRA), since no pod counts them then.
        """
        raise NotImplementedError


class RunsPods:
    """Options of the role that runs the container runtime of the kubelet."""

    sandbox_image: str | None
    """The image that holds the namespaces of each pod; None: the runtime's own choice."""


class SetsChartValues:
    """Options of a role that has values for charts, which another role renders."""

    def chart_values(self, cluster: Cluster) -> Mapping[str, Mapping[str, Any]]:
        """Values by the chart's name in the catalogue of add-ons; a site's own values go over them."""
        raise NotImplementedError

    def refused_values(self, chart: str, values: Mapping[str, Any]) -> Iterable[str]:
        """Settings in a chart's final values that must be false, e.g. `driver.enabled`."""
        return ()


class AppliesAddons:
    """Options of the role that applies other projects' manifests and charts."""

    @property
    def applied(self) -> Iterable[str]:
        """Names in the catalogue of add-ons."""
        raise NotImplementedError


class NamesRuntimes:
    """Options of a role that gives containerd runtimes besides runc."""

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Handlers as a RuntimeClass names them, e.g. `nvidia`."""
        raise NotImplementedError


class TenantLimits(Protocol):
    """Limits of an account, in Slurm's names."""

    @property
    def grp_tres(self) -> Mapping[str, int]: ...


class TenantAccount(Protocol):
    """An account of the tree below `root`."""

    @property
    def parent(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def fairshare(self) -> int: ...
    @property
    def limits(self) -> TenantLimits: ...
    @property
    def qos(self) -> Sequence[str]: ...


class TenantUser(Protocol):
    """A user of accounts."""

    @property
    def default_account(self) -> str: ...
    @property
    def accounts(self) -> Sequence[str]: ...
    @property
    def admin(self) -> str: ...


class TenantQos(Protocol):
    """A quality of service."""

    @property
    def description(self) -> str | None: ...
    @property
    def priority(self) -> int: ...
    @property
    def preempt(self) -> Sequence[str]: ...


@runtime_checkable
class DeclaresTenants(Protocol):
    """Options that declare accounts, users and QOS, in the fields of the slurm role, which has all three."""

    @property
    def accounts(self) -> Mapping[str, TenantAccount]: ...
    @property
    def users(self) -> Mapping[str, TenantUser]: ...
    @property
    def qos(self) -> Mapping[str, TenantQos]: ...
