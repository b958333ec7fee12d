"""Early ends of a machine's installation: refused, interrupted, or timed out."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.errors import InstallError
from rackwright.install import steady
from rackwright.install.erasure import MODE, time_limit
from rackwright.install.interlocks import Refusal
from rackwright.install.record import Record
from rackwright.install.states import State
from rackwright.model.install import BootNetwork


class Refused(InstallError):  # noqa: N818 - reads as a sentence
    """A machine that must not be installed; nothing was done to it."""

    def __init__(self, node: str, found: list[Refusal]) -> None:
        self.refusals = tuple(found)
        reasons = "; ".join(one.message for one in found)
        super().__init__(f"{node} was not touched: {reasons}.", hint=found[0].hint)


class Interrupted(InstallError):  # noqa: N818
    """The run was interrupted: the agent continues alone, and the next run resumes it."""


@dataclass(frozen=True)
class Tempo:
    """Time limits in seconds; larger in the lab, which emulates machines in software."""

    poll: float = 2.0
    power_on: float = 180.0
    """From the power-on command to the BMC's `on`."""
    power_off: float = 300.0
    """From the agent's last report to the BMC's `off`."""
    bmc_silent: float = 600.0
    """How long a BMC may stay silent before the run gives the node up; the agent works without it."""
    power_lost: float = 60.0
    """How long a working machine must appear off, with a silent agent, to count as having lost power: restarting BMCs also
    report `Off`."""
    installing: float = 4 * 3600.0
    first_boot: float = 1800.0


def overdue(
    record: Record, off_for: float | None, was_on: bool, waited: float, network: BootNetwork, tempo: Tempo
) -> str | None:
    """Why to stop waiting for the agent or installer; None: keep waiting.

    + off_for: seconds that the machine has appeared off while its agent was silent
    + was_on: whether it appeared on before
    + waited: seconds that this process has waited
    """
    state = record.state
    if off_for is not None and off_for > tempo.power_lost and was_on:
        return f"the machine lost power in {state}, at {record.percent} %"
    if off_for is not None and off_for > tempo.power_on and not was_on:
        return f"the machine is still off {off_for:.0f} s after the power-on command"
    if state is State.ARMED and record.token_until <= steady.now():
        return (
            f"the agent did not call within {network.token_minutes} min: see rackwright bmc console; "
            f"the machine is still on (rackwright bmc power FILE off --limit {record.node})"
        )
    if state is State.INSTALLER and record.token_until <= steady.now():
        return (
            f"the installer did not fetch its session within {network.token_minutes} min (last: "
            f"{record.phase or 'no file at all'}): see rackwright bmc console; "
            f"the machine is still on (rackwright bmc power FILE off --limit {record.node})"
        )
    # confirmation was impossible before this process began, and a confirmed node waits for its turn
    held = min(steady.now() - record.since, waited)
    if state is State.HELD and held > 60 * network.hold_minutes and not _agreed(record):
        return f"not confirmed within {network.hold_minutes} min: {record.reason}"
    if waited > (limit := tempo.installing + time_limit(record)):
        done = "erased" if record.mode == MODE else "installed"
        return f"not {done} within {limit / 3600:.3g} h, in {state}"
    return None


def _agreed(record: Record) -> bool:
    return bool(record.held) and set(record.held) <= set(record.confirmed)
