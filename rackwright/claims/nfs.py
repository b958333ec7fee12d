"""Claims about NFS authentication: the daemons for Kerberos and TLS run where they are declared."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.claims.check import CheckContext, fail
from rackwright.claims.units import state_of
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem

TLS = "tlshd.service"
"""Of ktls-utils: makes the TLS handshake for the kernel (tlshd(8))."""
CLIENT_OF_KERBEROS = ("rpc-gssd.service",)
SERVER_OF_KERBEROS = ("rpc-svcgssd.service", "gssproxy.service")
"""Debian's nfs-utils has the first, EL's uses the second; one of them answers the kernel (rpc.svcgssd(8), gssproxy(8))."""


def _values(filesystems: Iterable[Filesystem], name: str) -> set[str]:
    return {
        value
        for one in filesystems
        for key, _, value in (option.partition("=") for option in one.options)
        if key == name
    }


def uses_kerberos(filesystems: Iterable[Filesystem]) -> bool:
    """Whether a filesystem declares `sec=krb5...`."""
    return any("krb5" in value for value in _values(filesystems, "sec"))


def uses_tls(filesystems: Iterable[Filesystem]) -> bool:
    """Whether a filesystem declares TLS."""
    return bool(_values(filesystems, "xprtsec") - {"none"})


def secured(filesystems: Iterable[Filesystem]) -> bool:
    """Whether a filesystem declares one of them."""
    return uses_kerberos(filesystems) or uses_tls(filesystems)


def daemons_run(
    context: CheckContext[RoleOptions], filesystems: tuple[Filesystem, ...], kerberos: tuple[str, ...]
) -> str:
    """One of the units for Kerberos is active, and tlshd for TLS; each where a filesystem declares it."""
    said = []
    groups = ((uses_kerberos(filesystems), kerberos), (uses_tls(filesystems), (TLS,)))
    for units in (units for wanted, units in groups if wanted):
        active = next((unit for unit in units if state_of(context, unit).active), None)
        if active is None:
            fail(f"{' or '.join(units)} is not running: filesystems with this security cannot be used")
        said.append(f"{active} runs")
    return ", ".join(said)
