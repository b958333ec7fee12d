"""An order to switch the power, and what is made of an answer that was lost."""

from __future__ import annotations

import pytest

from rackwright.bmc.interface import Power, PowerAction
from rackwright.bmc.power import switch
from rackwright.bmc.target import NoAnswer
from rackwright.errors import BmcError

LOST, REFUSED = NoAnswer("lost"), BmcError("refused")


class Bmc:
    """Takes one order and reports the given powers in turn, the last one from then on."""

    def __init__(self, answer: BmcError | None, *powers: Power | BmcError) -> None:
        self.answer, self.powers = answer, list(powers)
        self.ordered: list[PowerAction] = []

    def set_power(self, action: PowerAction) -> None:
        self.ordered.append(action)
        if self.answer is not None:
            raise self.answer

    def power(self) -> Power:
        power = self.powers.pop(0) if len(self.powers) > 1 else self.powers[0]
        if isinstance(power, BmcError):
            raise power
        return power


def never_late() -> bool:
    return False


@pytest.mark.parametrize("action", PowerAction)
def test_an_order_that_is_accepted_is_not_looked_after(action):
    bmc = Bmc(None)
    switch(bmc, action, 60, never_late)
    assert bmc.ordered == [action]


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [(PowerAction.ON, Power.OFF, Power.ON), (PowerAction.OFF, Power.ON, Power.OFF)],
)
def test_where_the_answer_is_lost_the_power_decides(action, before, after):
    bmc = Bmc(LOST, before, LOST, Power.UNKNOWN, after)
    switch(bmc, action, 60, never_late)
    assert bmc.ordered == [action], "once: a second order could meet a machine that was switched by hand"


def test_a_power_that_never_changes_is_no_success():
    pauses = iter([False, False, True])
    bmc = Bmc(LOST, Power.ON)
    with pytest.raises(NoAnswer, match="lost"):
        switch(bmc, PowerAction.OFF, 60, lambda: next(pauses))
    assert list(pauses) == []
    with pytest.raises(NoAnswer, match="lost"):
        switch(bmc, PowerAction.OFF, 0, never_late)


@pytest.mark.parametrize("action", [PowerAction.SOFT, PowerAction.CYCLE, PowerAction.RESET])
def test_what_the_power_does_not_show_stays_unknown(action):
    with pytest.raises(NoAnswer, match="lost"):
        switch(Bmc(LOST, Power.ON), action, 60, never_late)


def test_a_refusal_is_one_whatever_the_power():
    with pytest.raises(BmcError, match="refused"):
        switch(Bmc(REFUSED, Power.OFF), PowerAction.OFF, 60, never_late)
