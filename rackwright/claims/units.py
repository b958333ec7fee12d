"""Claims about systemd units, read with the fact that the deploy acts on."""

from __future__ import annotations

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.facts.units import Unit, UnitState
from rackwright.model.options import RoleOptions
from rackwright.model.unit_files import foreign_unit_files
from rackwright.osfamily.names import names


def runs(context: CheckContext[RoleOptions], unit: str) -> str:
    """A unit is active, starts at boot, and has only declared files."""
    state = state_of(context, unit)
    as_declared(context, unit, state)
    if not state.active:
        fail(f"{unit} is {state.active_state}")
    if not state.enabled:
        fail(f"{unit} is active but {state.file_state or 'not enabled'}: it does not start at boot")
    return f"{unit} is active and enabled"


def starts_at_boot(context: CheckContext[RoleOptions], unit: str, why: str) -> str:
    """A unit is enabled, active or not; `why`: the consequence otherwise."""
    state = state_of(context, unit)
    as_declared(context, unit, state)
    if not state.enabled:
        fail(f"{unit} is {state.file_state or 'not enabled'}: {why}")
    return f"{unit} is {state.file_state}"


def as_declared(context: CheckContext[RoleOptions], unit: str, state: UnitState) -> None:
    """FAIL if a unit is masked or has undeclared files."""
    if state.masked:
        fail(f"{unit} is masked: nothing can start it")
    if foreign := foreign_unit_files(context.node, state.fragment, state.drop_ins):
        fail(f"{', '.join(foreign)} of {unit} is not declared")


def software_runs(context: CheckContext[RoleOptions], software: str) -> str:
    """The unit of a software, under its distribution's name, is active and starts at boot."""
    return runs(context, names(context.node.family, software).unit or "")


def is_masked(context: CheckContext[RoleOptions], unit: str, why: str | None = None) -> str:
    """A unit is masked, so that nothing starts it; `why`: the consequence otherwise."""
    state = state_of(context, unit)
    if not state.masked:
        loaded = state.file_state or ("loaded" if state.loaded else "not found")
        fail(f"{unit} is {loaded}, not masked" + (f": {why}" if why else ""))
    return f"{unit} is masked"


def state_of(context: CheckContext[RoleOptions], unit: str) -> UnitState:
    """The state of a unit as systemd reports it; raises Undetermined if it reports nothing."""
    state = context.fact(Unit, unit)
    if state.active_state in ("", "missing"):
        raise Undetermined(f"systemctl does not report the state of {unit}")
    return state
