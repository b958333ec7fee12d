"""A BMC's report of a node's firmware and BIOS settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackwright.bmc.interface import BmcClient, Firmware, Power
from rackwright.bmc.target import NoAnswer
from rackwright.errors import BmcError
from rackwright.model.firmware import Baseline, matches


@dataclass(frozen=True)
class Reading:
    """One node; an error in place of what its BMC could not report."""

    power: Power = Power.UNKNOWN
    bios: str | None = None
    bmc: str | None = None
    components: tuple[Firmware, ...] = ()
    components_error: str | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    attributes_error: str | None = None
    pending: Mapping[str, object] = field(default_factory=dict)
    """BIOS attributes that the next boot sets."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Declared BIOS attributes that differ to why they cannot be set, where that was asked for."""


def read(client: BmcClient, baseline: Baseline, *, rules: bool = False) -> Reading:
    """Ask one BMC for what the baseline declares, and for all components that it lists.

    + rules: ask why declared BIOS attributes cannot be set, too
    """
    identity = client.identity()
    components, why_none = _components(client, baseline)
    attributes: dict[str, object] = {}
    pending: dict[str, object] = {}
    refused: dict[str, str] = {}
    error = None
    if baseline.bios_attributes:
        try:
            attributes, pending = client.bios(), client.bios_pending()
            differing = _differing(baseline, attributes)
            refused = client.updates().bios_refusals(differing) if rules and differing else {}
        except NoAnswer:
            raise
        except BmcError as problem:
            error = problem.message
    return Reading(
        power=client.power(),
        bios=identity.bios,
        bmc=identity.bmc_firmware,
        components=components,
        components_error=why_none,
        attributes=attributes,
        attributes_error=error,
        pending=pending,
        refused=refused,
    )


def same(declared: object, found: object) -> bool:
    """Whether two values are equal and of one type: `true`, 1 and "1" are three."""
    numbers = isinstance(declared, int | float) and isinstance(found, int | float)
    plain = numbers and not isinstance(declared, bool) and not isinstance(found, bool)
    return declared == found and (plain or type(declared) is type(found))


def _differing(baseline: Baseline, attributes: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value
        for name, value in baseline.bios_attributes.items()
        if name not in attributes or not same(value, attributes[name])
    }


def _components(client: BmcClient, baseline: Baseline) -> tuple[tuple[Firmware, ...], str | None]:
    """The inventory, and parts beside it where something declared is not in it."""
    try:
        found = client.updates().components()
    except NoAnswer:
        raise
    except BmcError as error:
        return (), error.message
    missing = [glob for glob in baseline.components if not named_by(glob, found)]
    if missing:
        found = [*found, *client.updates().devices()]
    return tuple(found), None


def named_by(glob: str, components: tuple[Firmware, ...] | list[Firmware]) -> list[Firmware]:
    """The components whose id or name a glob names."""
    return [one for one in components if matches(glob, one.id) or matches(glob, one.name)]
