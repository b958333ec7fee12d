"""Queries stores over HTTPS and JSON, on their server. Standard library, Python 3.9."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from rackwright.logs.answer import Unreadable

BYTES_MAX = 64 * 2**20
"""Limit of one answer; it is read on the store's server, in chunks of some thousand lines."""
SECONDS = 30


class _Stay(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: another address is not the declared store, and must not get the password."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401
        return None


class Asker:
    """One store, with our credentials."""

    def __init__(
        self,
        ca: str | None,
        *,
        certificate: tuple[str, str] | None = None,
        login: tuple[str, str] | None = None,
    ) -> None:
        try:
            context = ssl.create_default_context(cafile=ca)
            if certificate is not None:
                context.load_cert_chain(*certificate)
        except (OSError, ssl.SSLError) as error:
            raise Unreadable(f"cannot read the certificates: {error}") from None
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), _Stay()
        )
        # Kibana and Dashboards accept no POST without the last two
        self._headers = {"Accept": "application/json", "kbn-xsrf": "true", "osd-xsrf": "true"}
        if login is not None:
            token = base64.b64encode(":".join(login).encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def ask(
        self,
        url: str,
        data: bytes | None = None,
        *,
        method: str | None = None,
        form: str = "application/json",
    ) -> tuple[int, Any]:
        """(status, JSON): a refusal is an answer; Unreadable if there is none."""
        headers = dict(self._headers, **({"Content-Type": form} if data is not None else {}))
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            try:
                with self._opener.open(request, timeout=SECONDS) as answer:
                    return answer.status, _json(answer.read(BYTES_MAX + 1))
            except urllib.error.HTTPError as refusal:
                with refusal:
                    return refusal.code, _json_or_text(refusal.read(4096))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreadable(f"{url.split('?')[0]}: {getattr(error, 'reason', error)}") from None


def _json(body: bytes) -> Any:  # noqa: ANN401
    if len(body) > BYTES_MAX:
        raise ValueError(f"more than {BYTES_MAX >> 20} MiB")
    return json.loads(body) if body.strip() else None


def _json_or_text(body: bytes) -> Any:  # noqa: ANN401
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace").strip()
