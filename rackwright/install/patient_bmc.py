"""A BMC whose answers may be late or lost, e.g. while it restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event

from rackwright.bmc import power
from rackwright.bmc.interface import BmcClient, Power, PowerAction
from rackwright.errors import BmcError, InstallError
from rackwright.install.limits import Interrupted, Tempo
from rackwright.install.record import Record
from rackwright.install.serials import name_to_type
from rackwright.model.cluster import Node


@dataclass
class PatientBmc:
    """Queries and controls one machine's power."""

    client: BmcClient
    tempo: Tempo
    stop: Event
    """Ends every wait."""
    known: bool = False
    """Whether this process has verified that the BMC belongs to the machine."""
    _silent_since: float | None = None

    def require_machine_of(self, record: Record, *, again: bool = False) -> None:
        """InstallError if this BMC belongs to another machine than the run started with; checked once, before any order.

        Between two processes, cables, addresses and the machine may have changed.
        """
        if self.known and not again:
            return
        if not record.is_of(self.client.identity()):
            raise InstallError(
                f"The BMC of {record.node} belongs to another machine than run {record.run} started with.",
                hint="check the BMCs' cables and addresses: two may be swapped; restart a replaced machine "
                f"with its serial number (--reinstall {record.node}=SERIAL, decommission: --serial)",
            )
        self.known = True

    def require_going_on(self, node: Node) -> None:
        """Interrupted if the run must stop: after Ctrl-C no more machines are powered on."""
        if self.stop.is_set():
            raise Interrupted(f"{node.name} was not powered on.")

    def is_replaced(self, record: Record, node: Node, typed: str) -> bool:
        """Whether the operator named the BMC's machine, and the run started with another one."""
        found = self.client.identity()
        name, _ = name_to_type(node.serial, found.serial, found.uuid)
        return typed == name and not record.is_of(found)

    def power(self) -> Power:
        """The power; UNKNOWN while the BMC does not answer, and its BmcError once that has lasted for minutes."""
        try:
            found = self.client.power()
        except BmcError:
            self._silent_since = self._silent_since or time.monotonic()
            if time.monotonic() - self._silent_since > self.tempo.bmc_silent:
                raise
            return Power.UNKNOWN
        self._silent_since = None
        return found

    def switch_on(self) -> None:
        """Power the machine on. A BMC whose answer was lost may have done it, so check its power."""
        power.switch(
            self.client, PowerAction.ON, self.tempo.power_on, lambda: self.stop.wait(self.tempo.poll)
        )

    def switch_on_if_off(self) -> None:
        """As above, for a machine that may already be on."""
        if self.client.power() is Power.OFF:
            self.client.set_power(PowerAction.ON)

    def insist(self, order: Callable[[], None]) -> Iterator[BmcError]:
        """Run an idempotent order; yields each failure, then retries, and raises the last one."""
        deadline = time.monotonic() + self.tempo.bmc_silent
        while True:
            try:
                return order()
            except BmcError as error:
                if time.monotonic() > deadline:
                    raise
                yield error
