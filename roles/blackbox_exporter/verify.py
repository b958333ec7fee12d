"""Checks of the blackbox_exporter role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered
from rackwright.roles.blackbox_exporter import texts
from rackwright.roles.blackbox_exporter.options import BlackboxExporterOptions


def _asks(context: CheckContext[BlackboxExporterOptions]) -> str:
    return as_rendered(context, {texts.conf_path(context.options): texts.conf(context.cluster, context.node)})


CHECKS = (
    *exporter_checks("blackbox_exporter", texts.arguments),
    Check("blackbox_exporter has its declared probes", _asks),
)
