"""What every container runtime of a node has in common: where it runs, its mirror, limits and networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import Literal

from pydantic import Field, field_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import HttpUrl, RegistryName
from rackwright.model.types import NodeRole

Problem = tuple[str, str, str | None]


class RuntimeOptions(RoleOptions):
    """Base of the options of roles that run containers."""

    on: tuple[NodeRole, ...] = Field(
        default=(NodeRole.WORKER,),
        min_length=1,
        description="Node roles whose nodes get it; on every other node nothing is installed.",
    )

    def runs_on(self, node: Node) -> bool:
        """On nodes that hold one of `on`."""
        return super().runs_on(node) and node.holds(*self.on)


class PullingOptions(RuntimeOptions):
    """Of runtimes that pull images: through the cluster's `mirrors.containers`, where it names one."""

    insecure_registries: tuple[RegistryName, ...] = Field(
        default=(),
        description="Registries (host[:port]) reached by plain HTTP, the mirror among them if it has "
        "no TLS. An attacker on the path can change the images.",
    )
    memlock_mib: int | Literal["unlimited"] = Field(
        default="unlimited",
        description="Memory a container may lock, MiB. RDMA pins its buffers, so fabrics need `unlimited` "
        "(rdma-core and NCCL fail to register memory below it).",
    )
    nofile: int = Field(
        default=1048576, ge=1024, le=1073741816, description="Files a process in a container may open."
    )

    @field_validator("memlock_mib")
    @classmethod
    def _is_positive(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError("memlock_mib is a number of MiB from 1 on, or `unlimited`.")
        return value

    @property
    def memlock_bytes(self) -> int:
        """The limit in bytes; -1 for none."""
        return -1 if self.memlock_mib == "unlimited" else int(self.memlock_mib) << 20

    def mirror(self, cluster: Cluster) -> str | None:
        """URL of the cluster's mirror of docker.io: https, unless it is among the insecure registries."""
        name = cluster.mirrors.containers
        if name is None:
            return None
        return f"{'http' if name in self.insecure_registries else 'https'}://{name}"


class DaemonOptions(PullingOptions):
    """Of docker and containerd: distributions and Docker's own repository ship containerd in packages that
    exclude each other (containerd, containerd.io), so all such roles of a node have one source.
    """

    source: Literal["distribution", "docker"] = "distribution"
    repository: HttpUrl = Field(
        default="https://download.docker.com/linux",
        description="Base URL of Docker's repository or of the site's copy of it, for `source: docker`.",
    )


class AddressPool(Frozen):
    """A range that is divided into one subnet for each container network."""

    base: IPv4Network = Field(description="The whole range; it may overlap no declared network.")
    size: int = Field(default=24, ge=8, le=30, description="Prefix length of each subnet.")


def pool_problems(cluster: Cluster, pools: Iterable[tuple[str, IPv4Network]]) -> Iterator[Problem]:
    """Ranges of container networks that would hide a network of the cluster from the nodes."""
    for path, pool in pools:
        for network in cluster.networks.values():
            if pool.overlaps(network.cidr):
                yield (
                    path,
                    (
                        f"The range {pool} overlaps the network {network.name}, {network.cidr}: nodes with "
                        "containers would no longer reach it."
                    ),
                    "choose a private range that no network of the site has",
                )


def source_problems(role: str, options: DaemonOptions, cluster: Cluster) -> Iterator[Problem]:
    """A source that a node's distribution does not have, or two sources of containerd on one node."""
    for node in cluster.running(role, options):
        if options.source == "distribution" and not node.os.container_daemons[role]:
            yield (
                "source",
                f"{node.os} has no package {role}, and {node.name} runs it.",
                "set `source: docker` for Docker's own repository, or use podman",
            )
            return
        for other, given in node.options.items():
            if isinstance(given, DaemonOptions) and given.source != options.source:
                yield (
                    "source",
                    (
                        f"{node.name} would get {role} from {options.source} and {other} from {given.source}; "
                        "their containerd packages exclude each other."
                    ),
                    f"give {role} and {other} the same source",
                )
                return


def user_problems(
    cluster: Cluster, role: str, options: RoleOptions, users: Iterable[str]
) -> Iterator[Problem]:
    """Users of a role that no role on its nodes creates."""
    for node in cluster.running(role, options):
        declared = node.offers(DeclaresUsers)
        known = {account.name for account in declared.accounts} if declared is not None else set()
        for index, name in enumerate(users):
            if name not in known:
                yield (
                    f"users[{index}]",
                    f"{node.name} has no user {name} that the access role declares.",
                    "declare the user under `roles.access.users`",
                )
                return
