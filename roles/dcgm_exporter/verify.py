"""Checks of the dcgm_exporter role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered
from rackwright.claims.packages import held_at
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.dcgm_exporter import texts
from rackwright.roles.dcgm_exporter.options import DcgmExporterOptions

_GPU = frozenset({Capability.GPU})


def _paired(context: CheckContext[DcgmExporterOptions]) -> str:
    return held_at(context, context.options.package(context.cluster, context.node))


def _fields(context: CheckContext[DcgmExporterOptions]) -> str:
    options = context.options
    return as_rendered(context, {texts.fields_path(options): texts.fields(options)})


def _jobs(context: CheckContext[DcgmExporterOptions]) -> str:
    scripts = texts.hooks(context.node, context.options)
    return as_rendered(context, scripts, dict.fromkeys(scripts, "755"))


def _real(node: Node, options: DcgmExporterOptions) -> bool:
    return not node.simulates_gpus


CHECKS = (
    Check("dcgm_exporter matches DCGM's version and is held", _paired, needs=_GPU, applies=_real),
    *exporter_checks("dcgm_exporter", texts.arguments, needs=_GPU),
    Check("dcgm_exporter reports the declared fields", _fields, needs=_GPU),
    Check(
        "jobs report their GPUs to dcgm_exporter",
        _jobs,
        needs=_GPU,
        applies=lambda node, options: bool(texts.hooks(node, options)),
    ),
)
