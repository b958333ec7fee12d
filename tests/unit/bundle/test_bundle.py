"""Listing, resolving, packing and checking: whole, interrupted, and with each fault found by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from rackwright.bundle.access import accesses_of
from rackwright.bundle.check import check_folder, check_mirror
from rackwright.bundle.layout import Layout
from rackwright.bundle.listing import Item, Listing, list_items
from rackwright.bundle.outcome import exit_code
from rackwright.bundle.pack import pack
from rackwright.bundle.registry import Access, Registries
from rackwright.bundle.resolve import resolve, write_digests
from rackwright.bundle.web import Web
from rackwright.containers import RegistryAccess, RegistryAuth
from rackwright.lock.content import Lock
from rackwright.lock.images import pinned
from rackwright.lock.lock_file import lock_text, read_lock, with_locked_images
from rackwright.lock.references import BundleError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.mirrored import MirrorItem, NeedsMirrored
from rackwright.model.options import RoleOptions
from rackwright.roles.containerd.options import ContainerdOptions
from tests.unit.bundle.registry_server import Registry, digest_of, serving
from tests.unit.roles.sites import site

SHA = "b" * 64


class Wants(RoleOptions, NeedsMirrored):
    """A role that fetches an image."""

    images: ClassVar[tuple[str, ...]] = ("registry.k8s.io/pause:3.10", "busybox:1.37")

    def mirrored(self, cluster: Cluster, node: Node) -> Iterable[MirrorItem]:
        yield from (MirrorItem("image", name, role="wants") for name in self.images)
        yield MirrorItem("file", "a.tar.gz", source="https://example.com/a.tar.gz", sha256=SHA, role="wants")


@pytest.fixture
def registry():
    with serving(Registry()) as found:
        yield found


def _registries(registry: Registry) -> Registries:
    return Registries({registry.address: Access(plain_http=True)})


def _image(registry: Registry, name: str = "team/app:1.0", digest: str | None = None) -> Item:
    return Item(MirrorItem("image", f"{registry.address}/{name}"), ("wants",), digest)


def _file(registry: Registry, content: bytes, sha256: str | None = "") -> Item:
    registry.files["/a.tar.gz"] = content
    known = digest_of(content).removeprefix("sha256:") if sha256 == "" else sha256
    return Item(
        MirrorItem("file", "a.tar.gz", None, f"http://{registry.address}/a.tar.gz", known), ("wants",)
    )


def _listing(*items: Item) -> Listing:
    return Listing(items, ())


def _packed(registry: Registry, folder: Path, *items: Item) -> list[tuple[str, str]]:
    found = pack(_listing(*items), Layout(folder), _registries(registry), Web())
    return [(str(one.status), one.evidence) for one in found]


def _checked(listing: Listing, folder: Path) -> list[tuple[str, str]]:
    return [(str(one.status), one.evidence) for one in check_folder(listing, folder)]


def test_the_list_has_packages_by_os_images_and_files():
    cluster = site({"containerd": ContainerdOptions(), "wants": Wants()})
    found = list_items(cluster)
    assert found.unknown == ()
    assert [(one.item.name, one.item.platform) for one in found.of("package")] == [
        ("containerd", "debian-13")
    ]
    assert [one.item.name for one in found.of("image")] == [
        "docker.io/library/busybox:1.37",
        "registry.k8s.io/pause:3.10",
    ]
    assert [(one.item.name, one.item.sha256, one.roles) for one in found.of("file")] == [
        ("a.tar.gz", SHA, ("wants",))
    ]


def test_the_key_of_an_archive_is_a_file():
    found = list_items(site({"containerd": ContainerdOptions(source="docker")}))
    (key,) = found.of("file")
    assert key.item.source == "https://download.docker.com/linux/debian/gpg"
    assert "containerd.io" in [one.item.name for one in found.of("package")]


def test_a_node_that_cannot_be_planned_is_unknown(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise ValueError('no')\n")
    found = list_items(site({"wants": Wants()}), broken)
    assert found.unknown
    assert found.unknown[0].startswith("What head1 needs is not known: ")
    assert exit_code((), found.unknown) == 4


def test_resolved_digests_land_in_the_lock(registry, tmp_path):
    cluster = site({"wants": Wants()}, path=tmp_path / "test.yaml")
    digest = registry.put("team/app", "1.0", b"layer")
    listing, outcomes = resolve(_listing(_image(registry)), _registries(registry))
    assert [one.evidence for one in outcomes] == [digest]
    assert write_digests(cluster, listing, outcomes)
    assert dict(read_lock(cluster).images) == {f"{registry.address}/team/app:1.0": digest}
    assert not write_digests(cluster, listing, outcomes)
    assert yaml.safe_load(cluster.lock_path.read_text())["images"]


def test_a_tag_that_moved_is_a_failure_until_it_is_updated(registry):
    first = registry.put("team/app", "1.0", b"layer")
    second = registry.put("team/app", "1.0", b"other")
    moved = _listing(_image(registry, digest=first))
    kept, outcomes = resolve(moved, _registries(registry))
    assert (kept.items[0].digest, str(outcomes[0].status)) == (first, "FAIL")
    assert exit_code(outcomes, ()) == 3
    changed, outcomes = resolve(moved, _registries(registry), update=True)
    assert (changed.items[0].digest, str(outcomes[0].status)) == (second, "PASS")


def test_no_digest_without_a_registry(registry, tmp_path):
    cluster = site({"wants": Wants()}, path=tmp_path / "test.yaml")
    listing, outcomes = resolve(_listing(_image(registry), _image(registry, "gone:1")), _registries(registry))
    assert [str(one.status) for one in outcomes] == ["FAIL", "FAIL"]
    write_digests(cluster, listing, outcomes)
    assert not cluster.lock_path.exists() or read_lock(cluster).images == {}


def test_a_pack_is_an_oci_layout(registry, tmp_path):
    digest = registry.put("team/app", "1.0", b"layer", platforms=2)
    item, file = _image(registry, digest=digest), _file(registry, b"tar")
    assert _packed(registry, tmp_path, item, file) == [("PASS", "5 of 6 blobs fetched"), ("PASS", "fetched")]
    assert json.loads((tmp_path / "images" / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads((tmp_path / "images" / "index.json").read_text())["manifests"]
    assert (entry["digest"], entry["annotations"]["org.opencontainers.image.ref.name"]) == (
        digest,
        item.item.name,
    )
    assert (tmp_path / "files" / "a.tar.gz").read_bytes() == b"tar"
    assert _checked(_listing(item, file), tmp_path)[0] == ("PASS", "9 blobs")


def test_a_second_pack_fetches_nothing(registry, tmp_path):
    item = _image(registry, digest=registry.put("team/app", "1.0", b"layer"))
    _packed(registry, tmp_path, item, _file(registry, b"tar"))
    again = _packed(registry, tmp_path, item, _file(registry, b"tar"))
    assert again == [("PASS", "0 of 3 blobs fetched"), ("PASS", "there already")]


def test_an_interrupted_pack_goes_on(registry, tmp_path):
    item = _image(registry, digest=registry.put("team/app", "1.0", b"layer"))
    registry.truncated.add(digest_of(b"platform 0"))
    ((status, evidence),) = _packed(registry, tmp_path, item)
    assert status == "UNKNOWN"
    assert "broke off" in evidence
    assert not (tmp_path / "images" / "index.json").exists()
    assert not list((tmp_path / "images").rglob(".*"))
    registry.truncated.clear()
    assert _packed(registry, tmp_path, item) == [("PASS", "1 of 3 blobs fetched")]


@pytest.mark.parametrize(
    ("sha256", "status", "evidence"),
    [
        (None, "UNKNOWN", "no SHA-256 is declared for it"),
        (SHA, "FAIL", "has the SHA-256"),
    ],
)
def test_a_file_that_is_not_as_declared_is_not_packed(registry, tmp_path, sha256, status, evidence):
    ((found, text),) = _packed(registry, tmp_path, _file(registry, b"tar", sha256))
    assert found == status
    assert evidence in text
    assert not (tmp_path / "files" / "a.tar.gz").exists()


def test_an_image_without_a_locked_digest_is_not_packed(registry, tmp_path):
    registry.put("team/app", "1.0", b"layer")
    ((status, evidence),) = _packed(registry, tmp_path, _image(registry))
    assert (status, "--resolve" in evidence) == ("UNKNOWN", True)


def test_packages_are_listed_by_os(registry, tmp_path):
    item = Item(MirrorItem("package", "containerd", "1.7", platform="debian-13"), ("containerd",))
    assert _packed(registry, tmp_path, item) == []
    assert (tmp_path / "packages" / "debian-13.txt").read_text() == "containerd=1.7\n"


def test_each_fault_of_a_folder_is_found(registry, tmp_path):
    item, file = _image(registry, digest=registry.put("team/app", "1.0", b"layer")), _file(registry, b"tar")
    _packed(registry, tmp_path, item, file)
    listing, layout = _listing(item, file), Layout(tmp_path)
    layout.blob(digest_of(b"layer")).write_bytes(b"rayel")
    (tmp_path / "files" / "a.tar.gz").write_bytes(b"rat")
    found = _checked(listing, tmp_path)
    assert found[0] == ("FAIL", f"has another content under {digest_of(b'layer')}")
    assert found[1][0] == "FAIL"
    layout.blob(digest_of(b"layer")).unlink()
    (tmp_path / "files" / "a.tar.gz").unlink()
    assert _checked(listing, tmp_path) == [("FAIL", f"lacks {digest_of(b'layer')}"), ("FAIL", "is missing")]
    assert _checked(_listing(_image(registry, "gone:1", SHA)), tmp_path) == [("FAIL", "is missing")]
    (tmp_path / "images" / "index.json").write_text("{")
    assert _checked(_listing(item), tmp_path)[0][0] == "UNKNOWN"


def test_a_folder_with_another_image(registry, tmp_path):
    item = _image(registry, digest=registry.put("team/app", "1.0", b"layer"))
    _packed(registry, tmp_path, item)
    other = _image(registry, digest=f"sha256:{SHA}")
    assert _checked(_listing(other), tmp_path) == [("FAIL", f"is {item.digest} instead of sha256:{SHA}")]
    assert _checked(_listing(_image(registry)), tmp_path)[0][0] == "UNKNOWN"


def _mirrored(registry: Registry, listing: Listing, files: str | None = None) -> list[tuple[str, str]]:
    found = check_mirror(listing, registry.address, _registries(registry), files, Web())
    return [(str(one.status), one.evidence) for one in found]


def test_a_mirror(registry):
    digest = registry.put("kube/pause", "3.10", b"layer", platforms=2)
    image = Item(MirrorItem("image", "registry.k8s.io/kube/pause:3.10"), (), digest)
    file = _file(registry, b"tar")
    assert _mirrored(registry, _listing(image, file), f"http://{registry.address}")[0] == ("PASS", "9 blobs")
    assert _mirrored(registry, _listing(file))[0][0] == "UNKNOWN"
    del registry.blobs[digest_of(b"layer")]
    assert _mirrored(registry, _listing(image)) == [
        ("FAIL", f"{registry.address} lacks {digest_of(b'layer')}")
    ]


def test_a_mirror_with_faults(registry):
    digest = registry.put("kube/pause", "3.10", b"layer")
    newer = registry.put("kube/pause", "3.10", b"newer")
    image = Item(MirrorItem("image", "registry.k8s.io/kube/pause:3.10"), (), digest)
    gone = Item(MirrorItem("image", "registry.k8s.io/kube/gone:1"), (), digest)
    file = _file(registry, b"tar", SHA)
    base = f"http://{registry.address}"
    found = _mirrored(registry, _listing(image, gone, file), base)
    assert found[0] == ("FAIL", f"is {newer} at {registry.address} instead of {digest}")
    assert found[1] == ("FAIL", f"{registry.address} has no kube/gone 1")
    assert (found[2][0], "instead of" in found[2][1]) == ("FAIL", True)
    assert _mirrored(registry, _listing(file), f"{base}/elsewhere") == [
        ("FAIL", f"{base}/elsewhere/a.tar.gz does not exist")
    ]
    registry.status["/v2/kube/pause/manifests/3.10"] = 503
    assert _mirrored(registry, _listing(image))[0][0] == "UNKNOWN"


def test_registries_are_reached_as_the_runtimes_declare():
    runtime = ContainerdOptions(
        registries={
            "r.example.com": RegistryAccess(auth=RegistryAuth(user="ci", stored_as="registry_ci")),
            "10.0.0.1:5000": RegistryAccess(plain_http=True),
        }
    )
    found = accesses_of(site({"containerd": runtime}))
    assert found["10.0.0.1:5000"] == Access(plain_http=True)
    assert found["r.example.com"].login is not None


def test_a_new_lock_keeps_the_images(tmp_path):
    cluster = site({}, path=tmp_path / "test.yaml")
    lock = Lock(cluster="test", tables={"drivers": date(2026, 11, 20)}, images={"a/b:1": f"sha256:{SHA}"})
    cluster.lock_path.write_text(lock_text(lock, "test.yaml"))
    solved = lock.model_copy(update={"images": {}})
    assert with_locked_images(solved, cluster) == lock
    assert "images" not in lock_text(solved, "test.yaml")


def test_a_cluster_with_a_stack_is_locked_first(tmp_path):
    cluster = site({}, path=tmp_path / "test.yaml", gpu_stack=GpuStack())
    with pytest.raises(BundleError, match="has no lock yet"):
        write_digests(cluster, _listing(), ())


def test_nodes_pull_by_the_locked_digest(tmp_path):
    cluster = site({}, path=tmp_path / "test.yaml")
    assert pinned(cluster, "busybox:1.37") == "busybox:1.37"
    lock = Lock(cluster="test", tables={}, images={"docker.io/library/busybox:1.37": f"sha256:{SHA}"})
    cluster.lock_path.write_text(lock_text(lock, "test.yaml"))
    assert pinned(cluster, "busybox:1.37") == f"busybox:1.37@sha256:{SHA}"
    assert pinned(cluster, "busybox:1.36") == "busybox:1.36"
