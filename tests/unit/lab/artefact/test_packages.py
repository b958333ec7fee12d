"""Packages in the shape of pkgs.k8s.io's, and the repository that apt takes them from."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from rackwright.lab.artefact import packages, repository
from rackwright.lab.artefact.tree import Builder

pytestmark = pytest.mark.skipif(
    any(shutil.which(program) is None for program in ("dpkg-deb", "gpg", "gpgv", "ionice")),
    reason="needs dpkg-deb, gpg, gpgv and ionice",
)


def output(*argv: str | Path) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of programs that are a line of text each."""
    root = tmp_path_factory.mktemp("repository")
    (root / "programs").mkdir()
    for name in ("kubeadm", "kubelet", "kubectl", "crictl"):
        (root / "programs" / name).write_text(f"{name}\n")
    builder, target = Builder([]), root / "made"
    files = packages.write_packages(builder, root / "programs", root / "staging", target / "amd64")
    repository.write_indices(builder, target, files)
    return target


def test_names_versions_and_dependencies(folder: Path):
    names = sorted(path.name for path in (folder / "amd64").iterdir())
    assert names == [
        f"{name}_1.20.2-1.1_amd64.deb" for name in ("cri-tools", "kubeadm", "kubectl", "kubelet")
    ]
    fields = output("dpkg-deb", "--field", folder / "amd64" / names[1])
    assert "Depends: kubelet (>= 1.20.2), kubectl (>= 1.20.2), cri-tools (>= 1.20.2)\n" in fields
    fields = output("dpkg-deb", "--field", folder / "amd64" / names[3])
    assert "kubernetes-cni | containernetworking-plugins\n" in fields
    assert "It is not upstream's cri-tools" in output("dpkg-deb", "--field", folder / "amd64" / names[0])


def test_kubelet_has_the_files_of_upstream_s_package(folder: Path):
    listed = output("dpkg-deb", "--contents", folder / "amd64/kubelet_1.20.2-1.1_amd64.deb")
    paths = {line.split()[5].removeprefix(".") for line in listed.splitlines()}
    assert {"/usr/bin/kubelet", "/usr/lib/systemd/system/kubelet.service", "/etc/default/kubelet"} <= paths
    assert {"/etc/kubernetes/manifests/.kubelet-keep", "/var/lib/kubelet/.kubelet-keep"} <= paths
    assert {line.split()[1] for line in listed.splitlines()} == {"root/root"}
    drop_in = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
    assert drop_in in output("dpkg-deb", "--contents", folder / "amd64/kubeadm_1.20.2-1.1_amd64.deb")


def test_the_signature_covers_the_index_and_the_index_every_package(folder: Path, tmp_path: Path):
    ring = tmp_path / "ring.gpg"
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    quiet = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
    subprocess.run([*quiet, "--dearmor", "-o", str(ring), str(folder / "key.asc")], check=True, timeout=60)
    subprocess.run(["gpgv", "--keyring", str(ring), str(folder / "InRelease")], check=True, timeout=60)
    for name in ("Packages", "Packages.gz"):
        content = (folder / name).read_bytes()
        assert (
            f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
            in (folder / "InRelease").read_text()
        )
    index = (folder / "Packages").read_text()
    for package in (folder / "amd64").iterdir():
        assert f"Filename: amd64/{package.name}\n" in index
        assert f"SHA256: {hashlib.sha256(package.read_bytes()).hexdigest()}\n" in index
    (folder / "InRelease").write_text((folder / "InRelease").read_text().replace("Origin: r", "Origin: x"))
    changed = subprocess.run(
        ["gpgv", "--keyring", str(ring), str(folder / "InRelease")], check=False, timeout=60
    )
    assert changed.returncode != 0


def test_the_same_programs_give_the_same_packages(folder: Path, tmp_path: Path):
    programs = folder.parent / "programs"
    again = packages.write_packages(Builder([]), programs, tmp_path / "staging", tmp_path / "made")
    for file in again:
        assert file.read_bytes() == (folder / "amd64" / file.name).read_bytes()
