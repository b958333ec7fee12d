"""The image of a virtual CD: the BMC itself fetches it, from its own address in the rack's BMC network."""

from __future__ import annotations

import base64
import http.client
import os
import shutil
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from rackwright.lab.bmc.refusal import Refusal, bad_request
from rackwright.lab.netns import socket_inside

SIZE_MAX = 16 << 30
_SECONDS = 900.0
_STEP_SECONDS = 30.0
_CHUNK = 1 << 20
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Source:
    """Where an image is, and how the server is known."""

    url: str
    trusted: Sequence[str]
    """PEM of the certificates that the server's may be signed with."""
    verify: bool
    user: str = ""
    password: str = ""


def shown(url: str) -> str:
    """A URL as documents have it: without a password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def check(url: object) -> str:
    """A URL that the BMC can fetch; Refusal where it cannot."""
    if not isinstance(url, str) or len(url) > 2048 or not url.isprintable() or " " in url:
        raise bad_request("Image is not a URL.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise bad_request("Image is not a URL.") from None
    if parts.scheme not in _PORTS or port == 0:
        raise bad_request("The URL of Image begins with http:// or https://.")
    try:
        IPv4Address(parts.hostname or "")
    except AddressValueError:
        raise bad_request("The host of Image is not an IPv4 address, and this BMC has no DNS.") from None
    return url


def download(namespace: str, own_address: str, source: Source, target: Path) -> int:
    """Fetch an image and return its size; Refusal where that fails, and nothing is left of it."""
    unfinished = target.with_name(f".{target.name}")
    host = urlsplit(source.url).hostname
    try:
        with open(unfinished, "wb", opener=_private) as file:
            size = _fetch(namespace, own_address, source, file.fileno())
        unfinished.rename(target)
    except ssl.SSLCertVerificationError as error:
        raise _failed(f"the certificate of {host} is not trusted: {error.verify_message}") from None
    except (OSError, http.client.HTTPException) as error:
        raise _failed(f"{host} did not deliver it: {error or type(error).__name__}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return size


def _fetch(namespace: str, own_address: str, source: Source, target: int) -> int:
    deadline = time.monotonic() + _SECONDS
    parts = urlsplit(source.url)
    host, port = str(parts.hostname), parts.port or _PORTS[parts.scheme]
    connection = http.client.HTTPConnection(host, port)
    with _connected(namespace, own_address, (host, port), source) as connection.sock:
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        connection.request("GET", path, headers=_headers(source))
        answer = connection.getresponse()
        if answer.status != 200:
            raise _failed(f"{host} answered {answer.status}")
        declared = int(answer.headers.get("Content-Length") or 0)
        free = shutil.disk_usage(f"/proc/self/fd/{target}").free
        limit = min(SIZE_MAX, free // 2)
        if declared > limit:
            raise _failed(f"it has {declared} bytes, and there is room for {limit}")
        size = 0
        while chunk := answer.read(_CHUNK):
            size += len(chunk)
            if size > limit or time.monotonic() > deadline:
                raise _failed("it is too large" if size > limit else "it takes too long")
            os.write(target, chunk)
        if size == 0 or (declared and size != declared):
            raise _failed(f"{size} bytes came, of {declared}")
        return size


def _connected(namespace: str, own_address: str, to: tuple[str, int], source: Source) -> socket.socket:
    plain = socket_inside(namespace)
    if plain is None:
        raise OSError("the BMC has no network")
    try:
        plain.settimeout(_STEP_SECONDS)
        plain.bind((own_address, 0))
        plain.connect(to)
        if source.url.startswith("http://"):
            return plain
        return _context(source).wrap_socket(plain, server_hostname=to[0])
    except BaseException:
        plain.close()
        raise


def _context(source: Source) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if source.verify:
        for text in source.trusted:
            with suppress(ssl.SSLError):  # a certificate that is not one signs nothing
                context.load_verify_locations(cadata=text)
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _headers(source: Source) -> dict[str, str]:
    headers = {"Accept": "*/*", "Connection": "close", "User-Agent": "rackwright-lab-bmc"}
    if source.user:
        words = base64.b64encode(f"{source.user}:{source.password}".encode()).decode()
        headers["Authorization"] = f"Basic {words}"
    return headers


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _failed(why: str) -> Refusal:
    return bad_request(f"The image cannot be inserted: {why}.", "ActionParameterValueError")
