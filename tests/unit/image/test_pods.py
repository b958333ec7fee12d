"""Images of pods: which are built, of what, and under which name they are imported."""

from __future__ import annotations

import json
import tarfile

import pytest

from rackwright.errors import ImageError
from rackwright.lab import oci, pods
from rackwright.model.services import PodImage
from tests.factories import make_cluster
from tests.unit.roles.slurm_pods import cluster

IMAGE = PodImage(
    "registry.example.com/hpc/slurm:24.11", ("munge", "slurmd"), (("/etc/nsswitch.conf", "x\n"),)
)


def test_each_image_once():
    assert [image.reference for image in pods.images_of(cluster())] == ["rack.lab/slurm:24.11"]
    assert pods.images_of(make_cluster()) == ()
    assert pods.images_of(cluster({"flavour": "slinky"})) == ()


def test_the_name_of_the_archive():
    assert pods.file_name("registry.example.com:5000/hpc/slurm:24.11") == "slurm-24.11.oci.tar"


def test_the_key_is_of_all_that_an_image_is_made_of():
    keys = {
        pods.key(IMAGE, "debian-13"),
        pods.key(IMAGE, "debian-12"),
        pods.key(IMAGE._replace(packages=("munge",)), "debian-13"),
        pods.key(IMAGE._replace(files=()), "debian-13"),
    }
    assert len(keys) == 4


def test_no_package_starts_a_daemon(tmp_path):
    command = pods._command(IMAGE, "trixie", tmp_path / "tree")
    assert "--include=munge,slurmd" in command
    assert any("policy-rc.d" in word for word in command)


def test_a_build_that_is_there_is_not_made_again(tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(pods, "require", lambda *_: None)

    def build(image, os, target):
        built.append(image.reference)
        target.write_bytes(b"image")

    monkeypatch.setattr(pods, "_build", build)
    made = cluster()
    first, second = (pods.build_all(made, tmp_path, lambda _: None) for _ in range(2))
    assert first == second
    assert built == ["rack.lab/slurm:24.11"]
    assert first[0].name == "slurm-24.11.oci.tar"
    pods.build_all(cluster({"image_packages": ["openmpi-bin"]}), tmp_path, lambda _: None)
    assert len(built) == 2


def test_systems_without_images_are_refused(tmp_path):
    made = cluster()
    from rackwright.osfamily.known import os_release

    head = made.primary.model_copy(update={"os": os_release("rocky-9")})
    other = made.model_construct(
        **{name: getattr(made, name) for name in type(made).model_fields} | {"nodes": (head, *made.nodes[1:])}
    )
    with pytest.raises(
        ImageError, match="cp1 runs rocky-9, but images of pods are built only of debian-12, debian-13"
    ):
        pods.build_all(other, tmp_path, lambda _: None)


def test_containerd_imports_it_by_its_whole_name(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "etc").mkdir()
    oci.write_oci(tree, tmp_path / "image.tar", "24.11", reference=IMAGE.reference)
    with tarfile.open(tmp_path / "image.tar") as tar:
        index = json.load(tar.extractfile("index.json"))
    assert index["manifests"][0]["annotations"] == {
        "io.containerd.image.name": IMAGE.reference,
        "org.opencontainers.image.ref.name": "24.11",
    }
