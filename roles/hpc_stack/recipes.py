"""How each part is built on a node: source, flags, what it is built against; and the folder that follows from that."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from rackwright.lock.content import GroupLock
from rackwright.lock.cuda_home import cuda_home
from rackwright.lock.for_roles import group_of
from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.hpc_stack.capabilities import gencode
from rackwright.roles.hpc_stack.options import ROOT, HpcStackOptions
from rackwright.roles.hpc_stack.problems import capabilities
from rackwright.roles.hpc_stack.releases import Part, Release, sha256_of, tarball, url

DOWNLOADS = "/var/cache/rackwright"
TITLES: dict[Part, str] = {
    "openmpi": "Open MPI",
    "ucx": "UCX",
    "pmix": "PMIx",
    "nccl_tests": "nccl-tests",
}
# UCX: what its contrib/configure-release turns off, and no bindings of other languages.
_UCX = (
    *(
        "--enable-mt",
        "--enable-optimizations",
        "--disable-logging",
        "--disable-debug",
        "--disable-assertions",
    ),
    *(
        "--disable-params-check",
        "--disable-doxygen-doc",
        "--disable-static",
        "--without-java",
        "--without-go",
    ),
    *("--without-rocm", "--with-verbs", "--with-rdmacm"),
)
_PMIX = ("--disable-static", "--with-libevent", "--with-hwloc")
_OPENMPI = (
    *("--disable-static", "--with-hwloc=external", "--with-libevent=external", "--with-slurm"),
    "--enable-prte-prefix-by-default",  # mpirun finds its own daemons on the other nodes
)


@dataclass(frozen=True)
class Recipe:
    """One part, built from one tarball into one folder."""

    part: Part
    release: Release
    url: str
    sha256: str
    steps: str
    """Shell, run in the source's folder: builds for $home and installs below $stage with $jobs compilers."""

    @property
    def title(self) -> str:
        """As plans and messages call it."""
        return f"{TITLES[self.part]} {self.release.version}"

    @property
    def tarball(self) -> str:
        """Where the node keeps the source."""
        return f"{DOWNLOADS}/{tarball(self.part, self.release)}"

    @property
    def link(self) -> str:
        """The path that stays the same from build to build."""
        return f"{ROOT}/{self.part.replace('_', '-')}"

    @property
    def digest(self) -> str:
        """Of everything the result depends on that is declared."""
        return hashlib.sha256(f"{self.sha256}\n{self.steps}".encode()).hexdigest()

    @property
    def prefix(self) -> str:
        """The folder of this build and no other."""
        return f"{self.link}-{self.release.version}-{self.digest[:10]}"

    @property
    def home(self) -> str:
        """The path the result has in it. Open MPI's is the link: mpicc writes it into users' programs, and these run on
        nodes whose builds differ, as login nodes without GPUs do."""
        return self.link if self.part == "openmpi" else self.prefix

    @property
    def folder(self) -> str:
        """Its last part, to which the link leads."""
        return self.prefix.rpartition("/")[2]

    @property
    def read(self) -> str:
        """Shell: prints the folder that is in use, if it holds a whole build."""
        return f"cd {self.link} && [ -s .rackwright-recipe ] && readlink {self.link}"

    def write(self, jobs: int | None) -> str:
        """Shell: builds unless that is done, then moves the link."""
        return render("hpc_stack/build.sh.j2", recipe=self, root=ROOT, jobs=jobs)


def recipes(cluster: Cluster, node: Node, options: HpcStackOptions) -> tuple[Recipe, ...]:
    """What a node builds, in this order. Raises RackwrightError where the lock lacks what a part needs."""
    return tuple(_recipes(cluster, node, options))


def _recipes(cluster: Cluster, node: Node, options: HpcStackOptions) -> Iterator[Recipe]:
    group = group_of(cluster, node) if options.builds_nccl_tests(node) or uses_cuda(cluster, node) else None
    against: dict[Part, str] = {}
    if options.mpi == "build":
        if isinstance(options.pmix, Release):
            pmix = _recipe(cluster, "pmix", options.pmix, _configure(_PMIX, options.pmix))
            against["pmix"] = pmix.prefix
            yield pmix
        if isinstance(options.ucx, Release):
            wanted = (*_UCX, *_gpu_flags(cluster, node, group))
            ucx = _recipe(cluster, "ucx", options.ucx, _configure(wanted, options.ucx))
            against["ucx"] = ucx.prefix
            yield ucx
        openmpi = _openmpi(cluster, node, options, against, group)
        against["openmpi"] = openmpi.prefix
        yield openmpi
    if options.nccl_tests is not None and options.builds_nccl_tests(node) and group is not None:
        mpi = f"{against['openmpi']}/bin" if "openmpi" in against else options.programs(node)
        codes = gencode(capabilities(options, node))
        yield _nccl_tests(cluster, options.nccl_tests, group, mpi, codes)


def uses_cuda(cluster: Cluster, node: Node) -> bool:
    """Whether a node has a locked CUDA toolkit to build against."""
    stack = cluster.gpu_stack
    return "cuda" in node.options and stack is not None and group_of(cluster, node).cuda is not None


def _gpu_flags(cluster: Cluster, node: Node, group: GroupLock | None) -> Iterator[str]:
    if group is None or not uses_cuda(cluster, node):
        yield "--without-cuda"
        return
    yield f"--with-cuda={cuda_home(group)}"
    if "gdrcopy" in node.options:
        yield "--with-gdrcopy=/usr"


def _openmpi(
    cluster: Cluster, node: Node, options: HpcStackOptions, against: dict[Part, str], group: GroupLock | None
) -> Recipe:
    kinds = {"distribution": "external", "bundled": "internal"}
    pmix = against["pmix"] if isinstance(options.pmix, Release) else kinds[options.pmix]
    cuda = cuda_home(group) if group is not None and uses_cuda(cluster, node) else "no"
    own = (
        *_OPENMPI,
        f"--with-pmix={pmix}",
        f"--with-ucx={against['ucx']}" if "ucx" in against else "--with-ucx",
        f"--with-cuda={cuda}",
    )
    return _recipe(cluster, "openmpi", options.openmpi, _configure(own, options.openmpi))


def _nccl_tests(cluster: Cluster, release: Release, group: GroupLock, mpi: str, codes: str) -> Recipe:
    steps = render(
        "hpc_stack/nccl-tests.sh.j2",
        mpi=mpi,
        cuda=cuda_home(group),
        cuda_release=group.cuda,
        nccl=", ".join(group.packages[name] for name in group.components.get("nccl", ())),
        gencode=codes,
        flags=" ".join(quote(flag) for flag in release.flags),
    )
    return _recipe(cluster, "nccl_tests", release, steps)


def _configure(own: tuple[str, ...], release: Release) -> str:
    arguments = [quote(argument) for argument in (*own, *release.flags)]
    return render("hpc_stack/autotools.sh.j2", arguments=arguments)


def _recipe(cluster: Cluster, part: Part, release: Release, steps: str) -> Recipe:
    place, sha256 = url(part, release, cluster.mirrors.files), sha256_of(part, release)
    return Recipe(part, release, place or "", sha256 or "", steps)  # problems() refuses what has neither
