"""Requests to one BMC's Redfish service, with limits on what a faulty BMC can do to the caller.

Python's HTTP client: no proxy, no redirect to another host, no endless answer. Reads use a persistent
connection; a request that changes something uses a fresh one, so that it is always known whether it was
received.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from rackwright.bmc.target import Connect, NoAnswer, Target
from rackwright.bmc.tls import BoundedSocket, in_words, open_tls
from rackwright.boundary import Refused, printable, read_json
from rackwright.errors import BmcError

ANSWER_MAX_BYTES = 8 * 2**20
"""Size limit of one answer. The largest one requested, a page of an event log, has about 100 KiB."""
_CHUNK = 64 * 1024
_REDIRECTS = 3
_BUSY_TRIES = 4
_BUSY_SECONDS = 30
"""Longest wait before a BMC that answers `503 Service Unavailable` is asked again."""
_NEW_CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Unused: the connection gets a socket that `tls` has verified."""


@dataclass(frozen=True)
class Answer:
    """A BMC's answer; the attributes are those that sushy reads."""

    status_code: int
    headers: Message
    content: bytes
    label: str

    def json(self) -> Any:  # noqa: ANN401 - JSON data
        """The document; BmcError if it is not JSON."""
        try:
            return read_json(self.content, ANSWER_MAX_BYTES)
        except Refused as error:
            raise BmcError(
                f"{self.label} is unreadable: {error}.", hint="reset the BMC itself, or update its firmware"
            ) from None

    def header(self, name: str) -> str:
        """A header's text, or empty."""
        return str(self.headers.get(name, ""))


class RedfishHttp:
    """One connection at a time to one BMC; for one thread."""

    def __init__(
        self,
        target: Target,
        connect: Connect,
        *,
        within: float | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`within`: seconds for all requests together."""
        self.target = target
        self._connect = connect
        self._pause = pause
        self._ends = time.monotonic() + within if within is not None else float("inf")
        self._kept: http.client.HTTPSConnection | None = None

    def request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:  # noqa: ANN401
        """One answer of any status; retries a busy BMC for a while."""
        path = self._local(path)
        for left in range(_BUSY_TRIES, -1, -1):
            answer = self._redirected(method, path, body, headers)
            if answer.status_code != 503:
                return answer
            if left == 0 or not self._wait(answer.header("Retry-After")):
                break
        raise NoAnswer(
            f"{self.target} is too busy for {method} {path}: it answered 503 {_BUSY_TRIES + 1 - left} times.",
            hint="run again in a few minutes; if the BMC stays busy, reset it, e.g. in its web interface",
        )

    def upload(self, path: str, body: Iterable[bytes], headers: Mapping[str, str], seconds: float) -> Answer:
        """Send a long body once: a POST over a fresh connection, with `seconds` for all of it."""
        path = self._local(path)
        self.close()
        connection = self._opened("POST", path)
        if isinstance(connection.sock, BoundedSocket):
            connection.sock.deadline = time.monotonic() + seconds
        try:
            connection.request("POST", path, body, {"Accept": "application/json", **headers})
            return self._read(connection, "POST", path)
        except (http.client.HTTPException, OSError, ValueError) as error:
            late = f"it did not finish within {seconds:.0f} s"
            why = late if isinstance(error, TimeoutError) else _cause(error)
            raise NoAnswer(
                f"{self.target} did not accept the upload to {path}: {why}.",
                hint="run again; if it fails again, reset the BMC itself, e.g. in its web interface",
            ) from None
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection, without a request to the BMC."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def pause(self, seconds: float) -> bool:
        """Wait before the BMC is asked again; False, immediately, if the total time ends before that."""
        if time.monotonic() + seconds > self._ends:
            return False
        self._pause(seconds)
        return True

    def _redirected(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:  # noqa: ANN401
        for _ in range(_REDIRECTS):
            answer = self._exchange(method, path, body, headers)
            if answer.status_code not in (301, 302, 303, 307, 308):
                return answer
            if method != "GET" and answer.status_code not in (307, 308):
                break
            path = self._local(answer.header("Location"))
        raise BmcError(
            f"{self.target} redirects {method} {path} in a loop.", hint="update the BMC's firmware"
        )

    def _exchange(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:  # noqa: ANN401
        if method != "GET":
            self.close()
        if self._kept is not None:
            try:
                return self._once(self._kept, method, path, body, headers)
            except (http.client.HTTPException, OSError):
                self.close()  # the BMC ended the connection between two requests
        return self._once(self._opened(method, path), method, path, body, headers, fresh=True)

    def _once(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: Any,  # noqa: ANN401
        headers: Mapping[str, str],
        *,
        fresh: bool = False,
    ) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        sent = {
            "Accept": "application/json",
            "OData-Version": "4.0",
            "Accept-Encoding": "identity",
            **headers,
        }
        if data is not None:
            sent["Content-Type"] = "application/json"
        try:
            self._allow(connection, method, path)
            connection.request(method, path, data, sent)
            return self._read(connection, method, path)
        except TimeoutError:
            self.close()
            raise self._late(method, path) from None
        except BmcError:
            self.close()
            raise
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.close()
            if not fresh and not isinstance(error, ValueError):
                raise
            raise NoAnswer(
                f"{self.target} did not answer {method} {path}: {_cause(error)}.",
                hint="run again; if it fails again, reset the BMC itself, e.g. in its web interface",
            ) from None

    def _opened(self, method: str, path: str) -> http.client.HTTPSConnection:
        bmc = self.target.bmc
        self._kept = http.client.HTTPSConnection(str(bmc.address), bmc.port, context=_NEW_CONTEXT)
        self._kept.auto_open = 0
        try:
            self._kept.sock = open_tls(self.target, self._connect, self._seconds(method, path))
        except BmcError:
            self._kept = None
            raise
        return self._kept

    def _read(self, connection: http.client.HTTPSConnection, method: str, path: str) -> Answer:
        response = connection.getresponse()
        content = bytearray()
        while chunk := response.read(_CHUNK):
            content += chunk
            if len(content) > ANSWER_MAX_BYTES:
                raise BmcError(
                    f"{self.target} answers {method} {path} with more than {ANSWER_MAX_BYTES >> 20} MiB.",
                    hint="reset the BMC itself, or update its firmware",
                )
        if response.will_close:
            self.close()
        label = f"The answer of {self.target.named} to {method} {path}"
        return Answer(response.status, response.headers, bytes(content), label)

    def _allow(self, connection: http.client.HTTPSConnection, method: str, path: str) -> None:
        sock = connection.sock
        if isinstance(sock, BoundedSocket):
            sock.deadline = time.monotonic() + self._seconds(method, path)

    def _seconds(self, method: str, path: str) -> float:
        """Time for the next step; NoAnswer if the total time is used up."""
        left = min(self.target.bmc.timeout_seconds, self._ends - time.monotonic())
        if left <= 0:
            raise NoAnswer(
                f"{self.target} is too slow: no time left for {method} {path}.",
                hint="run again with --limit for this node only",
            )
        return left

    def _late(self, method: str, path: str) -> NoAnswer:
        return NoAnswer(
            f"{self.target} did not finish its answer to {method} {path} within "
            f"{self.target.bmc.timeout_seconds} s.",
            hint="raise `timeout_seconds` of its `bmc`, or reset the BMC itself, e.g. in its web interface",
        )

    def _wait(self, retry_after: str) -> bool:
        """Whether to retry, after the delay that the BMC requests; False if that is too long."""
        seconds = float(retry_after) if retry_after.isdecimal() and len(retry_after) < 7 else 2.0
        return seconds <= _BUSY_SECONDS and self.pause(seconds)

    def _local(self, link: str) -> str:
        """The path of a link; BmcError if it leads to another host, so that the password is never sent there."""
        shown = printable(link, 120)
        try:
            parts = urlsplit(link)
            elsewhere = bool(parts.netloc) and (parts.hostname, parts.port or self.target.bmc.port) != (
                str(self.target.bmc.address),
                self.target.bmc.port,
            )
        except ValueError:
            elsewhere = True
        if elsewhere:
            raise BmcError(
                f"{self.target} refers to another host, {shown}, which is not followed.",
                hint="is this the BMC's address, not that of a proxy or load balancer?",
            )
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
            raise BmcError(
                f"{self.target} refers to {shown!r}, which is not a path.", hint="update its firmware"
            )
        return path


def _cause(error: Exception) -> str:
    if isinstance(error, http.client.RemoteDisconnected):
        return "it closed the connection"
    if isinstance(error, http.client.HTTPException):
        return f"it does not speak HTTP ({type(error).__name__})"
    return in_words(error)
