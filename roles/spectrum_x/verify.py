"""Checks of the spectrum_x role: registers, firmware parameters and the congestion control as declared."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.packages import package_state
from rackwright.claims.units import runs
from rackwright.model.platforms import Capability
from rackwright.roles.spectrum_x import paths, texts
from rackwright.roles.spectrum_x.options import Card, SpectrumXOptions

PACKAGE = "doca-spcx-cc"
"""NVIDIA Network Operator 25.10, Spectrum-X NIC configuration (doca-spcx-cc_3.1.0105-1_amd64.deb), read 2026-11-25."""


def _cards(context: CheckContext[SpectrumXOptions]) -> tuple[Card, ...]:
    cards = context.options.cards(context.cluster, context.node)
    if not cards:
        raise Undetermined("no NIC is declared for this node: see `roles.rdma.devices`")
    return cards


def _at_boot(context: CheckContext[SpectrumXOptions]) -> str:
    as_rendered(context, texts.files(context.options, _cards(context)), {paths.PROGRAM: "755"})
    return runs(context, paths.UNIT)


def _registers(context: CheckContext[SpectrumXOptions]) -> str:
    wrong, unknown = [], []
    for card in _cards(context):
        found = texts.parse_register(context.output(texts.register_of(context.options, card)))
        for name, value in context.options.fields.items():
            if name not in found:
                unknown.append(f"{card.name} has no {name}")
            elif found[name] != value:
                wrong.append(f"{card.name}: {name} is {found[name]}, not {value}")
    if wrong:
        fail("; ".join(wrong))
    if unknown:
        raise Undetermined("; ".join(unknown))
    return ", ".join(f"{name} {value}" for name, value in context.options.fields.items())


def _firmware(context: CheckContext[SpectrumXOptions]) -> str:
    wanted = context.options.firmware
    wrong, unknown = [], []
    tool = "mlxconfig" if context.options.tool == "mlxreg" else "mstconfig"
    for card in _cards(context):
        words = (card.pci, *wanted)
        found = texts.parse_parameters(
            context.output(f"timeout 60 {tool} -d %s q{' %s' * len(wanted)}", *words)
        )
        for name, value in wanted.items():
            if name not in found:
                unknown.append(f"{card.name}: {tool} prints no {name}")
            elif found[name] != value:
                wrong.append(f"{card.name}: {name} is {found[name]}, not {value}")
    if wrong:
        fail("; ".join(wrong))
    if unknown:
        raise Undetermined("; ".join(unknown))
    return ", ".join(f"{name} {value}" for name, value in wanted.items())


def _congestion_control(context: CheckContext[SpectrumXOptions]) -> str:
    there = package_state(context, (PACKAGE,)).installed.get(PACKAGE)
    wanted = context.options.congestion_control
    if there != wanted:
        fail(f"{PACKAGE} is {there or 'not installed'}, not {wanted}")
    return f"{PACKAGE} {there}"


_HARDWARE = frozenset({Capability.HARDWARE})
CHECKS: tuple[Check, ...] = (
    Check("the NIC registers are set at every boot", _at_boot, needs=_HARDWARE),
    Check("the NICs' adaptive routing is as declared", _registers, needs=_HARDWARE),
    Check(
        "the NIC firmware has the declared parameters",
        _firmware,
        needs=_HARDWARE,
        applies=lambda node, options: bool(options.firmware),
    ),
    Check(
        "the congestion control for Spectrum-X is installed as declared",
        _congestion_control,
        applies=lambda node, options: options.congestion_control is not None,
    ),
)
