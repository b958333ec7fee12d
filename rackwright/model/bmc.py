"""How to reach the baseboard management controller (BMC) of a node."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints

from rackwright.model.options import Frozen


class BmcProtocol(StrEnum):
    """The protocol that a BMC is managed with."""

    REDFISH = "redfish"
    IPMI = "ipmi"
    """IPMI 2.0 over the network (RMCP+): power, boot device, event log and sensors; no virtual media."""

    @property
    def port(self) -> int:
        """Default port of each protocol."""
        return 443 if self is BmcProtocol.REDFISH else 623


CipherSuite = Literal[3, 17]
"""IPMI 2.0 cipher suites: 17 uses SHA-256; 3 uses SHA-1 and is all that many BMCs built before 2015 support."""
CertificateDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a certificate in DER, lower case without colons."""
BmcUserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]


class Bmc(Frozen):
    """The BMC of one node. The password is in the secrets store."""

    address: IPv4Address
    protocol: BmcProtocol = BmcProtocol.REDFISH
    port: int = 443
    user: str
    password: str
    """Name of the password in the secrets store."""
    ca: Path | None = None
    """PEM file of the CAs that may have signed its certificate; absolute once resolved."""
    certificate: str | None = None
    """SHA-256 of the BMC's certificate; no other certificate is accepted."""
    cipher_suite: CipherSuite = 17
    """Allowed IPMI cipher suites; no others are used."""
    timeout_seconds: int = 30
    """Timeout of one request."""
