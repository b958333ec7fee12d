"""Options of the hpc_stack role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from rackwright.lock.for_roles import Trouble, has_stack
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ProvidesCollectives
from rackwright.model.options import RoleOptions
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.hpc_stack.releases import Release

ROOT = "/opt/rackwright"
Capability = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}\.[0-9]$")]


class HpcStackOptions(RoleOptions, ProvidesCollectives):
    """MPI on every node of the role; NCCL and nccl-tests on those with NVIDIA's GPUs."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER, NodeRole.LOGIN})

    on: tuple[NodeRole, ...] = Field(
        default=(NodeRole.WORKER, NodeRole.LOGIN),
        min_length=1,
        description="Node roles whose nodes get it: where jobs run, and where users compile.",
    )
    mpi: Literal["distribution", "build"] = Field(
        default="distribution",
        description="`distribution`: the OS's Open MPI, which its Slurm's PMIx plugin is built for. `build`: each "
        "node compiles UCX and Open MPI, with CUDA and GDRCopy where it has them.",
    )
    compilers: bool = Field(
        default=True, description="mpicc, mpicxx, their headers and the OS's GCC; a build always brings them."
    )
    mpi4py: bool | None = Field(
        default=None,
        description="The OS's mpi4py and numpy (with the OS's Open MPI), for the MPI burn-in. None: on workers "
        "without GPUs.",
    )
    openmpi: Release = Field(
        default=Release(version="5.0.10"),
        description="With `mpi: build`. 5.0.10 is what Azure/azhpc-images pins (read 2026-11-23).",
    )
    ucx: Literal["distribution"] | Release = Field(
        default=Release(version="1.20.0"),
        description="With `mpi: build`. `distribution`: the OS's, which has no CUDA.",
    )
    pmix: Literal["distribution", "bundled"] | Release = Field(
        default="distribution",
        description="With `mpi: build`. `distribution`: the OS's, as its Slurm's plugin uses it. `bundled`: the one "
        "in Open MPI's tarball. Open MPI 5.0 needs 4.2 or newer, and older than 6.",
    )
    nccl: bool | None = Field(
        default=None,
        description="Install the lock's NCCL on nodes with NVIDIA's GPUs. None: where the cluster has `gpu_stack`.",
    )
    nccl_tests: Release | None = Field(
        default=None,
        description="Build NVIDIA's nccl-tests with MPI on nodes with NVIDIA's GPUs, e.g. {version: 2.19.6, sha256: "
        "...}; NVIDIA publishes no checksum. None: the site brings them.",
    )
    compute_capabilities: tuple[Capability, ...] = Field(
        default=(),
        description='GPUs nccl-tests is compiled for, e.g. ["9.0"]. Empty: those of the node\'s SKU.',
    )
    build_jobs: int | None = Field(
        default=None,
        ge=1,
        le=512,
        description="Compilers side by side. None: one for each core and for each 2 GiB of free memory, 32 at most.",
    )
    build_minutes: int = Field(
        default=60, ge=1, le=1440, description="Time limit of one build in minutes, instead of `ssh`'s."
    )
    environment: Literal["profile", "module"] = Field(
        default="profile",
        description="How users find a built MPI. `profile`: in every login shell's PATH. `module`: as a module file "
        f"of environment modules or Lmod, below {ROOT}/modulefiles.",
    )

    @model_validator(mode="after")
    def _one_mpi(self) -> HpcStackOptions:
        given = sorted({"openmpi", "ucx", "pmix"} & self.model_fields_set)
        if self.mpi == "distribution" and given:
            raise mistake(f"`{given[0]}` has no effect with `mpi: distribution`.", "set `mpi: build`")
        return self

    def runs_on(self, node: Node) -> bool:
        """On nodes that hold one of the roles of `on`."""
        return super().runs_on(node) and node.holds(*self.on)

    @property
    def program_folders(self) -> tuple[str, ...]:
        """Where all_reduce_perf and its like are; empty where they are not built."""
        return (f"{ROOT}/nccl-tests/bin",) if self.nccl_tests is not None else ()

    def mpi_command(self, node: Node) -> tuple[str, ...]:
        """A program of one all-reduce, by the node's MPI library; needs no compiler and no mpi4py."""
        return ("python3", "-c", render("hpc_stack/all_reduce.py.j2"), self.library(node))

    def library(self, node: Node) -> str:
        """Open MPI's library on a node."""
        built = f"{ROOT}/openmpi/lib/libmpi.so.40"
        return built if self.mpi == "build" else names(node.family, "mpi").paths["library"]

    def programs(self, node: Node) -> str:
        """The folder of mpirun, mpicc and ompi_info on a node."""
        return f"{ROOT}/openmpi/bin" if self.mpi == "build" else names(node.family, "mpi").paths["programs"]

    def has_mpi4py(self, node: Node) -> bool:
        """Whether a node gets mpi4py."""
        return self.mpi4py if self.mpi4py is not None else node.holds(NodeRole.WORKER) and not node.sku.gpus

    def has_nccl(self, cluster: Cluster, node: Node) -> bool:
        """Whether a node gets the lock's NCCL."""
        stack = cluster.gpu_stack
        wanted = stack is not None and stack.nccl != "none" if self.nccl is None else self.nccl
        return has_stack(node) and (wanted or self.nccl_tests is not None)

    def builds_nccl_tests(self, node: Node) -> bool:
        """Whether nccl-tests is built on a node."""
        return self.nccl_tests is not None and has_stack(node)

    def problems(self, cluster: Cluster) -> Iterable[Trouble]:
        """Sources that are nowhere to be had, releases that do not fit, GPUs without CUDA."""
        from rackwright.roles.hpc_stack.problems import problems_of

        return problems_of(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterator[Trouble]:
        """GPU nodes on which a burn-in finds no program."""
        gpus = [node for node in cluster.running("hpc_stack", self) if has_stack(node)]
        if gpus and cluster.gpu_stack is not None and self.nccl_tests is None:
            yield (
                "nccl_tests",
                f"{gpus[0].name} has GPUs, and nothing installs all_reduce_perf, which the burn-in runs.",
                "nccl_tests: {version: 2.19.6, sha256: ...}",
            )

    def lock_problems(self, cluster: Cluster) -> Iterable[Trouble]:
        """A lock that cannot be used, lacks NCCL or CUDA, or has a CUDA that does not know these GPUs."""
        from rackwright.roles.hpc_stack.problems import lock_problems_of

        return lock_problems_of(self, cluster)
