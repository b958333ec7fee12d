"""A client of registries of images, for reading: the distribution API of OCI, anonymous or with a login.

Source: github.com/opencontainers/distribution-spec (v1.1, spec.md) and distribution.github.io, "Token Authentication
Specification"; read 2026-11-28.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from rackwright.bundle.web import Answer, Unreadable, Web, Wrong
from rackwright.lock.references import DIGEST, Reference

_OCI_INDEX = "application/vnd.oci.image.index.v1+json"
_DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
_OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES = frozenset({_OCI_INDEX, _DOCKER_LIST})
MANIFESTS = frozenset({_OCI_MANIFEST, _DOCKER_MANIFEST})
_ACCEPT = {"Accept": f"{_OCI_INDEX}, {_DOCKER_LIST}, {_OCI_MANIFEST}, {_DOCKER_MANIFEST}"}
_MANIFEST_MAX = 4 << 20
"""A registry has to take manifests of 4 MiB and may refuse larger ones (distribution-spec)."""
_TOKEN_MAX = 1 << 20
_PAIR = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Access:
    """How a registry is reached."""

    plain_http: bool = False
    ca: Path | None = None
    login: Callable[[], tuple[str, str]] | None = field(default=None, repr=False)
    """User and password, read when the registry asks for them."""


@dataclass(frozen=True)
class Descriptor:
    """What a manifest names: a manifest, a configuration or a layer."""

    media_type: str
    digest: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """A manifest or an index of them, whose content has this digest."""

    media_type: str
    digest: str
    body: bytes
    children: tuple[Descriptor, ...]
    """Manifests of an index; configuration and layers of an image."""


class Registries:
    """Reads images of any registry; tokens are kept while the object lives."""

    def __init__(self, accesses: Mapping[str, Access] | None = None) -> None:
        self._accesses = dict(accesses or {})
        self._webs: dict[Path | None, Web] = {}
        self._tokens: dict[tuple[str, str], str] = {}

    def manifest(self, reference: Reference, wanted: str | None = None) -> Manifest:
        """By digest or tag (None: the reference's own). Raises Wrong if it is missing or altered, else Unreadable."""
        wanted = wanted or reference.wanted
        answer = self._get(reference, f"manifests/{wanted}", _ACCEPT)
        found = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
        for named in (
            answer.headers.get("docker-content-digest"),
            wanted if DIGEST.fullmatch(wanted) else None,
        ):
            if named is not None and named != found:
                raise Wrong(f"{reference.registry} has a manifest with the digest {found} under {named}")
        return read_manifest(answer.body, found, answer.headers.get("content-type"), str(reference))

    def has_blob(self, reference: Reference, blob: Descriptor) -> bool:
        """Whether the registry has a blob of that size. Raises Unreadable, or Wrong for another size."""
        answer = self._ask(
            reference, lambda web, url, login: web.head(url, None, login), f"blobs/{blob.digest}"
        )
        if answer.status == HTTPStatus.NOT_FOUND:
            return False
        self._expect(answer, reference, f"blobs/{blob.digest}")
        length = answer.headers.get("content-length")
        if length is not None and length.isdigit() and int(length) != blob.size:
            raise Wrong(f"{blob.digest} of {reference} has {length} bytes instead of {blob.size}")
        return True

    def fetch_blob(self, reference: Reference, blob: Descriptor, sink: Callable[[bytes], object]) -> None:
        """Stream a blob to `sink`. Raises Wrong where it is missing or has another digest or size, else Unreadable."""

        def ask(web: Web, url: str, login: str | None) -> Answer:
            status, size, digest = web.stream(url, sink, None, login)
            return Answer(status, {"size": str(size), "digest": f"sha256:{digest}"}, b"")

        answer = self._ask(reference, ask, f"blobs/{blob.digest}")
        if answer.status == HTTPStatus.NOT_FOUND:
            raise Wrong(f"{reference.registry} has no blob {blob.digest} of {reference.repository}")
        if answer.status != HTTPStatus.OK:
            raise Unreadable(f"{reference.registry} answers {answer.status} for {blob.digest}")
        if answer.headers["digest"] != blob.digest or answer.headers["size"] != str(blob.size):
            raise Wrong(f"{reference.registry} has {answer.headers['digest']} under {blob.digest}")

    def _get(self, reference: Reference, path: str, headers: Mapping[str, str]) -> Answer:
        answer = self._ask(
            reference, lambda web, url, login: web.get(url, _MANIFEST_MAX, headers, login), path
        )
        if answer.status == HTTPStatus.NOT_FOUND:
            raise Wrong(f"{reference.registry} has no {reference.repository} {path.rpartition('/')[2]}")
        self._expect(answer, reference, path)
        return answer

    @staticmethod
    def _expect(answer: Answer, reference: Reference, path: str) -> None:
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise Unreadable(f"{reference.registry} wants a login for {reference.repository}")
        if answer.status != HTTPStatus.OK:
            raise Unreadable(
                f"{reference.registry} answers {answer.status} for {reference.repository} {path}"
            )

    def _ask(self, reference: Reference, ask: Callable[[Web, str, str | None], Answer], path: str) -> Answer:
        """Once, and again with a token or a login where the registry asks for one."""
        access = self._accesses.get(reference.registry, Access())
        web = self._web(access.ca)
        url = f"{'http' if access.plain_http else 'https'}://{reference.api}/v2/{reference.repository}/{path}"
        key = (reference.registry, reference.repository)
        answer = ask(web, url, self._tokens.get(key))
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        challenge = answer.headers.get("www-authenticate") or web.get(url, 1).headers.get(
            "www-authenticate", ""
        )
        login = self._login(web, access, reference, challenge)
        if login is None:
            return answer
        self._tokens[key] = login
        return ask(web, url, login)

    def _login(self, web: Web, access: Access, reference: Reference, challenge: str) -> str | None:
        scheme, _, rest = challenge.partition(" ")
        basic = None
        if access.login is not None:
            basic = f"Basic {base64.b64encode(':'.join(access.login()).encode()).decode()}"
        if scheme.lower() == "basic":
            return basic
        if scheme.lower() != "bearer":
            return None
        pairs = dict(_PAIR.findall(rest))
        realm = pairs.pop("realm", "")
        if urlsplit(realm).scheme != "https" and not access.plain_http:
            raise Unreadable(
                f"{reference.registry} sends logins to {realm or 'no address'}, which is not https"
            )
        pairs.pop("error", None)
        pairs.setdefault("scope", f"repository:{reference.repository}:pull")
        answer = web.get(f"{realm}?{urlencode(pairs)}", _TOKEN_MAX, None, basic)
        if answer.status != HTTPStatus.OK:
            raise Unreadable(
                f"{urlsplit(realm).netloc} gives no token for {reference.repository}: {answer.status}"
            )
        found = _json(answer.body, f"the token of {reference.registry}")
        token = found.get("token") or found.get("access_token")
        if not isinstance(token, str):
            raise Unreadable(f"{urlsplit(realm).netloc} answers without a token")
        return f"Bearer {token}"

    def _web(self, ca: Path | None) -> Web:
        if ca not in self._webs:
            try:
                context = ssl.create_default_context(cafile=None if ca is None else str(ca))
            except OSError as error:
                raise Unreadable(f"cannot read the certificate {ca}: {error}") from None
            self._webs[ca] = Web(context)
        return self._webs[ca]


def read_manifest(body: bytes, digest: str, content_type: str | None, name: str) -> Manifest:
    """A manifest from its text. Raises Unreadable for kinds that are not OCI's or Docker's second schema."""
    found = _json(body, f"the manifest of {name}")
    media_type = str(found.get("mediaType") or (content_type or "").partition(";")[0].strip())
    if not media_type or media_type == "application/json":  # OCI leaves it out
        media_type = _OCI_INDEX if "manifests" in found else _OCI_MANIFEST
    if media_type in INDEXES:
        children = _descriptors(found.get("manifests"), name)
    elif media_type in MANIFESTS:
        children = _descriptors([found.get("config"), *_list(found.get("layers"), name)], name)
    else:
        raise Unreadable(f"the manifest of {name} is of the kind {media_type}")
    return Manifest(media_type, digest, body, children)


def _descriptors(found: Any, name: str) -> tuple[Descriptor, ...]:  # noqa: ANN401 - JSON
    made = []
    for one in _list(found, name):
        kind, digest, size = (
            one.get(key) if isinstance(one, dict) else None for key in ("mediaType", "digest", "size")
        )
        fits = isinstance(digest, str) and DIGEST.fullmatch(digest) and isinstance(size, int) and size >= 0
        if not fits or not isinstance(kind, str):
            raise Unreadable(f"the manifest of {name} names something without a digest")
        made.append(Descriptor(kind, str(digest), int(str(size))))
    return tuple(made)


def _list(found: Any, name: str) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(found, list):
        raise Unreadable(f"the manifest of {name} has no list of its parts")
    return found


def _json(body: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreadable(f"{what} is not JSON")
    return found
