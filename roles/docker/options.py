"""Options of the docker role."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from rackwright.containers import (
    AddressPool,
    DaemonOptions,
    pool_problems,
    registry_problems,
    source_problems,
    user_problems,
)
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import NeedsForwarding, WritesUnitFiles
from rackwright.model.logins import ComparesGroups
from rackwright.model.services import FetchesFromOutside
from rackwright.model.strings import Identifier, NodePath, UserName
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import WritesBelow, WrittenFolder


class DockerOptions(
    DaemonOptions, FetchesFromOutside, NeedsForwarding, WritesUnitFiles, ComparesGroups, WritesBelow
):
    """Docker Engine."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN})

    compared_groups: ClassVar[frozenset[str]] = frozenset({"docker"})

    source: Literal["distribution", "docker"] = Field(
        default="distribution",
        description="`distribution`: docker.io of Debian or Ubuntu. `docker`: docker-ce of Docker's own repository, "
        "whose key is checked by its published fingerprint; the only one on EL.",
    )
    certificates: ClassVar[str] = "/etc/docker/certs.d"

    users: tuple[UserName, ...] = Field(
        default=(),
        description="Members of the group docker, all of them. Each is root on every node of the role: "
        "`docker run -v /:/host` needs no password.",
    )
    data_root: NodePath = Field(
        default="/var/lib/docker",
        description="Folder of images and containers, best on local scratch (NVMe). A new folder starts empty.",
    )
    storage_driver: Literal["overlay2", "fuse-overlayfs", "btrfs", "zfs", "vfs"] = Field(
        default="overlay2",
        description="overlay2 needs ext4, or xfs with ftype=1, below data_root. vfs copies every layer whole.",
    )
    log_driver: Literal["json-file", "local", "journald", "none"] = Field(
        default="json-file", description="Where the output of containers goes."
    )
    log_max_size_mib: int = Field(
        default=50, ge=1, description="json-file and local: size of one log file. Docker's own has no bound."
    )
    log_max_files: int = Field(default=3, ge=1, description="json-file and local: log files per container.")
    live_restore: bool = Field(
        default=True, description="Keep containers running while the daemon is down or restarts."
    )
    cgroup_driver: Literal["systemd", "cgroupfs"] = Field(
        default="systemd", description="systemd, so that one manager owns the cgroup tree."
    )
    runtimes: dict[Identifier, NodePath] = Field(
        default_factory=dict,
        description="OCI runtimes besides runc, name to program, e.g. {nvidia: /usr/bin/nvidia-container-runtime}.",
    )
    default_runtime: Identifier = Field(default="runc", description="runc, or one of `runtimes`.")
    cdi: bool | None = Field(
        default=None,
        description="Devices by CDI (`--device nvidia.com/gpu=all`); docker from 25 on. None: where the SKU "
        "has GPUs.",
    )
    address_pools: tuple[AddressPool, ...] = Field(
        default=(AddressPool(base=IPv4Network("172.17.0.0/16")),),
        min_length=1,
        description="Ranges for docker0 and further networks; docker's default may overlap a network of the site.",
    )
    iptables: bool = Field(
        default=True,
        description="Docker writes firewall rules: FORWARD drops by default, and published ports are open past "
        "firewalld and ufw. false: no rules, so containers reach out by `--network host` only.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.default_runtime != "runc" and self.default_runtime not in self.runtimes:
            raise ValueError(f"The default runtime {self.default_runtime} is not among the runtimes.")
        if "runc" in self.runtimes:
            raise ValueError("runc is docker's own runtime and is not declared.")
        for pool in self.address_pools:
            if pool.size < pool.base.prefixlen:
                raise ValueError(f"No subnet of /{pool.size} fits into the address pool {pool.base}.")
        return self

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Overlapping ranges, a source the distribution lacks, undeclared users."""
        pools = ((f"address_pools[{index}].base", pool.base) for index, pool in enumerate(self.address_pools))
        yield from pool_problems(cluster, pools)
        yield from source_problems("docker", self, cluster)
        yield from registry_problems(self, cluster)
        yield from user_problems(cluster, "docker", self, self.users)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The limits of the daemon."""
        return ("/etc/systemd/system/docker.service.d/rackwright.conf",)

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """Images and containers."""
        return (WrittenFolder(self.data_root, "docker's images", "docker.data_root", ("docker.service",)),)

    def fetching_units(self, node: Node) -> tuple[str, ...]:
        """dockerd pulls images."""
        return ("docker.service",)
