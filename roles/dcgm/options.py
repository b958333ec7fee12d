"""Options of the dcgm role."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import ClassVar

from pydantic import Field

from rackwright.lock.stack_options import StackOptions
from rackwright.model.cluster import Node
from rackwright.model.interfaces import RunsDcgm, WritesUnitFiles
from rackwright.model.services import Listener, Listens
from rackwright.model.types import NetworkPurpose


class DcgmOptions(StackOptions, Listens, RunsDcgm, WritesUnitFiles):
    """DCGM's host engine (nvidia-dcgm.service) on nodes with GPUs; versions are the lock's."""

    role: ClassVar[str] = "dcgm"
    parts: ClassVar[tuple[str, ...]] = ("dcgm",)

    listen: IPv4Address = Field(
        default=IPv4Address("127.0.0.1"),
        description="Address the host engine answers on. It has no authentication: on any other address than loopback, "
        "anyone who reaches it can run diagnostics.",
    )
    port: int = Field(
        default=5555, ge=1024, le=65535, description="Its TCP port (nv-hostengine's own default)."
    )

    @property
    def dcgm_host(self) -> str:
        """Where dcgmi on the node reaches the host engine."""
        return f"{'127.0.0.1' if self.listen.is_unspecified else self.listen}:{self.port}"

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The host engine; on loopback the node alone reaches it."""
        purposes = (
            frozenset[NetworkPurpose]() if self.listen.is_loopback else frozenset({NetworkPurpose.MANAGEMENT})
        )
        return (Listener("nv-hostengine", (self.port, self.port), purposes=purposes),)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Where the host engine listens."""
        return ("/etc/systemd/system/nvidia-dcgm.service.d/90-rackwright.conf",)
