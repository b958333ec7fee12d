"""Checks of the ipmi_exporter role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.prometheus import has_prometheus, probes_answer
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.render import render
from rackwright.roles.ipmi_exporter import texts
from rackwright.roles.ipmi_exporter.options import IpmiExporterOptions
from rackwright.secrets.store import store_of

_ASK = "timeout 20 bmc-info --get-device-id"


def _reads(context: CheckContext[IpmiExporterOptions]) -> str:
    """By digest and access: it may hold a password."""
    options, node = context.options, context.node
    store = store_of(context.cluster) if options.reads_others(node) else None
    if store is not None and store.missing((options.password,)):
        raise Undetermined(f"the secrets store lacks {options.password}")
    wanted = texts.conf(node, options, lambda name: store.get(name).reveal() if store is not None else "")
    path = holds_secret_text(context, texts.conf_path(options), wanted)
    return has_access(context, path, "640", "root", options.names(node).settings["user"])


def _own(context: CheckContext[IpmiExporterOptions]) -> str:
    """With the driver that the exporter uses, which a node has to load itself."""
    as_rendered(context, {texts.MODULES_LOAD: render("ipmi_exporter/modules-load.conf.j2")})
    if context.output("sh -c %s", f"{texts.DRIVER_LOADED} || echo missing").strip() != "loaded":
        fail("the module ipmi_devintf is not loaded, so there is no /dev/ipmi0")
    device_id = context.output(_ASK)
    for line in device_id.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Firmware Revision" and value.strip():
            return f"the BMC answers, firmware {value.strip()}"
    raise Undetermined("bmc-info prints no firmware revision")


def _others(context: CheckContext[IpmiExporterOptions]) -> str:
    """By `ipmi_up`: `up` stays 1 when a BMC refuses the password."""
    options = context.options
    names = {str(address): f"the BMC of {name}" for name, address in options.addresses.items()}
    return probes_answer(context, options.job, f'max by (instance) (ipmi_up{{job="{options.job}"}})', names)


def _serves(node: Node, options: IpmiExporterOptions) -> bool:
    return options.serves(node)


def _reads_own(node: Node, options: IpmiExporterOptions) -> bool:
    return options.reads_own(node)


def _asks_others(node: Node, options: IpmiExporterOptions) -> bool:
    return options.reads_others(node) and has_prometheus(node)


CHECKS = (
    *exporter_checks("ipmi_exporter", texts.arguments, applies=_serves),
    Check("ipmi_exporter has its declared settings", _reads, applies=_serves),
    Check("every declared BMC answers", _others, live=True, settle_seconds=90, applies=_asks_others),
    Check(
        "this node's BMC answers in-band",
        _own,
        needs=frozenset({Capability.HARDWARE}),
        applies=_reads_own,
    ),
)
