"""Enrols a key in one node's firmware: mokutil request, reboot, MokManager on the serial console, read back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from rackwright.bmc.mok_manager import MokManager
from rackwright.bmc.serial_console import Channel
from rackwright.errors import FirmwareError, RackwrightError
from rackwright.firmware.mokutil import (
    KeyState,
    SigningKey,
    one_time_password,
    request,
    revoke,
    state_of,
)
from rackwright.model.cluster import Cluster
from rackwright.ssh import RootShell

Attended = Callable[[Callable[[], None]], None]
"""A boot that needs answers at the console; it is given what orders the node to reboot."""


@dataclass
class EnrolNode:
    """One node, out of service; FirmwareError, BmcError or NotBooted where it does not get there."""

    cluster: Cluster
    node: str
    key: SigningKey
    shell: RootShell
    console: Callable[[], AbstractContextManager[Channel]]
    """Opens the node's serial console."""
    reboot: Callable[[Attended], None]
    """Reboots the node in good order, and waits for it."""
    appears: float
    """Seconds for MokManager to come, from the order to reboot."""
    notice: Callable[[str], None] = lambda text: None
    stopped: Callable[[], bool] = lambda: False

    def run(self) -> tuple[str, ...]:
        """Enrol the key where it is not enrolled; what is so now and was not."""
        if trusted(state_of(self.shell, self.cluster, self.node, self.key)):
            return ()
        password = one_time_password()

        def attended(order: Callable[[], None]) -> None:
            with self.console() as channel:
                manager = MokManager(self.node, channel, stopped=self.stopped, notice=self.notice)
                manager.forget()
                request(self.shell, self.cluster, self.node, self.key, password)
                self.notice("the key is requested; rebooting")
                order()
                manager.enrol(self.key.sha1, password, self.appears)

        try:
            self.reboot(attended)
        except BaseException:
            self._revoke()
            raise
        state = state_of(self.shell, self.cluster, self.node, self.key)
        if state is not KeyState.ENROLLED:
            raise FirmwareError(f"MokManager enrolled the key, but mokutil reports it as {state.value}.")
        return (f"{self.key.name} enrolled",)

    def _revoke(self) -> None:
        """No later boot stops at MokManager for a password that nothing knows any more."""
        with suppress(RackwrightError):
            revoke(self.shell, self.cluster, self.node)


def trusted(state: KeyState) -> bool:
    """Whether modules that are signed with the key load already."""
    return state in (KeyState.ENROLLED, KeyState.TRUSTED)
