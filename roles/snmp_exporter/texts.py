"""The files of snmp_exporter.

Keys: prometheus/snmp_exporter, generator/README.md and snmp.yml of 0.28 (read 2026-11-27). Credentials apart from modules
came with 0.23; the distributions before have older ones, which refuse these files.
"""

from __future__ import annotations

from collections.abc import Callable

import yaml

from rackwright.model.cluster import Cluster, Node
from rackwright.roles.snmp_exporter.devices import Auth
from rackwright.roles.snmp_exporter.modules import modules_data
from rackwright.roles.snmp_exporter.options import SnmpExporterOptions

_HEADER = "# written by rackwright\n"


def modules_path(options: SnmpExporterOptions) -> str:
    """What is read."""
    return f"{options.folder}/modules.yml"


def auths_path(options: SnmpExporterOptions) -> str:
    """With which credentials."""
    return f"{options.folder}/auths.yml"


def modules() -> str:
    """modules.yml."""
    return _HEADER + yaml.safe_dump({"modules": modules_data()}, sort_keys=False, width=120)


def auths(options: SnmpExporterOptions, secret: Callable[[str], str]) -> str:
    """auths.yml."""
    data = {name: _auth(auth, secret) for name, auth in sorted(options.auths.items())}
    return _HEADER + yaml.safe_dump({"auths": data}, sort_keys=False, width=120)


def _auth(auth: Auth, secret: Callable[[str], str]) -> dict[str, object]:
    if auth.community is not None:
        return {"version": 2, "community": secret(auth.community)}
    return {
        "version": 3,
        "username": auth.user,
        "security_level": "authPriv",
        "password": secret(auth.password or ""),
        "auth_protocol": auth.auth_protocol,
        "priv_protocol": auth.priv_protocol,
        "priv_password": secret(auth.priv_password or ""),
    }


def arguments(cluster: Cluster, node: Node, options: SnmpExporterOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    every = (modules_path(options), auths_path(options), *options.module_files)
    return tuple(f"--config.file={path}" for path in every)


def check_command(node: Node, options: SnmpExporterOptions) -> str:
    """Reads a file, `%s`, as the program does."""
    return f"{options.names(node).paths['program']} --dry-run --config.file=%s"
