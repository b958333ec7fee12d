"""Options of the dcgm role."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import ClassVar

from pydantic import Field

from rackwright.lock.stack_options import StackOptions


class DcgmOptions(StackOptions):
    """DCGM's host engine (nvidia-dcgm.service) on nodes with GPUs; versions are the lock's."""

    role: ClassVar[str] = "dcgm"
    parts: ClassVar[tuple[str, ...]] = ("dcgm",)

    listen: IPv4Address = Field(
        default=IPv4Address("127.0.0.1"),
        description="Address the host engine answers on. It has no authentication: on any other address than loopback, "
        "everyone who reaches it can run diagnostics.",
    )
    port: int = Field(
        default=5555, ge=1024, le=65535, description="Its TCP port (nv-hostengine's own default)."
    )
