"""Options of the weka_client role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ReservesMemory, RunsWorkloadManager
from rackwright.model.services import Listener, Listens
from rackwright.model.storage import Filesystem, FilesystemKind, Mount
from rackwright.model.strings import SecretName, Sha256
from rackwright.model.text import mistake
from rackwright.model.types import INNER_PURPOSES
from rackwright.mount_roles import MountingOptions, Problem, options_of, shown_of

AGENT = "weka-agent.service"
TOKEN = "/etc/wekaio/rackwright-auth-token.json"
_DEFAULT_MEMORY_MIB = 1400
"""memory_mb where it is not given: "Mount filesystems" of WEKA's documentation, release 5, read 2026-11-26."""
_OWN = frozenset(
    {"net", "core", "num_cores", "memory_mb", "mgmt_ip", "traces_capacity_mb", "auth_token_path", "df_remote"}
)
_SHOWN = frozenset({"readcache", "writecache", "forcedirect"})
_PORTS = (14000, 14100)
"""WEKA's container traffic, TCP and UDP; of clients the first base port (prerequisites of WEKA's documentation)."""
NetDevice = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,39}(/[0-9.+]+(/[0-9]{1,2}(/[0-9.]+)?)?)?$"),
]


class WekaClientOptions(MountingOptions, ReservesMemory, Listens):
    """WEKA's stateless client, on nodes that mount a filesystem of the kind weka."""

    role: ClassVar[str] = "weka_client"
    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.WEKA})

    version: str = Field(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(\.[0-9]+)?(-[A-Za-z0-9.]+)?$",
        description="Version of the agent, e.g. 4.4.10. Use that of the backends: otherwise the first mount fetches theirs.",
    )
    sha256: Sha256 = Field(
        description="SHA-256 of weka-VERSION.tar, which the site keeps at `mirrors.files`."
    )
    network_mode: Literal["dpdk", "udp"] = Field(
        default="dpdk",
        description="`dpdk`: WEKA's processes drive the devices of `net` and poll on dedicated cores. `udp`: the kernel "
        "drives them, which is slower but takes no cores.",
    )
    net: tuple[NetDevice, ...] = Field(
        default=(),
        max_length=16,
        description="Devices for `dpdk`, as the mount option `net=` takes them: a name, MAC or PCI address, or "
        "`NAME/IP/BITS/GATEWAY`, e.g. `[ib0, ib1]`. Groups with other devices set this in their `options`.",
    )
    cores: tuple[Annotated[int, Field(ge=1, le=4095)], ...] = Field(
        default=(),
        description="CPU numbers that WEKA polls on, never 0. Empty: it chooses `core_count` of them.",
    )
    core_count: int = Field(
        default=1, ge=1, le=19, description="How many cores WEKA takes where `cores` is empty."
    )
    memory_mib: int | None = Field(
        default=None,
        ge=512,
        description="Huge pages of the client, MiB; subtracted from the memory that Slurm gives to jobs. None: WEKA's 1400.",
    )
    traces_mib: int | None = Field(
        default=None, ge=512, description="Limit of its traces on disk, MiB. None: WEKA's."
    )
    stored_as: SecretName | None = Field(
        default=None,
        description="Secret with the content of auth-token.json, supplied by the site, where the filesystem's "
        "organization requires one.",
    )
    install_minutes: int = Field(
        default=20, ge=1, le=240, description="Time limit for the installation, in minutes."
    )

    @model_validator(mode="after")
    def _fits_its_network(self) -> WekaClientOptions:
        if self.network_mode == "dpdk" and not self.net:
            raise mistake(
                "DPDK needs the devices that WEKA drives.", "e.g. `net: [ib0]`, or `network_mode: udp`"
            )
        if self.network_mode == "udp" and (self.net or self.cores):
            raise mistake("With UDP, WEKA takes neither devices nor cores.", "remove `net` and `cores`")
        if len(set(self.cores)) != len(self.cores):
            raise mistake("A core is listed twice.")
        return self

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """The token."""
        return () if self.stored_as is None else (self.stored_as,)

    @property
    def tarball(self) -> str:
        """The release's file."""
        return f"weka-{self.version}.tar"

    @property
    def taken_cores(self) -> int:
        """How many cores it polls on."""
        return 0 if self.network_mode == "udp" else len(self.cores) or self.core_count

    def reserved_mib(self, node: Node) -> int:
        """Its huge pages."""
        return self.memory_mib or _DEFAULT_MEMORY_MIB

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """Its container's ports. unconfirmed: the name of the process."""
        return tuple(Listener("wekanode", _PORTS, protocol, INNER_PURPOSES) for protocol in ("tcp", "udp"))

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        """From the backends, as stateless clients mount: the first mount joins the cluster with these options."""
        options = options_of(filesystem, ("noatime",))
        backends = ",".join(one.address for one in filesystem.servers)
        return Mount(
            filesystem,
            what=f"{backends}/{filesystem.fsname}",
            type="wekafs",
            options=(*options, *self._own(node, filesystem)),
            shown=shown_of(options, _SHOWN),
            requires=(AGENT,),
            timeout_seconds=420,  # joining alone may take 360 (join_timeout_secs)
        )

    def _own(self, node: Node, filesystem: Filesystem) -> tuple[str, ...]:
        if self.network_mode == "udp":
            found = ["num_cores=0", "net=udp"]
        else:
            found = [f"core={core}" for core in self.cores] or [f"num_cores={self.core_count}"]
            found += [f"net={device}" for device in self.net]
            addresses = [str(one.address) for one in node.addresses if one.network == filesystem.network]
            if len(self.net) > 1 and addresses:
                found.append(f"mgmt_ip={'+'.join(addresses)}")
        if self.memory_mib is not None:
            found.append(f"memory_mb={self.memory_mib}")
        if self.traces_mib is not None:
            found.append(f"traces_capacity_mb={self.traces_mib}")
        if self.stored_as is not None:
            found.append(f"auth_token_path={TOKEN}")
        return tuple(found)

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """As every role that mounts; no mirror for the tarball, options that the role sets, cores that do not exist."""
        yield from super().problems(cluster)
        if cluster.mirrors.files is None:
            yield (
                "version",
                f"{self.tarball} comes from the site's mirror, but `mirrors.files` is not declared.",
                "put it there; WEKA's own download needs a token of the site",
            )
        for node in cluster.running(self.role, self):
            threads = node.sku.sockets * node.sku.cores_per_socket * node.sku.threads_per_core
            if high := [core for core in self.cores if core >= threads]:
                yield "cores", f"{node.name} has CPUs 0 to {threads - 1}, not {high[0]}.", None
                return
            for one in self.mounted(node):
                for option in one.options:
                    if (name := option.partition("=")[0]) in _OWN:
                        yield (
                            "",
                            f"`{name}` of {one.name} is not declared as a mount option.",
                            f"see `roles.{self.role}`",
                        )
                        return

    def warnings(self, cluster: Cluster) -> Iterator[Problem]:
        """Cores that a workload manager gives to jobs as well."""
        for node in cluster.running(self.role, self):
            manager = node.offers(RunsWorkloadManager)
            if manager is not None and manager.core_spec_count < self.taken_cores:
                yield (
                    "cores" if self.cores else "core_count",
                    f"WEKA polls on {self.taken_cores} cores of {node.name}; jobs get all but {manager.core_spec_count}.",
                    f"set `roles.slurm.core_spec_count: {self.taken_cores}`, and `cores` to the last ones of the node",
                )
                return
