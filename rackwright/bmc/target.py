"""One BMC as messages name it, and the errors that other modules of this package distinguish."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.errors import BmcError
from rackwright.model.bmc import Bmc
from rackwright.secrets.secret import Secret

Connect = Callable[[str, int, float], socket.socket]
"""Opens a TCP connection to an address and port, with a time limit in seconds; raises OSError."""


class ResourceMissing(BmcError):  # noqa: N818 - reads as a sentence
    """The BMC does not have the resource, or hides it from this user."""


class ResourceBroken(BmcError):  # noqa: N818
    """The BMC failed to read or change a resource (HTTP status 500 and above)."""


class NoAnswer(BmcError):  # noqa: N818
    """The BMC did not answer, or not in time."""


@dataclass(frozen=True)
class Target:
    """A declared BMC and its password."""

    node: str
    bmc: Bmc
    password: Secret

    def __str__(self) -> str:
        port = "" if self.bmc.port == self.bmc.protocol.port else f", port {self.bmc.port}"
        return f"The BMC of {self.node} ({self.bmc.address}{port})"

    @property
    def named(self) -> str:
        """The name within a sentence."""
        return f"the{str(self)[3:]}"

    def cannot(self, what: str, *, hint: str | None = None) -> BmcError:
        """BmcError: `The BMC of gpu001 (10.0.0.1)` and what it cannot do."""
        return BmcError(f"{self} cannot {what}.", hint=hint)
