"""TLS to a BMC: its certificate is verified before anything secret is sent, and every read has a deadline."""

from __future__ import annotations

import hashlib
import socket
import ssl
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from rackwright.bmc.target import Connect, NoAnswer, Target
from rackwright.errors import BmcError


class BoundedSocket(ssl.SSLSocket):
    """A TLS connection with a deadline for everything sent and read, however slow the peer is."""

    deadline: float = float("inf")
    """Deadline in seconds of time.monotonic()."""

    def read(self, len: int = 1024, buffer: Any = None) -> bytes:  # noqa: ANN401 - any buffer, as in ssl
        """As ssl's; TimeoutError after the deadline."""
        self._allow()
        return super().read(len, buffer)

    def send(self, data: Any, flags: int = 0) -> int:  # noqa: ANN401
        """As ssl's; TimeoutError after the deadline."""
        self._allow()
        return super().send(data, flags)

    def _allow(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        if left != float("inf"):
            self.settimeout(left)


def open_tls(target: Target, connect: Connect, seconds: float) -> BoundedSocket:
    """A TLS connection with the declared certificate; BmcError if it differs, NoAnswer without one."""
    deadline = time.monotonic() + seconds
    raw = _connected(target, connect, seconds)
    try:
        raw.settimeout(max(0.001, deadline - time.monotonic()))
        wrapped = _context_of(target).wrap_socket(raw, server_hostname=str(target.bmc.address))
        tls = cast(BoundedSocket, wrapped)  # the context creates no other type
    except ssl.SSLCertVerificationError as error:
        raw.close()
        raise _refused_certificate(target, connect, seconds, error) from None
    except TimeoutError:
        raw.close()
        raise NoAnswer(
            f"{target} did not finish the TLS handshake within {target.bmc.timeout_seconds} s.",
            hint="reset the BMC itself, e.g. in its web interface or with `ipmitool mc reset cold`",
        ) from None
    except (OSError, ValueError) as error:  # ssl.SSLError among them
        raw.close()
        raise NoAnswer(
            f"The TLS handshake with {target.named} on port {target.bmc.port} failed: {in_words(error)}.",
            hint="is this the port of the BMC's web interface? old firmware needs an update for TLS 1.2",
        ) from None
    try:
        _check_pin(target, tls)
    except BmcError:
        tls.close()
        raise
    return tls


def in_words(error: Exception) -> str:
    """A socket or TLS error without Python's error numbers and source line."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "the handshake failed").replace("_", " ").lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error) or type(error).__name__


def ca_mistake(ca: Path) -> str | None:
    """Why this file cannot be used to verify BMC certificates; None if it can."""
    try:
        _verified(ca, ca.stat().st_mtime_ns)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        return in_words(error)
    return None


def _connected(target: Target, connect: Connect, seconds: float) -> socket.socket:
    try:
        return connect(str(target.bmc.address), target.bmc.port, seconds)
    except TimeoutError:
        cause = f"no answer within {target.bmc.timeout_seconds} s"
    except OSError as error:
        cause = in_words(error)
    raise NoAnswer(
        f"Cannot reach {target.named}: {cause}.",
        hint="check its address and cable; does this host have a route to its network?",
    )


def _context_of(target: Target) -> ssl.SSLContext:
    if target.bmc.certificate is not None:
        return _unverified()
    try:
        ca = target.bmc.ca
        return _verified(ca, ca.stat().st_mtime_ns if ca is not None else 0)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BmcError(
            f"The CA file {target.bmc.ca} of {target.node}'s BMC is not usable: {in_words(error)}.",
            hint="`ca` must be a PEM file with the certificates of the CAs that signed the BMCs' certificates",
        ) from None


@lru_cache(maxsize=8)
def _verified(ca: Path | None, changed_ns: int) -> ssl.SSLContext:
    """Read once for all BMCs, and again when the file changes."""
    context = ssl.create_default_context(cafile=str(ca) if ca is not None else None)
    context.sslsocket_class = BoundedSocket
    return context


@lru_cache(maxsize=1)
def _unverified() -> ssl.SSLContext:
    """Context for a certificate that is then compared with the declared one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.sslsocket_class = BoundedSocket
    return context


def _check_pin(target: Target, tls: ssl.SSLSocket) -> None:
    pinned, presented = target.bmc.certificate, _sha256(tls)
    if pinned is not None and presented != pinned:
        raise BmcError(
            f"{target} presents a different certificate than declared: its SHA-256 is {presented}, declared is {pinned}.",
            hint="possible man-in-the-middle attack; if the certificate was renewed, compare it in the BMC's "
            "web interface or console, and declare the new one",
        )


def _sha256(tls: ssl.SSLSocket) -> str:
    return hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()


def _refused_certificate(
    target: Target, connect: Connect, seconds: float, error: ssl.SSLCertVerificationError
) -> BmcError:
    """The error, with the SHA-256 of the presented certificate: from a second connection, on which nothing is sent."""
    signed_by = "the CAs of this host" if target.bmc.ca is None else f"the CAs in {target.bmc.ca}"
    why = (error.verify_message or "it cannot be verified").rstrip(".")
    hint = "declare the CA that signed it as `ca`"
    try:
        with connect(str(target.bmc.address), target.bmc.port, seconds) as raw:
            raw.settimeout(seconds)
            with _unverified().wrap_socket(raw) as tls:
                hint += (
                    f", or compare its SHA-256 in the BMC's web interface or console and pin it: "
                    f"certificate: {_sha256(tls)}"
                )
    except (OSError, ValueError):
        pass
    return BmcError(f"{target} has a certificate that {signed_by} did not sign: {why}.", hint=hint)
