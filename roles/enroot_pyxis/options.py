"""Options of the enroot_pyxis role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field

from rackwright.containers import RuntimeOptions
from rackwright.extra_lines import ENROOT, ExtraFile, ExtraLines
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import Frozen
from rackwright.model.strings import NodePath, PackageFile, Sha256
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import WritesBelow, WrittenFolder
from rackwright.osfamily.names import names


class EnrootPyxisExtra(Frozen):
    """Lines at the end of enroot's file."""

    enroot_conf: ExtraLines = Field(
        default=(),
        description="Of enroot.conf, e.g. [ENROOT_TRANSFER_RETRIES 3]; enroot expands `$` in values.",
    )


class EnrootPyxisOptions(RuntimeOptions, WritesBelow):
    """enroot, and pyxis as Slurm's plugin for it."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN})

    on: tuple[NodeRole, ...] = Field(
        default=(NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN),
        min_length=1,
        description="Node roles whose nodes get it: every node with srun, or its flags are unknown there.",
    )
    enroot_version: str = Field(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", description="Release of enroot, e.g. 4.1.2."
    )
    enroot_caps: bool = Field(
        default=True, description="enroot+caps, with which users import and convert images themselves."
    )
    pyxis_version: str = Field(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", description="Release of pyxis, e.g. 0.24.0."
    )
    pyxis_source: Literal["build", "package"] = Field(
        default="build",
        description="`build`: each node compiles pyxis-<version>.tar.gz against its own Slurm. `package`: "
        "nvslurm-plugin-pyxis, built by the site for its Slurm and laid on `mirrors.files`.",
    )
    sha256: dict[PackageFile, Sha256] = Field(
        description="SHA-256 by file, e.g. {enroot_4.1.2-1_amd64.deb: ..., pyxis-0.24.0.tar.gz: ...}."
    )
    scratch: NodePath | None = Field(
        default=None,
        description="Local scratch; images, containers and temporary files of each user are below it. None: "
        "/var/lib/enroot. A network file system cannot hold overlays.",
    )
    squash_options: str = Field(
        default="-comp lzo -noD",
        pattern=r"^[A-Za-z0-9 -]+$",
        description="mksquashfs options of imports (enroot's own); `-noI -noD -noF -noX` is faster and larger.",
    )
    mount_home: bool = Field(default=False, description="Containers see the user's home.")
    rootfs_writable: bool = Field(default=True, description="Containers are writable.")
    restrict_dev: bool = Field(
        default=True, description="Containers see the devices they are given, and not all of /dev."
    )
    remap_root: bool = Field(default=False, description="Users are root inside their containers.")
    hooks: tuple[
        Literal["50-slurm-pmi.sh", "50-slurm-pytorch.sh", "50-mig-config.sh", "50-sharp.sh"], ...
    ] = Field(
        default=("50-slurm-pmi.sh", "50-slurm-pytorch.sh"),
        description="Hooks that enroot ships and does not turn on: PMI and PMIx, the variables of torchrun.",
    )
    execute_entrypoint: bool = Field(default=False, description="Run the image's entry point by default.")
    container_scope: Literal["job", "global"] = Field(
        default="global", description="How long a named container lives."
    )
    sbatch_support: bool = Field(default=True, description="sbatch and salloc know the flags too.")

    extra: EnrootPyxisExtra = Field(default=EnrootPyxisExtra(), description="Extra lines of enroot's file.")

    @property
    def root(self) -> str:
        """Folder of all users' images and containers."""
        return f"{self.scratch}/enroot" if self.scratch else "/var/lib/enroot"

    def written_folders(self, node: Node) -> tuple[WrittenFolder, ...]:
        """Images, containers and their temporary files."""
        return (WrittenFolder(self.root, "enroot's containers", "enroot_pyxis.scratch"),)

    @property
    def tarball(self) -> str:
        """Source of pyxis."""
        return f"pyxis-{self.pyxis_version}.tar.gz"

    def packages(self, node: Node) -> dict[str, tuple[str, str]]:
        """Package file to (package, version) of what a node installs from files."""
        wanted = {"enroot": self.enroot_version}
        if self.enroot_caps:
            wanted["enroot+caps"] = self.enroot_version
        if self.pyxis_source == "package":
            wanted["nvslurm-plugin-pyxis"] = self.pyxis_version
        revision, cpu = names(node.family, "enroot").settings["revision"], node.sku.cpu_architecture
        exact = {name: f"{version}-{revision}" for name, version in wanted.items()}
        return {
            node.family.package_file(name, version, cpu): (name, version) for name, version in exact.items()
        }

    def files(self, node: Node) -> tuple[str, ...]:
        """Everything a node downloads."""
        built = (self.tarball,) if self.pyxis_source == "build" else ()
        return (*self.packages(node), *built)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Nodes without Slurm, a package that is nowhere to be had, files without a digest; extra lines."""
        enroot = ExtraFile("enroot_conf", "enroot.conf", ENROOT, ("enroot_pyxis/enroot.conf.j2",))
        yield from enroot.problems(self.extra.enroot_conf, type(self))
        if self.pyxis_source == "package" and cluster.mirrors.files is None:
            yield (
                "pyxis_source",
                "NVIDIA releases no package of pyxis, and the cluster has no `mirrors.files` to take the site's from.",
                "set `pyxis_source: build`, or lay the package on a mirror",
            )
        for node in cluster.running("enroot_pyxis", self):
            if "slurm" not in node.options:
                yield "", f"{node.name} has no Slurm, and pyxis is its plugin.", "add `roles.slurm`"
                return
            for file in self.files(node):
                if file not in self.sha256:
                    yield "sha256", f"{node.name} needs {file}, whose SHA-256 is not declared.", None
                    return
