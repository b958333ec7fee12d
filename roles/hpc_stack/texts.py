"""Files the role writes, and the packages it installs on a node."""

from __future__ import annotations

from rackwright.lock.for_roles import component, group_of
from rackwright.model.cluster import Cluster, Node
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.hpc_stack.options import ROOT, HpcStackOptions
from rackwright.roles.hpc_stack.recipes import Recipe, uses_cuda

PROFILE = "/etc/profile.d/rackwright-hpc.sh"
MODULES = f"{ROOT}/modulefiles"
MODULEFILE = f"{MODULES}/openmpi/rackwright"


def declared(options: HpcStackOptions, parts: tuple[Recipe, ...]) -> dict[str, str | None]:
    """Every file of the role by path; None: it must not exist."""
    openmpi = next((recipe for recipe in parts if recipe.part == "openmpi"), None)
    if openmpi is None:
        return {PROFILE: None, MODULEFILE: None}
    profile = options.environment == "profile"
    return {
        PROFILE: render("hpc_stack/profile.sh.j2", home=openmpi.link, profile=profile, modules=MODULES),
        MODULEFILE: render("hpc_stack/modulefile.j2", home=openmpi.link, version=openmpi.release.version),
    }


def packages(node: Node, options: HpcStackOptions) -> tuple[str, ...]:
    """The distribution's, at any version."""
    software = ["mpi-build", "curl"] if builds(node, options) else []
    if options.mpi == "distribution":
        software += ["mpi", "mpi-dev"] if options.compilers or builds(node, options) else ["mpi"]
    else:
        software += ["pmix-dev"] if options.pmix == "distribution" else []
        software += ["ucx-dev"] if options.ucx == "distribution" else []
    software += ["mpi4py"] if options.has_mpi4py(node) else []
    found = (package for name in software for package in names(node.family, name).packages)
    return tuple(dict.fromkeys(found))


def builds(node: Node, options: HpcStackOptions) -> bool:
    """Whether a node compiles anything."""
    return options.mpi == "build" or options.builds_nccl_tests(node)


def nccl(cluster: Cluster, node: Node, options: HpcStackOptions) -> tuple[str, ...]:
    """`name=version` of the locked NCCL; empty where the node gets none."""
    return component(group_of(cluster, node), "nccl") if options.has_nccl(cluster, node) else ()


def has_cuda(cluster: Cluster, node: Node, options: HpcStackOptions) -> bool:
    """Whether a node's Open MPI is built with CUDA."""
    return options.mpi == "build" and uses_cuda(cluster, node)
