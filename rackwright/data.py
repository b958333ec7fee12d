"""Gives a deploy the declared cluster for pyinfra's host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pyinfra.api.host import Host
from pyinfra.context import host as current_host

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.secrets.store import Secret, store_of

OptionsT = TypeVar("OptionsT", bound=RoleOptions)


@dataclass(frozen=True)
class Site:
    """The cluster as seen by one host; what pyinfra's host data carries as `rackwright`."""

    cluster: Cluster
    node: Node
    only_roles: frozenset[str] | None = None
    """Roles this run is limited to (`--role`); None means all."""
    offline: bool = False
    """Nothing is reached and nothing is kept: secrets are placeholders (`rackwright render`)."""
    plans_only: bool = False
    """Nothing will be applied: secrets that do not exist yet are made up and stored nowhere."""
    renewed: frozenset[str] = frozenset()
    """Secrets with a planned rotation: a new value is generated, ignoring the store."""
    erasable: Mapping[str, str] = field(default_factory=dict)
    """Disks whose serial the operator typed for this run, and the content of each as the plan showed it: that
    may be destroyed, and nothing else."""

    def secret(self, name: str) -> Secret:
        """A secret of this cluster. Its str() and repr() are masked. SecretsError where the store lacks it."""
        if self.offline:
            return Secret(name, f"(secret {name})")
        store = store_of(self.cluster)
        if name in self.renewed:
            return store.imagine(name)
        declared = any(name in options.secrets for options in self.node.options.values())
        return store.get_or_imagine(name) if self.plans_only and declared else store.get(name)

    def to_json(self) -> dict[str, str]:
        """For `pyinfra debug-inventory`: names only; the rest is in the cluster file."""
        return {"cluster": self.cluster.name, "file": str(self.cluster.path), "node": self.node.name}


def site_of(host: Host | None = None) -> Site:
    """The declared cluster and node behind a pyinfra host (default: the current one)."""
    asked = current_host if host is None else host  # pyinfra's context object has no truth value
    site = asked.data.get("rackwright")
    if not isinstance(site, Site):
        raise RackwrightError(
            f"{asked.name} was not loaded from a cluster file.",
            hint="run pyinfra with the inventory @rackwright/<cluster file>",
        )
    return site


def left_for(host: Host, role: str, kind: type[OptionsT]) -> OptionsT | None:
    """The options of a role that runs on other nodes, where this node's `workload` rules it out; otherwise None.

    What the role left here would take part in a cluster that the node does not belong to any more.
    """
    site = site_of(host)
    node = site.node
    if role in node.options or (site.only_roles is not None and role not in site.only_roles):
        return None
    if not node.holds(*kind.applies_to) or node.serves(kind.workloads):
        return None
    found = (other.options[role] for other in site.cluster.running(role))
    return next((given for given in found if isinstance(given, kind)), None)


def options_for(host: Host, role: str, kind: type[OptionsT]) -> OptionsT | None:
    """This host's options of a role, or None when the role does not run there."""
    site = site_of(host)
    options = site.node.options.get(role)
    if options is None or (site.only_roles is not None and role not in site.only_roles):
        return None
    if not isinstance(options, kind):
        raise RackwrightError(
            f"The options of role {role} are {type(options).__name__}, not {kind.__name__}."
        )
    return options
