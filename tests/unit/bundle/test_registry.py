"""The registry client against a registry that is whole, and against each way of being broken."""

from __future__ import annotations

import pytest

from rackwright.bundle.registry import Access, Descriptor, Registries, read_manifest
from rackwright.bundle.web import Unreadable, Web, Wrong
from rackwright.lock.references import BundleError, parse
from tests.unit.bundle.registry_server import Registry, digest_of, serving


@pytest.fixture
def registry():
    with serving(Registry()) as found:
        yield found


def _client(registry: Registry, **access: object) -> Registries:
    return Registries({registry.address: Access(plain_http=True, **access)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
        ("busybox", "docker.io/library/busybox:latest"),
        ("kubeflow/trainer:v2", "docker.io/kubeflow/trainer:v2"),
        ("localhost:5000/a/b_c", "localhost:5000/a/b_c:latest"),
        (f"quay.io/a/b@sha256:{'a' * 64}", f"quay.io/a/b@sha256:{'a' * 64}"),
        (f"quay.io/a/b:1@sha256:{'a' * 64}", f"quay.io/a/b:1@sha256:{'a' * 64}"),
    ],
)
def test_references(text, whole):
    assert str(parse(text)) == whole


@pytest.mark.parametrize("text", ["", "a b", "UPPER/case", "a:", "a@sha256:12", "a/../b", "a//b", "x/y:z:w"])
def test_what_is_no_reference(text):
    with pytest.raises(BundleError, match="Not a valid image"):
        parse(text)


def test_a_tags_digest(registry):
    digest = registry.put("team/app", "1.0", b"layer")
    manifest = _client(registry).manifest(parse(f"{registry.address}/team/app:1.0"))
    assert manifest.digest == digest
    assert [child.digest for child in manifest.children][1:] == [
        digest_of(b"layer"),
        digest_of(b"platform 0"),
    ]


def test_an_index_names_its_images(registry):
    digest = registry.put("team/app", "1.0", b"layer", platforms=2)
    manifest = _client(registry).manifest(parse(f"{registry.address}/team/app:1.0"))
    assert (manifest.digest, len(manifest.children)) == (digest, 2)


def test_an_image_that_is_missing(registry):
    with pytest.raises(Wrong, match=r"has no team/app 2\.0"):
        _client(registry).manifest(parse(f"{registry.address}/team/app:2.0"))


def test_a_digest_that_the_registry_gets_wrong(registry):
    registry.put("team/app", "1.0", b"layer")
    registry.named_digest = f"sha256:{'0' * 64}"
    with pytest.raises(Wrong, match="has a manifest with the digest sha256:"):
        _client(registry).manifest(parse(f"{registry.address}/team/app:1.0"))


def test_a_manifest_that_is_not_the_one_asked_for(registry):
    first = registry.put("team/app", "1.0", b"layer")
    second = registry.put("team/app", "2.0", b"other")
    registry.manifests[f"team/app:{first}"] = registry.manifests[f"team/app:{second}"]
    with pytest.raises(Wrong, match=f"under {first}"):
        _client(registry).manifest(parse(f"{registry.address}/team/app@{first}"))


@pytest.mark.parametrize("status", [500, 429, 503])
def test_a_registry_that_is_out_of_order(registry, status):
    registry.status["/v2/team/app/manifests/1.0"] = status
    with pytest.raises(Unreadable, match=f"answers {status}"):
        _client(registry).manifest(parse(f"{registry.address}/team/app:1.0"))


def test_a_registry_that_does_not_answer():
    with serving(Registry()) as gone:
        address = gone.address
    with pytest.raises(Unreadable, match="does not answer"):
        Registries({address: Access(plain_http=True)}).manifest(parse(f"{address}/a:1"))


def test_plain_http_has_to_be_declared(registry):
    registry.put("team/app", "1.0", b"layer")
    with pytest.raises(Unreadable, match="does not answer"):
        Registries().manifest(parse(f"{registry.address}/team/app:1.0"))
    assert registry.asked == []


def test_a_token_without_a_login(registry):
    registry.anonymous_token = True
    registry.put("team/app", "1.0", b"layer")
    client = _client(registry)
    reference = parse(f"{registry.address}/team/app:1.0")
    client.manifest(reference)
    client.manifest(reference)
    assert [path for _, path, _ in registry.asked].count("/token") == 1


@pytest.mark.parametrize("basic", [False, True])
def test_a_login(registry, basic):
    registry.login, registry.basic = ("ci", "secret"), basic
    registry.put("team/app", "1.0", b"layer")
    reference = parse(f"{registry.address}/team/app:1.0")
    assert _client(registry, login=lambda: ("ci", "secret")).manifest(reference).children
    with pytest.raises(Unreadable):
        _client(registry, login=lambda: ("ci", "wrong")).manifest(reference)
    with pytest.raises(Unreadable):
        _client(registry).manifest(reference)


def test_the_login_is_in_no_message(registry):
    registry.login = ("ci", "very-secret")
    with pytest.raises(Unreadable) as raised:
        _client(registry, login=lambda: ("ci", "very-wrong")).manifest(parse(f"{registry.address}/a:1"))
    assert "very" not in str(raised.value)
    assert "very" not in repr(Access(login=lambda: ("ci", "very-wrong")))


def _fetched(registry: Registry, content: bytes, client: Registries | None = None) -> bytes:
    blob = Descriptor("x", digest_of(content), len(content))
    found = bytearray()
    (client or _client(registry)).fetch_blob(parse(f"{registry.address}/team/app:1.0"), blob, found.extend)
    return bytes(found)


def test_a_blob(registry):
    registry.put("team/app", "1.0", b"layer")
    assert _fetched(registry, b"layer") == b"layer"


def test_a_blob_by_a_token(registry):
    registry.anonymous_token = True
    registry.put("team/app", "1.0", b"layer")
    assert _fetched(registry, b"layer") == b"layer"


def test_a_redirect_takes_no_login_along(registry):
    registry.login = ("ci", "secret")
    registry.put("team/app", "1.0", b"layer")
    with serving(Registry()) as storage:
        storage.files[f"/storage/{digest_of(b'layer')}"] = b"layer"
        registry.elsewhere = storage.address
        client = _client(registry, login=lambda: ("ci", "secret"))
        assert _fetched(registry, b"layer", client) == b"layer"
        assert [login for _, _, login in storage.asked] == [None]
        assert registry.asked[-1][2] == "Bearer of-the-realm"


def test_a_blob_that_breaks_off(registry):
    registry.put("team/app", "1.0", b"layer")
    registry.truncated.add(digest_of(b"layer"))
    with pytest.raises(Unreadable, match=r"broke off after 2 of 5 bytes"):
        _fetched(registry, b"layer")


def test_a_blob_with_another_content(registry):
    registry.put("team/app", "1.0", b"layer")
    registry.blobs[digest_of(b"layer")] = b"rayel"
    with pytest.raises(Wrong, match=f"under {digest_of(b'layer')}"):
        _fetched(registry, b"layer")


def test_a_blob_that_is_missing(registry):
    with pytest.raises(Wrong, match="has no blob"):
        _fetched(registry, b"layer")


def test_whether_a_blob_is_there(registry):
    registry.put("team/app", "1.0", b"layer")
    client, reference = _client(registry), parse(f"{registry.address}/team/app:1.0")
    assert client.has_blob(reference, Descriptor("x", digest_of(b"layer"), 5))
    assert not client.has_blob(reference, Descriptor("x", digest_of(b"else"), 4))
    with pytest.raises(Wrong, match="has 5 bytes instead of 6"):
        client.has_blob(reference, Descriptor("x", digest_of(b"layer"), 6))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "is not JSON"),
        (b"[]", "is not JSON"),
        (b'{"mediaType": "application/vnd.docker.distribution.manifest.v1+json"}', "is of the kind"),
        (b'{"manifests": 5}', "has no list of its parts"),
        (b'{"manifests": [{"mediaType": "x", "digest": "../../etc/passwd", "size": 5}]}', "without a digest"),
        (b'{"config": null, "layers": []}', "without a digest"),
    ],
)
def test_what_is_no_manifest(body, why):
    with pytest.raises(Unreadable, match=why):
        read_manifest(body, "sha256:x", None, "a")


def test_an_answer_that_is_too_large(registry):
    registry.files["/big"] = b"x" * 100
    with pytest.raises(Unreadable, match="more than 10 bytes"):
        Web().get(f"http://{registry.address}/big", 10)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/b"])
def test_other_schemes_are_refused(url):
    with pytest.raises(Unreadable, match="not an http or https URL"):
        Web().get(url, 10)
