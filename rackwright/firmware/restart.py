"""Restarts a node through its BMC gracefully: power button, off, on. Never hard power-off, never reset."""

from __future__ import annotations

from contextlib import suppress

from rackwright.bmc.interface import Power, PowerAction
from rackwright.bmc.target import NoAnswer
from rackwright.engine.boots import NotBooted
from rackwright.errors import BmcError
from rackwright.firmware.asking import Asking


def off_and_on(asking: Asking) -> None:
    """Shut the node down and switch it on; NotBooted where it does not go off, and stays as it is then."""
    try:
        _order(asking, PowerAction.SOFT)
        if not asking.until(lambda: _power(asking) is Power.OFF, asking.tempo.shutdown):
            raise NotBooted(
                f"it did not shut down within {asking.tempo.shutdown:g} s of the power button; it is still running",
                gone=False,
            )
        asking.stop.wait(asking.tempo.between)
        switch_on(asking)
    except BmcError as error:
        raise NotBooted(error.message.rstrip("."), gone=False) from error


def switch_on(asking: Asking) -> None:
    """Switch the node on; NotBooted where it stays off."""
    _order(asking, PowerAction.ON)
    if not asking.until(lambda: _power(asking) is Power.ON, asking.tempo.away):
        raise NotBooted("its BMC accepted the power-on command, but it stayed off", gone=True)


def _order(asking: Asking, action: PowerAction) -> None:
    with suppress(NoAnswer):  # it may have obeyed: its power is waited for, and decides
        asking.change(lambda client: client.set_power(action))


def _power(asking: Asking) -> Power:
    return asking.ask(lambda client: client.power())
