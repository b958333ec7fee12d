"""How the installation of a machine may end early: refused, interrupted, or by a time limit."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.errors import InstallError
from rackwright.install import steady
from rackwright.install.erasure import MODE, time_limit
from rackwright.install.interlocks import Refusal
from rackwright.install.record import Record
from rackwright.install.states import State
from rackwright.model.install import BootNetwork


class Refused(InstallError):  # noqa: N818 - reads as the sentence it is
    """A machine that must not be installed; nothing was done to it."""

    def __init__(self, node: str, found: list[Refusal]) -> None:
        self.refusals = tuple(found)
        reasons = "; ".join(one.message for one in found)
        super().__init__(f"{node} is left alone: {reasons}.", hint=found[0].hint)


class Interrupted(InstallError):  # noqa: N818
    """The run was ended: the agent goes on alone, and the next run finds it."""


@dataclass(frozen=True)
class Tempo:
    """How long things may take, in seconds; the lab emulates machines in software."""

    poll: float = 2.0
    power_on: float = 180.0
    """From the order to the BMC's `on`."""
    power_off: float = 300.0
    """From the agent's last word to the BMC's `off`."""
    bmc_silent: float = 600.0
    """How long a BMC may fail to answer before the run gives the node up; the agent works without it."""
    power_lost: float = 60.0
    """How long a machine that worked is seen off, and its agent is silent, before it has lost its power: BMCs that restart
    report `Off` as well."""
    installing: float = 4 * 3600.0
    first_boot: float = 1800.0


def overdue(
    record: Record, off_for: float | None, was_on: bool, waited: float, network: BootNetwork, tempo: Tempo
) -> str | None:
    """Why agent or installer need not be waited for any more; None: they do.

    + off_for: seconds for which the machine has been seen off, and its agent was silent
    + was_on: whether it was seen on before
    + waited: seconds for which this process has waited
    """
    state = record.state
    if off_for is not None and off_for > tempo.power_lost and was_on:
        return f"the machine lost its power in {state}, at {record.percent} %"
    if off_for is not None and off_for > tempo.power_on and not was_on:
        return f"the machine is still off {off_for:.0f} s after it was ordered on"
    if state is State.ARMED and record.token_until <= steady.now():
        return (
            f"the agent did not call within {network.token_minutes} min: rackwright bmc console shows why; "
            f"the machine is left on (rackwright bmc power FILE off --limit {record.node})"
        )
    if state is State.INSTALLER and record.token_until <= steady.now():
        return (
            f"the installer did not fetch its session within {network.token_minutes} min (last: "
            f"{record.phase or 'no file at all'}): rackwright bmc console shows why; "
            f"the machine is left on (rackwright bmc power FILE off --limit {record.node})"
        )
    # no one could agree before this process began, and what was agreed to waits for its turn
    held = min(steady.now() - record.since, waited)
    if state is State.HELD and held > 60 * network.hold_minutes and not _agreed(record):
        return f"not confirmed within {network.hold_minutes} min: {record.reason}"
    if waited > (limit := tempo.installing + time_limit(record)):
        done = "erased" if record.mode == MODE else "installed"
        return f"not {done} within {limit / 3600:.3g} h, in {state}"
    return None


def _agreed(record: Record) -> bool:
    return bool(record.held) and set(record.held) <= set(record.confirmed)
