"""Checks of the snmp_exporter role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.prometheus import has_prometheus, probes_answer
from rackwright.model.cluster import Node
from rackwright.roles.snmp_exporter import texts
from rackwright.roles.snmp_exporter.options import SnmpExporterOptions
from rackwright.secrets.store import store_of


def _reads(context: CheckContext[SnmpExporterOptions]) -> str:
    return as_rendered(context, {texts.modules_path(context.options): texts.modules()})


def _credentials(context: CheckContext[SnmpExporterOptions]) -> str:
    """By digest and access."""
    options, store = context.options, store_of(context.cluster)
    if missing := store.missing(options.supplied_secrets):
        raise Undetermined(f"the secrets store lacks {', '.join(missing)}")
    wanted = texts.auths(options, lambda name: store.get(name).reveal())
    path = holds_secret_text(context, texts.auths_path(options), wanted)
    return has_access(context, path, "640", "root", options.names(context.node).settings["user"])


def _devices(context: CheckContext[SnmpExporterOptions]) -> str:
    options = context.options
    names = {device.target: name for name, device in options.devices.items()}
    return probes_answer(context, options.job, f'up{{job="{options.job}"}}', names)


def _asks_devices(node: Node, options: SnmpExporterOptions) -> bool:
    return bool(options.devices) and has_prometheus(node)


CHECKS = (
    *exporter_checks("snmp_exporter", texts.arguments),
    Check("snmp_exporter has its declared settings", _reads),
    Check("only snmp_exporter can read its credentials", _credentials),
    Check("every declared device answers", _devices, live=True, settle_seconds=90, applies=_asks_devices),
)
