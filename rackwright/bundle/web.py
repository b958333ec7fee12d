"""HTTP for registries and files: bounded answers, truncation seen, credentials kept at the host they are for."""

from __future__ import annotations

import hashlib
import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 60
_CHUNK = 1 << 20
_ERROR_MAX = 4096


class Unreadable(Exception):  # noqa: N818 - reads as the sentence it is
    """What is there could not be read, so that nothing is known of it."""


class Wrong(Exception):  # noqa: N818
    """What is there is missing, or something else."""


class Answer(NamedTuple):
    """Of one request."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, without taking a login to another host, and never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,  # noqa: ANN401
        newurl: str,
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if before.scheme == "https" and after.scheme != "https":
            raise Unreadable(f"{before.netloc} redirects from https to {after.scheme}")
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        login = req.unredirected_hdrs.get("Authorization")
        if (
            new is not None
            and login is not None
            and (before.scheme, before.netloc) == (after.scheme, after.netloc)
        ):
            new.add_unredirected_header("Authorization", login)
        return new


class Web:
    """GET and HEAD with one trust store."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        handlers: list[urllib.request.BaseHandler] = [_Redirects()]
        handlers.append(urllib.request.HTTPSHandler(context=context or ssl.create_default_context()))
        self._opener = urllib.request.build_opener(*handlers)

    def get(
        self, url: str, limit: int, headers: Mapping[str, str] | None = None, login: str | None = None
    ) -> Answer:
        """An answer of at most `limit` bytes; error statuses are answers too. Raises Unreadable."""
        with self._open("GET", url, headers, login) as answer:
            body = self._read(answer, url, limit)
        return Answer(answer.status, _lower(answer.headers), body)

    def head(self, url: str, headers: Mapping[str, str] | None = None, login: str | None = None) -> Answer:
        """Status and headers. Raises Unreadable."""
        with self._open("HEAD", url, headers, login) as answer:
            return Answer(answer.status, _lower(answer.headers), b"")

    def stream(
        self,
        url: str,
        sink: Callable[[bytes], object],
        headers: Mapping[str, str] | None = None,
        login: str | None = None,
    ) -> tuple[int, int, str]:
        """(status, bytes, SHA-256) of an answer that goes to `sink`; error answers do not. Raises Unreadable."""
        with self._open("GET", url, headers, login) as answer:
            if answer.status != http.client.OK:
                return answer.status, 0, ""
            size, digest = 0, hashlib.sha256()
            while chunk := _chunk(answer, url, _CHUNK):
                size += len(chunk)
                digest.update(chunk)
                sink(chunk)
            _whole(answer, url, size)
            return answer.status, size, digest.hexdigest()

    def _open(self, method: str, url: str, headers: Mapping[str, str] | None, login: str | None) -> Any:  # noqa: ANN401
        if urlsplit(url).scheme not in ("http", "https"):
            raise Unreadable(f"{url} is not an http or https URL")
        request = urllib.request.Request(url, headers=dict(headers or {}), method=method)
        if login is not None:
            request.add_unredirected_header("Authorization", login)
        try:
            return self._opener.open(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            return error  # it has status, headers and body, as an answer has
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreadable(f"{urlsplit(url).netloc} does not answer: {_why(error)}") from None

    @staticmethod
    def _read(answer: Any, url: str, limit: int) -> bytes:  # noqa: ANN401
        limit = limit if answer.status == http.client.OK else min(limit, _ERROR_MAX)
        found = b""
        while len(found) <= limit and (chunk := _chunk(answer, url, _CHUNK)):
            found += chunk
        if answer.status != http.client.OK:
            return found[:limit]
        if len(found) > limit:
            raise Unreadable(f"the answer of {url} has more than {limit} bytes")
        _whole(answer, url, len(found))
        return found


def _chunk(answer: Any, url: str, size: int) -> bytes:  # noqa: ANN401
    try:
        found: bytes = answer.read(size)
    except (OSError, http.client.HTTPException) as error:
        raise Unreadable(f"{urlsplit(url).netloc} broke off: {_why(error)}") from None
    return found


def _whole(answer: Any, url: str, size: int) -> None:  # noqa: ANN401
    """http.client reports a body that is too short only where it is read at once."""
    length = answer.headers.get("Content-Length")
    if length is not None and length.isdigit() and int(length) != size:
        raise Unreadable(f"{urlsplit(url).netloc} broke off after {size} of {length} bytes")


def _lower(headers: Any) -> dict[str, str]:  # noqa: ANN401 - email.message.Message
    return {name.lower(): value for name, value in headers.items()}


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason if reason is not None else error) or type(error).__name__
