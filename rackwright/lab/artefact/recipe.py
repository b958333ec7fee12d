"""What the artefact is made of: Debian's source package of Kubernetes, a few programs by the lab, Debian's packages.

Debian's source package 1.20.5+really1.20.2 is the newest that carries upstream's whole tree; later ones have kubectl alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from rackwright.lab import sources
from rackwright.shipped import template_source

SOURCE, SOURCE_VERSION = "kubernetes", "1.20.5+really1.20.2-1.1+deb12u1"
COMMIT = "faecb196815e248d3ecfb03c680a4507229c2a56"
"""Upstream's commit of its tag."""
VERSION = "1.20.2"
PACKAGE_VERSION = f"{VERSION}-1.1"
"""As pkgs.k8s.io numbers its packages."""
REGISTRY = "rack.lab"
EPOCH = 1611014400
"""Time of the build in the programs and packages, 2021-01-19: no clock becomes part of them."""
BUILD_SUITE, RUN_SUITE = "bookworm", "trixie"
"""Debian suites: the one whose Go builds the source, and that of the programs in the images."""

PROGRAMS = (
    *("kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    "kube-proxy",
)
LAB_PROGRAMS = {
    "rackwright-dns": "lab/dns.go.j2",
    "crictl": "lab/crictl.go.j2",
    "gpu-plugin": "lab/gpu_plugin.go.j2",
}
"""Programs by the lab -> their Go source."""
TOOLCHAIN = (
    *(
        "golang-go",
        "make",
        "rsync",
        "jq",
        "bash",
        "git",
        "ca-certificates",
        "file",
        "procps",
        "gcc",
        "libc6-dev",
    ),
    *("patch", "dpkg-dev", "golang-github-modern-go-reflect2-dev"),
)
RUNTIME = ("etcd-server", "etcd-client", "busybox-static", "iptables", "conntrack", "netbase")
MPI = (
    "openmpi-bin",
    "python3",
    "python3-mpi4py",
    "python3-numpy",
    "openssh-server",
    "openssh-client",
    "iproute2",
)

_TEXTS = (
    *LAB_PROGRAMS.values(),
    *("lab/kubernetes_build.sh.j2", "lab/kubelet.service.j2", "lab/kubelet_kubeadm.conf.j2"),
)
_METHOD = 1
"""Version of how the artefact is made: a new number gives a new key."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything the artefact depends on; equal recipes make the same artefact."""

    build_sources: tuple[str, ...]
    run_sources: tuple[str, ...]
    apt_options: tuple[str, ...]
    source_version: str = SOURCE_VERSION
    packages: tuple[tuple[str, ...], ...] = (TOOLCHAIN, RUNTIME, MPI)
    method: int = _METHOD

    @property
    def key(self) -> str:
        """Version, and a short name of the recipe's content."""
        content = json.dumps([asdict(self), [template_source(name) for name in _TEXTS]], sort_keys=True)
        return f"{VERSION}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def recipe() -> Recipe:
    """The recipe on this machine."""
    mirrors = sources.machine_mirrors()
    valid = sources.apt_setting("Acquire::Check-Valid-Until")
    options = ('Acquire::Check-Valid-Until "false"',) if valid == "false" else ()
    return Recipe(tuple(mirrors.lines(BUILD_SUITE)), tuple(mirrors.lines(RUN_SUITE)), options)
