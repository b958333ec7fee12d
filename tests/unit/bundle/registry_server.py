"""A small registry of images for tests: manifests, blobs, tokens, redirects, and each way in which one can be broken."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Registry:
    """Its content, its faults, and what it was asked."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """By `repository:reference`, the reference a tag or a digest."""
    files: dict[str, bytes] = field(default_factory=dict)
    login: tuple[str, str] | None = None
    """With it: pulls need a token, and the token this login."""
    basic: bool = False
    """The login is asked for directly."""
    anonymous_token: bool = False
    elsewhere: str | None = None
    """Blobs are redirected to this host:port."""
    truncated: set[str] = field(default_factory=set)
    """Digests whose blobs break off."""
    status: dict[str, int] = field(default_factory=dict)
    """Other answers, by path."""
    named_digest: str | None = None
    """Docker-Content-Digest of all manifests, right or wrong."""
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """(method, path, Authorization)."""
    address: str = ""

    def put(self, repository: str, tag: str, *layers: bytes, platforms: int = 0) -> str:
        """Make an image, or an index of some; returns its digest."""
        images = [
            self._image(repository, *layers, f"platform {number}".encode())
            for number in range(platforms or 1)
        ]
        if not platforms:
            self.manifests[f"{repository}:{tag}"] = self.manifests[f"{repository}:{images[0]['digest']}"]
            return str(images[0]["digest"])
        body = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": images}).encode()
        for reference in (tag, digest_of(body)):
            self.manifests[f"{repository}:{reference}"] = (INDEX, body)
        return digest_of(body)

    def _image(self, repository: str, *layers: bytes) -> dict[str, Any]:
        parts = [self._blob(layer) for layer in (b'{"os": "linux"}' + layers[-1], *layers)]
        body = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}
        ).encode()
        self.manifests[f"{repository}:{digest_of(body)}"] = (MANIFEST, body)
        return {"mediaType": MANIFEST, "digest": digest_of(body), "size": len(body)}

    def _blob(self, content: bytes) -> dict[str, Any]:
        self.blobs[digest_of(content)] = content
        return {"mediaType": "application/octet-stream", "digest": digest_of(content), "size": len(content)}


@contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    """On a port of this machine."""

    class Handler(_Handler):
        content = registry

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    registry.address = f"127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    content: Registry

    def log_message(self, *arguments: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def _serve(self) -> None:
        found = self.content
        path = urlsplit(self.path).path
        found.asked.append((self.command, path, self.headers.get("Authorization")))
        if path in found.status:
            self._answer(found.status[path], b"out of order")
        elif path == "/token":
            self._token()
        elif path.startswith("/v2/") and not self._may():
            self._challenge()
        elif "/manifests/" in path:
            self._manifest(path)
        elif "/blobs/" in path:
            self._blob(path)
        elif path in found.files:
            self._answer(200, found.files[path])
        else:
            self._answer(404, b"{}")

    def _may(self) -> bool:
        if self.content.elsewhere is None and self.content.login is None and not self.content.anonymous_token:
            return True
        given = self.headers.get("Authorization")
        if self.content.basic:
            return given == self._basic()
        return given == "Bearer of-the-realm" or (
            self.content.login is None and not self.content.anonymous_token
        )

    def _basic(self) -> str:
        return "Basic " + base64.b64encode(":".join(self.content.login or ("", "")).encode()).decode()

    def _challenge(self) -> None:
        kind = (
            'Basic realm="registry"'
            if self.content.basic
            else f'Bearer realm="http://{self.content.address}/token",service="test",scope="repository:x:pull"'
        )
        self._answer(401, b"{}", {"WWW-Authenticate": kind})

    def _token(self) -> None:
        assert parse_qs(urlsplit(self.path).query)["scope"]
        if self.content.login is not None and self.headers.get("Authorization") != self._basic():
            self._answer(401, b"{}")
        else:
            self._answer(200, b'{"token": "of-the-realm"}')

    def _manifest(self, path: str) -> None:
        repository, _, reference = path.removeprefix("/v2/").partition("/manifests/")
        entry = self.content.manifests.get(f"{repository}:{reference}")
        if entry is None:
            self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
            return
        named = self.content.named_digest or digest_of(entry[1])
        self._answer(200, entry[1], {"Content-Type": entry[0], "Docker-Content-Digest": named})

    def _blob(self, path: str) -> None:
        digest = path.rpartition("/")[2]
        content = self.content.blobs.get(digest)
        if content is None:
            self._answer(404, b"{}")
        elif self.content.elsewhere is not None:
            self._answer(307, b"", {"Location": f"http://{self.content.elsewhere}/storage/{digest}"})
        else:
            short = digest in self.content.truncated
            self._answer(200, content[: len(content) // 2] if short else content, length=len(content))

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {
            **(headers or {}),
            "Content-Length": str(len(body) if length is None else length),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True
