"""Options of the node_exporter role."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from rackwright.exporters import ExporterOptions
from rackwright.model.strings import UnitName

Collector = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{1,40}$")]

UNITS: tuple[str, ...] = (
    *("chrony.service", "chronyd.service", "containerd.service", "docker.service", "mariadb.service"),
    *("munge.service", "nfs-server.service", "nvidia-dcgm.service", "nvidia-fabricmanager.service"),
    *("nvidia-imex.service", "nvidia-persistenced.service", "openibd.service", "opensm.service"),
    *(
        "rackwright-firewall.service",
        "slurmctld.service",
        "slurmd.service",
        "slurmdbd.service",
        "slurmrestd.service",
    ),
    *("ssh.service", "sshd.service", "sssd.service", "systemd-journal-remote.service"),
    *("systemd-journal-upload.service", "unbound.service"),
)
"""Units whose state has its own series: five each, so that all units of a node would be a thousand."""


class NodeExporterOptions(ExporterOptions):
    """node_exporter on every node."""

    role: ClassVar[str] = "node_exporter"
    software: ClassVar[str] = "node_exporter"
    job: ClassVar[str] = "node"

    port: int = Field(default=9100, ge=1, le=65535, description="TCP port on the management address.")
    units: tuple[UnitName, ...] = Field(
        default=UNITS,
        description="systemd units whose state is reported one by one; those that failed are counted anyway.",
    )
    collectors: dict[Collector, bool] = Field(
        default_factory=dict,
        description="Collectors to turn on or off, by name, besides rackwright's choice: its defaults, and ethtool, "
        "mountstats, processes and systemd.",
    )
