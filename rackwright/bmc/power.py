"""Orders a change of power once; where the BMC's answer is lost, the power decides whether it has obeyed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from rackwright.bmc.interface import BmcClient, Power, PowerAction
from rackwright.bmc.target import NoAnswer
from rackwright.errors import BmcError

_ENDS_AT = {PowerAction.ON: Power.ON, PowerAction.OFF: Power.OFF}
"""Of the other actions the power does not show soon enough, or not at all, that they were carried out."""


def switch(client: BmcClient, action: PowerAction, seconds: float, pause: Callable[[], bool]) -> None:
    """Switch the power; BmcError where the BMC refuses, NoAnswer where it may have done it and this cannot be seen.

    + seconds: how long it may take until the power has changed
    + pause: waits a moment; True: wait no longer
    """
    try:
        return client.set_power(action)
    except NoAnswer as error:
        lost = error
    deadline = time.monotonic() + seconds
    while action in _ENDS_AT and time.monotonic() < deadline:
        with suppress(BmcError):
            if client.power() is _ENDS_AT[action]:
                return None
        if pause():
            break
    raise lost
