"""References of images, as container runtimes read them.

Grammar and defaults: github.com/distribution/reference (normalize.go, regexp.go), read 2026-11-28.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.errors import RackwrightError

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
HUB = "docker.io"
_HUB_API = "registry-1.docker.io"


class BundleError(RackwrightError):
    """A bundle could not be listed, resolved, packed or checked, or an image has no valid reference."""


@dataclass(frozen=True)
class Reference:
    """`registry.k8s.io/pause:3.10`, in its parts."""

    registry: str
    repository: str
    tag: str | None
    digest: str | None

    @property
    def api(self) -> str:
        """host[:port] that answers for the registry."""
        return _HUB_API if self.registry == HUB else self.registry

    @property
    def wanted(self) -> str:
        """What a manifest is asked for by: the digest, else the tag."""
        return self.digest or self.tag or "latest"

    def at(self, registry: str) -> Reference:
        """The same image in another registry, which keeps the repository's name."""
        return Reference(registry, self.repository, self.tag, self.digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.registry}/{self.repository}{tag}" + (f"@{self.digest}" if self.digest else "")


def parse(text: str) -> Reference:
    """Raises BundleError for what no runtime takes."""
    rest, at, digest = text.partition("@")
    first, slash, path = rest.partition("/")
    has_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, path) if has_host else (HUB, rest)
    path, colon, tag = path.partition(":")
    if registry == HUB and "/" not in path:
        path = f"library/{path}"
    fits = _HOST.fullmatch(registry) and _REPOSITORY.fullmatch(path)
    if not fits or (colon and not _TAG.fullmatch(tag)) or (at and not DIGEST.fullmatch(digest)):
        raise BundleError(f"Not a valid image: {text}.", hint="e.g. registry.example.com:5000/team/app:1.0")
    return Reference(registry, path, tag or (None if at else "latest"), digest or None)
