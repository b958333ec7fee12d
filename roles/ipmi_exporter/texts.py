"""The files of ipmi_exporter.

Keys: docs/configuration.md and config.go of prometheus-community/ipmi_exporter 1.10 (read 2026-11-27).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.ipmi_exporter.options import MODULE, IpmiExporterOptions

MODULES_LOAD = "/etc/modules-load.d/rackwright-ipmi.conf"
DRIVER_LOADED = "test -e /sys/module/ipmi_devintf && echo loaded"
LOAD_DRIVER = "modprobe ipmi_si && modprobe ipmi_devintf"
CACHE = "/var/cache/rackwright-ipmi"
"""systemd makes it (CacheDirectory=) for the user that the unit has."""
_ARGUMENTS = {"ipmi": [f"--sdr-cache-directory={CACHE}"]}
"""FreeIPMI's own place is the user's home, which root keeps."""
_PASSWORD = re.compile(r"[^\s\"'\\]*")
"""What freeipmi.conf(5) takes without quotes; the exporter quotes `#` itself."""


def conf_path(options: IpmiExporterOptions) -> str:
    """What is read of which BMC, and the password of those declared."""
    return f"{options.folder}/ipmi.yml"


def conf(node: Node, options: IpmiExporterOptions, secret: Callable[[str], str]) -> str:
    """Without collectors where nothing is read: /metrics then has figures of the program itself."""
    others = options.reads_others(node)
    return render(
        "ipmi_exporter/ipmi.yml.j2",
        own=list(options.collectors) if options.reads_own_here(node) else [],
        collectors=list(options.collectors) if others else [],
        arguments={name: given for name, given in _ARGUMENTS.items() if name in options.collectors},
        excluded=list(options.exclude_sensors),
        module=MODULE,
        options=options,
        password=secret(options.password) if others else None,
    )


def refuse_unreadable(options: IpmiExporterOptions, password: str) -> None:
    """RackwrightError for a password that FreeIPMI would not read as it is."""
    if not _PASSWORD.fullmatch(password):
        raise RackwrightError(
            f"The BMCs' password {options.password} has a space or a quote, which FreeIPMI's file cannot have.",
            hint="give the BMCs' user another password",
        )


def arguments(cluster: Cluster, node: Node, options: IpmiExporterOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    return (f"--config.file={conf_path(options)}",)
