"""Options of the containerd role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field

from rackwright.containers import DaemonOptions, registry_problems, source_problems
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import NeedsForwarding, WritesUnitFiles
from rackwright.model.kubernetes_offers import NamesRuntimes, RunsPods
from rackwright.model.mirrored import MirrorItem, NeedsMirrored
from rackwright.model.services import FetchesFromOutside
from rackwright.model.strings import NodePath
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import WritesBelow, WrittenFolder


class ContainerdOptions(
    DaemonOptions,
    FetchesFromOutside,
    NamesRuntimes,
    RunsPods,
    NeedsForwarding,
    NeedsMirrored,
    WritesUnitFiles,
    WritesBelow,
):
    """containerd, for Kubernetes, for ctr and nerdctl, and below docker."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN})

    certificates: ClassVar[str] = "/etc/containerd/certs.d"

    source: Literal["distribution", "docker"] = Field(
        default="distribution",
        description="`distribution`: containerd of Debian or Ubuntu (1.6 and 1.7). `docker`: containerd.io of Docker's "
        "own repository; the only one on EL.",
    )
    release: Literal["1.7", "2"] | None = Field(
        default=None,
        description="Which configuration is written: version 2 for 1.6 and 1.7, version 3 for 2.x, where the CRI "
        "plugin has other names. None: 1.7 of a distribution, 2 of Docker's repository. verify compares it "
        "with what is installed.",
    )
    root: NodePath = Field(
        default="/var/lib/containerd",
        description="Folder of images and snapshots, best on local scratch. A new folder starts empty.",
    )
    snapshotter: Literal["overlayfs", "native", "btrfs", "zfs", "fuse-overlayfs"] = Field(
        default="overlayfs", description="How layers are stacked for CRI; native copies them whole."
    )
    systemd_cgroup: bool = Field(
        default=True, description="runc asks systemd for cgroups, as the kubelet does by default."
    )
    cdi: bool | None = Field(
        default=None,
        description="Devices by CDI, from /etc/cdi and /var/run/cdi. None: where the SKU has GPUs.",
    )
    nvidia_runtime: NodePath | None = Field(
        default=None,
        description="Program of a runtime `nvidia` besides runc, e.g. /usr/bin/nvidia-container-runtime. With CDI "
        "none is needed.",
    )
    sandbox_image: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][A-Za-z0-9./:@_-]*$",
        description="The pause image of pods, as the site's registry has it; None: containerd's own choice.",
    )

    @property
    def effective_release(self) -> str:
        """`1.7` or `2`."""
        return self.release or ("2" if self.source == "docker" else "1.7")

    def mirrored(self, cluster: Cluster, node: Node) -> Iterable[MirrorItem]:
        """The declared pause image; containerd's own choice is not known here."""
        if self.sandbox_image is not None:
            yield MirrorItem("image", self.sandbox_image, role="containerd")

    @property
    def runtimes(self) -> tuple[str, ...]:
        """`nvidia`, where its program is declared."""
        return () if self.nvidia_runtime is None else ("nvidia",)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A source that the distribution lacks, or one that differs from docker's on the same node."""
        yield from source_problems("containerd", self, cluster)
        yield from registry_problems(self, cluster)
        hub = self.registries.get("docker.io")
        if hub is not None and hub.auth is not None:
            yield (
                'registries["docker.io"].auth',
                "containerd cannot log in to docker.io, which uses tokens instead of passwords.",
                "log in through a cache: `auth` of a registry of the role registry_cache, and `mirrors.containers`",
            )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The limits of the daemon."""
        return ("/etc/systemd/system/containerd.service.d/rackwright.conf",)

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """Images and snapshots."""
        return (WrittenFolder(self.root, "containerd's images", "containerd.root", ("containerd.service",)),)

    def fetching_units(self, node: Node) -> tuple[str, ...]:
        """containerd pulls images."""
        return ("containerd.service",)
