"""Talks to the head over TLS, trusting only the install CA: calls are retried, and the image download is resumed."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from rackwright.install.agent.programs import AgentError, log

PATIENCE = 30 * 60.0
"""How long to wait for a head that does not answer."""
TIMEOUT = 30.0
_PAUSE = 5.0
_BLOCK = 1 << 19
_ANSWER_MAX = 32 << 20
_TRANSIENT = (OSError, http.client.HTTPException)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class Refused(AgentError):  # noqa: N818 - reads as a sentence
    """The head refused the call; retrying would not help."""


class _Busy(OSError):  # noqa: N818
    """The head is temporarily unable to answer."""


class Head:
    """Calls to the head. Its address comes from the boot medium: DHCP and DNS answers cannot redirect the agent."""

    def __init__(
        self,
        server: str,
        token: str,
        authority: str,
        *,
        patience: float = PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._secret = token
        self._patience, self._sleep = patience, sleep
        self._context = ssl.create_default_context(cafile=authority)  # with cafile, no other CA is loaded
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2

    def hello(self, facts: dict[str, Any]) -> int:
        """Exchange the token for a session, and return the head's clock.

        The agent generates the session, so that a call whose answer is lost can be repeated.
        """
        session = os.urandom(24).hex()
        answer = self.post("/v1/hello", {**facts, "session": session})
        self._secret = session
        return int(answer["clock"])

    def post(self, path: str, body: dict[str, Any], patience: float | None = None) -> dict[str, Any]:
        """Send a document and return the answer; AgentError once the head has not answered for too long."""
        data = json.dumps(body).encode()
        deadline = time.monotonic() + (self._patience if patience is None else patience)
        while True:
            try:
                return self._post_once(path, data)
            except _TRANSIENT as error:
                if time.monotonic() > deadline:
                    raise AgentError(
                        f"the head at {self._host}:{self._port} does not answer: {error}"
                    ) from None
                log(f"the head does not answer, trying again: {error}")
                self._sleep(_PAUSE)

    def image(self, size: int) -> Iterator[bytes]:
        """Yield the image in blocks; a broken connection resumes at the next byte."""
        position, moved = 0, time.monotonic()
        while position < size:
            try:
                for block in self._blocks(position, size):
                    position, moved = position + len(block), time.monotonic()
                    yield block
                reason = "it ended early"
            except _TRANSIENT as error:
                reason = str(error)
            if position < size:
                if time.monotonic() > moved + self._patience:
                    raise AgentError(f"the image download stopped at byte {position} of {size}: {reason}")
                log(f"the image download stopped at byte {position} of {size}, resuming: {reason}")
                self._sleep(_PAUSE)

    def _post_once(self, path: str, data: bytes) -> dict[str, Any]:
        connection = self._connection()
        try:
            connection.request("POST", path, data, self._headers({"Content-Type": "application/json"}))
            response = connection.getresponse()
            self._require(response, (200,), path)
            text = response.read(_ANSWER_MAX + 1)
        finally:
            connection.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise Refused(
                f"{path}: the head's answer is not a JSON object of at most {_ANSWER_MAX >> 20} MiB"
            )
        return answer

    def _blocks(self, position: int, size: int) -> Iterator[bytes]:
        connection = self._connection()
        try:
            connection.request("GET", "/v1/image", headers=self._headers({"Range": f"bytes={position}-"}))
            response = connection.getresponse()
            self._require(response, (206,), "/v1/image")
            _require_range(response.getheader("Content-Range") or "", position, size)
            left = size - position
            while left and (block := response.read(min(_BLOCK, left))):
                left -= len(block)
                yield block
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=self._context)

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._secret}", **more}

    @staticmethod
    def _require(response: http.client.HTTPResponse, wanted: tuple[int, ...], path: str) -> None:
        if response.status in wanted:
            return
        output = response.read(2000).decode(errors="replace").strip()
        if response.status >= 500 or response.status == 429:
            raise _Busy(f"{path}: {response.status} {output}")
        raise Refused(f"{path}: the head answered {response.status} {output}")


def _require_range(text: str, position: int, size: int) -> None:
    match = _CONTENT_RANGE.fullmatch(text)
    if match is None or int(match[1]) != position:
        raise Refused(f"the head sent {text!r} instead of the image from byte {position} on")
    if int(match[3]) != size:
        raise Refused(f"the head's image has {match[3]} bytes, but {size} were announced")
