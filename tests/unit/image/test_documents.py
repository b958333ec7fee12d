"""manifest.json, sbom.cdx.json and the OCI image: what is in them, and that other programs can read them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from rackwright.errors import ImageError
from rackwright.image import manifest, sbom
from rackwright.image.manifest import Manifest, Package, artefacts, packages
from rackwright.lab.oci import EPOCH, write_oci

_QUERY = (
    "jq\t1.7.1-6+deb13u1\tamd64\tjq\t1.7.1-6+deb13u1\tii \n"
    "libc6:amd64\t2.41-12\tamd64\tglibc\t2.41-12\tii \n"
    "linux-image-6.1\t6.1-1\tamd64\tlinux-signed-amd64\t6.1+1\thi \n"
    "old\t1\tall\told\t1\trc \n"
)


def _manifest(**changes: Any) -> Manifest:
    values: dict[str, Any] = {
        "key": "debian-13-vm-0123456789abcdef",
        "cluster": "lab",
        "file_sha256": "0" * 64,
        "group": "worker[1-2]",
        "evaluated": "worker[1-2]",
        "os": "debian-13",
        "platform": "vm",
        "architecture": "x86_64",
        "kernel": "6.12.117+deb13-amd64",
        "format": "disk",
        "size_gib": 16,
        "recipe": "trixie-0123",
        "installed": (manifest.Operation(role="base", name="Install the base packages"),),
        "left": {"base": ("Write /etc/hostname",)},
        "differing": {},
        "packages": packages(_QUERY),
        "files": (),
    }
    return Manifest(**(values | changes))


def test_packages_are_those_that_are_installed_held_ones_included() -> None:
    assert packages(_QUERY)[1] == Package(
        name="libc6", version="2.41-12", architecture="amd64", source="glibc", source_version="2.41-12"
    )
    assert [one.name for one in packages(_QUERY)] == ["jq", "libc6", "linux-image-6.1"]


@pytest.mark.parametrize("status", ["iU", "iF", "iHR", "iW"])
def test_a_package_that_is_half_installed_is_an_error_with_its_name(status: str) -> None:
    with pytest.raises(ImageError, match=r"slurmd 24\.11 is half installed"):
        packages(f"slurmd\t24.11\tamd64\tslurm-wlm\t24.11\t{status}\n")


def test_a_manifest_is_read_back_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    made = _manifest()
    manifest.write(made, tmp_path)

    assert manifest.read(tmp_path) == made
    assert json.loads((tmp_path / manifest.NAME).read_text())["schema"] == 1
    (tmp_path / manifest.NAME).write_text('{"schema": 2}')
    assert manifest.read(tmp_path) is None
    assert manifest.read(tmp_path / "nowhere") is None


def test_a_file_is_listed_with_its_size_and_digest(tmp_path: Path) -> None:
    (tmp_path / "disk.qcow2").write_bytes(b"disk")

    (one,) = artefacts([tmp_path / "disk.qcow2"])

    assert (one.name, one.bytes, one.sha256) == ("disk.qcow2", 4, hashlib.sha256(b"disk").hexdigest())


def test_the_sbom_is_valid_cyclonedx_with_a_url_for_each_package() -> None:
    text = sbom.render(_manifest())

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    urls = {one["name"]: one["purl"] for one in document["components"]}
    assert urls["jq"] == "pkg:deb/debian/jq@1.7.1-6%2Bdeb13u1?arch=amd64&distro=debian-13"
    assert len(urls) == 3
    assert document["metadata"]["component"]["name"] == "lab/worker[1-2]"


def test_the_validator_objects_to_a_document_that_is_not_whole() -> None:
    document = json.loads(sbom.render(_manifest()))
    del document["components"][0]["name"]

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is not None


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbom, "find_spec", lambda name: None)

    with pytest.raises(ImageError) as refused:
        sbom.require_library()
    assert refused.value.hint == "pip install 'rackwright[image]'"


def test_the_program_starts_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cyclonedx" not in Path(sbom.__file__).read_text().split("def require_library")[0]
    monkeypatch.setitem(sys.modules, "cyclonedx", None)
    sbom.purl(packages(_QUERY)[0], "debian-13")


def _tree(root: Path) -> Path:
    for folder in ("etc", "dev", "proc", "usr/bin", "var/lib"):
        (root / folder).mkdir(parents=True)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/shadow").write_text("root:*:::::::\n")
    (root / "etc/shadow").chmod(0o640)
    os.link(root / "etc/hosts", root / "etc/hosts.same")
    (root / "bin").symlink_to("usr/bin")
    (root / "dev/left").write_text("not part of an image")
    os.mkfifo(root / "var/lib/pipe")
    return root


def _blob(image: tarfile.TarFile, descriptor: dict[str, Any]) -> bytes:
    algorithm, _, digest = descriptor["digest"].partition(":")
    file = image.extractfile(f"blobs/{algorithm}/{digest}")
    assert file is not None
    content = file.read()
    assert hashlib.sha256(content).hexdigest() == digest
    assert len(content) == descriptor["size"]
    return content


def test_an_oci_image_has_one_layer_with_the_tree(tmp_path: Path) -> None:
    write_oci(_tree(tmp_path / "tree"), tmp_path / "image.oci.tar", "tag")

    with tarfile.open(tmp_path / "image.oci.tar") as image:
        layout = image.extractfile("oci-layout")
        index = image.extractfile("index.json")
        assert layout is not None
        assert index is not None
        assert json.load(layout) == {"imageLayoutVersion": "1.0.0"}
        (entry,) = json.load(index)["manifests"]
        assert entry["annotations"] == {"org.opencontainers.image.ref.name": "tag"}
        described = json.loads(_blob(image, entry))
        config = json.loads(_blob(image, described["config"]))
        layer = _blob(image, described["layers"][0])
    with tarfile.open(fileobj=io.BytesIO(layer), mode="r:gz") as tar:
        members = {member.name: member for member in tar}
    assert sorted(members) == [
        "bin", "dev", "etc", "etc/hosts", "etc/hosts.same", "etc/shadow", "proc", "usr", "usr/bin", "var", "var/lib",
    ]  # fmt: skip
    assert members["bin"].linkname == "usr/bin"
    assert members["etc/hosts.same"].linkname == "etc/hosts"
    assert members["etc/shadow"].mode == 0o640
    assert {member.mtime for member in members.values()} == {EPOCH}
    import gzip

    digest = hashlib.sha256(gzip.decompress(layer)).hexdigest()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


def test_the_same_tree_gives_the_same_bytes_whenever_and_wherever(tmp_path: Path) -> None:
    write_oci(_tree(tmp_path / "one"), tmp_path / "one.tar", "tag")
    other = _tree(tmp_path / "other")
    os.utime(other / "etc/shadow", (1, 1))
    write_oci(other, tmp_path / "other.tar", "tag")

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()
    (other / "etc/shadow").write_text("changed")
    write_oci(other, tmp_path / "other.tar", "tag")
    assert (tmp_path / "one.tar").read_bytes() != (tmp_path / "other.tar").read_bytes()


def test_file_capabilities_are_kept(tmp_path: Path) -> None:
    tree = _tree(tmp_path / "tree")
    os.setxattr(tree / "etc/hosts.same", "user.rackwright", b"\x01\x00\xff")

    write_oci(tree, tmp_path / "image.oci.tar", "tag")

    with tarfile.open(tmp_path / "image.oci.tar") as image:
        blobs = [file for member in image if (file := image.extractfile(member)) is not None]
        layer = next(content for file in blobs if (content := file.read())[:2] == b"\x1f\x8b")
    with tarfile.open(fileobj=io.BytesIO(layer), mode="r:gz") as tar:
        headers = tar.getmember("etc/hosts").pax_headers
    value = headers["SCHILY.xattr.user.rackwright"].encode("utf-8", "surrogateescape")
    assert value == b"\x01\x00\xff"
