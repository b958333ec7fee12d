"""A BMC whose answers are late or lost, as those of BMCs that restart are."""

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
    """Asks and orders what is needed of one machine's power."""

    client: BmcClient
    tempo: Tempo
    stop: Event
    """Ends every wait."""
    known: bool = False
    """Whether this process has seen that it is the BMC of the machine."""
    _silent_since: float | None = None

    def require_machine_of(self, record: Record, *, again: bool = False) -> None:
        """InstallError where this is the BMC of another machine than the run was begun on; read once, before any order.

        Between two processes cables, addresses and the machine may have changed.
        """
        if self.known and not again:
            return
        if not record.is_of(self.client.identity()):
            raise InstallError(
                f"The BMC of {record.node} is that of another machine than run {record.run} was begun on.",
                hint="compare cables and addresses of the BMCs: two may be swapped; a machine that was replaced is begun "
                f"anew with its serial number (--reinstall {record.node}=SERIAL, decommission: --serial)",
            )
        self.known = True

    def require_going_on(self, node: Node) -> None:
        """Interrupted where the run is to end: Ctrl-C switches no machine on any more."""
        if self.stop.is_set():
            raise Interrupted(f"{node.name} was not switched on.")

    def is_replaced(self, record: Record, node: Node, typed: str) -> bool:
        """Whether the operator named the machine that it is the BMC of, and the run was begun on another one."""
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
        """Switch the machine on. A BMC whose answer was lost may have done it, so its power decides."""
        power.switch(
            self.client, PowerAction.ON, self.tempo.power_on, lambda: self.stop.wait(self.tempo.poll)
        )

    def switch_on_if_off(self) -> None:
        """The same for a machine that may be on already."""
        if self.client.power() is Power.OFF:
            self.client.set_power(PowerAction.ON)

    def insist(self, order: Callable[[], None]) -> Iterator[BmcError]:
        """Carry out an idempotent order; yields each failure, after which it is tried again, and raises the last one."""
        deadline = time.monotonic() + self.tempo.bmc_silent
        while True:
            try:
                return order()
            except BmcError as error:
                if time.monotonic() > deadline:
                    raise
                yield error
