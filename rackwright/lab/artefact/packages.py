"""Debian packages of the built programs, in the shape and with the names of pkgs.k8s.io's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rackwright.lab.artefact.recipe import EPOCH, PACKAGE_VERSION, VERSION
from rackwright.lab.artefact.tree import Builder
from rackwright.render import render

_MAINTAINER = "rackwright lab <lab@rackwright.invalid>"
_SECONDS = 300
_SYSTEMD = "/usr/lib/systemd/system"
_MADE_HERE = (
    f"Built by rackwright's lab from Debian's source package of Kubernetes {VERSION}; not upstream's package."
)

# As %systemd_post and its siblings of upstream's packages: enabled, and started by kubeadm.
_SCRIPTS = {
    "postinst": 'if [ "$1" = configure ] && [ -d /run/systemd/system ]; then\n    systemctl daemon-reload\nfi\n'
    'if [ "$1" = configure ] && [ -z "$2" ]; then systemctl --no-reload preset kubelet.service; fi\n',
    "prerm": 'if [ "$1" = remove ] && [ -d /run/systemd/system ]; then\n'
    "    systemctl --no-reload disable --now kubelet.service || true\nfi\n",
    "postrm": "if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n",
}


@dataclass(frozen=True, slots=True)
class Package:
    """One package: its programs below /usr/bin, other files by path, and how dpkg describes it."""

    name: str
    summary: str
    depends: tuple[str, ...]
    description: str = _MADE_HERE
    files: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    program: str = ""
    """Where it is not named as the package."""


def packages() -> tuple[Package, ...]:
    """All packages of the repository."""
    kubelet_needs = (
        *(
            "conntrack",
            "ebtables",
            "ethtool",
            "iproute2",
            "iptables (>= 1.8.4)",
            "mount",
            "socat",
            "util-linux",
        ),
        "kubernetes-cni | containernetworking-plugins",
    )
    version = f"(>= {VERSION})"
    return (
        Package(
            "kubeadm",
            "Command-line utility for administering a Kubernetes cluster",
            (f"kubelet {version}", f"kubectl {version}", f"cri-tools {version}"),
            files={f"{_SYSTEMD}/kubelet.service.d/10-kubeadm.conf": render("lab/kubelet_kubeadm.conf.j2")},
        ),
        Package(
            "kubelet",
            "Node agent for Kubernetes clusters",
            kubelet_needs,
            files={
                f"{_SYSTEMD}/kubelet.service": render("lab/kubelet.service.j2"),
                "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=\n",
                # as upstream's packages have them; kubeadm 1.20 joins no node while the first is there
                "/etc/kubernetes/manifests/.kubelet-keep": "",
                "/var/lib/kubelet/.kubelet-keep": "",
            },
            scripts=_SCRIPTS,
        ),
        Package("kubectl", "Command-line utility for interacting with a Kubernetes cluster", ()),
        Package(
            "cri-tools",
            "Substitute for the command-line utility of container runtimes",
            (),
            description="A program by rackwright's lab that knows the commands of crictl which kubeadm and an operator "
            "need. It is not upstream's cri-tools, which Debian does not package.",
            program="crictl",
        ),
    )


def control(package: Package, kib: int) -> str:
    """The control file of a package."""
    depends = [f"Depends: {', '.join(package.depends)}"] if package.depends else []
    lines = [
        f"Package: {package.name}",
        f"Version: {PACKAGE_VERSION}",
        "Architecture: amd64",
        f"Maintainer: {_MAINTAINER}",
        f"Installed-Size: {kib}",
        *depends,
        "Section: admin",
        "Priority: optional",
        "Homepage: https://kubernetes.io",
        f"Description: {package.summary}",
        f" {package.description}",
        "",
    ]
    return "\n".join(lines)


def write_packages(builder: Builder, programs: Path, staging: Path, target: Path) -> list[Path]:
    """Make the packages of the programs in a folder; returns their files in `target`."""
    target.mkdir(parents=True)
    return [_write(builder, one, programs, staging / one.name, target) for one in packages()]


def _write(builder: Builder, package: Package, programs: Path, root: Path, target: Path) -> Path:
    program = package.program or package.name
    content = {f"/usr/bin/{program}": (programs / program).read_bytes()}
    content |= {path: text.encode() for path, text in package.files.items()}
    for path, data in content.items():
        file = root / path.removeprefix("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if path.startswith("/usr/bin/") else 0o644)
    meta = root / "DEBIAN"
    meta.mkdir()
    (meta / "control").write_text(control(package, sum(map(len, content.values())) // 1024 + 1))
    conffiles = [path for path in package.files if path.startswith("/etc/default/")]
    if conffiles:
        (meta / "conffiles").write_text("\n".join(conffiles) + "\n")
    for name, text in package.scripts.items():
        (meta / name).write_text(f"#!/bin/sh\nset -e\n{text}")
        (meta / name).chmod(0o755)
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    file = target / f"{package.name}_{PACKAGE_VERSION}_amd64.deb"
    build = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z10", "--build", str(root), str(file)]
    builder.run(["env", f"SOURCE_DATE_EPOCH={EPOCH}", *build], _SECONDS)
    return file
