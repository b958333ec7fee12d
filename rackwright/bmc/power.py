"""Changes power exactly once; if the BMC's answer is lost, the power state shows whether it obeyed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from rackwright.bmc.interface import BmcClient, Power, PowerAction
from rackwright.bmc.target import NoAnswer
from rackwright.errors import BmcError

_ENDS_AT = {PowerAction.ON: Power.ON, PowerAction.OFF: Power.OFF}
"""For other actions, the power state does not show, or not soon enough, that they were done."""


def switch(client: BmcClient, action: PowerAction, seconds: float, pause: Callable[[], bool]) -> None:
    """Change the power; BmcError if the BMC refuses, NoAnswer if it may have done it and this cannot be observed.

    + seconds: longest time until the power has changed
    + pause: waits a moment; True: stop waiting
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
