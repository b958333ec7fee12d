"""What the node's BMC reported, as the checks read it."""

from __future__ import annotations

from rackwright.health.records import (
    Record,
    Unreadable,
    flag,
    flag_or_none,
    many,
    one,
    real_or_none,
    whole,
    whole_or_none,
    word,
    word_or_none,
    words,
)


class BmcSensor(Record):
    name: str = word()
    state: str = word()
    """ok, nc, cr or nr, the last three also with l or u before them."""
    entity: str | None = word_or_none()
    value: float | None = real_or_none()
    unit: str | None = word_or_none()
    text: str = word()


class BmcEvent(Record):
    at: float | None = real_or_none()
    """By the BMC's clock; None where it had none yet."""
    sensor: str = word()
    event: str = word()
    asserted: bool = flag()


class BmcLog(Record):
    entries: int = whole()
    percent: int | None = whole_or_none()
    overflow: bool = flag()


class BmcPower(Record):
    dcmi: bool = flag()
    watts: int | None = whole_or_none()
    active: bool | None = flag_or_none()


class BmcSection(Record):
    tool: str | None = word_or_none()
    device: str | None = word_or_none()
    why: str | None = word_or_none()
    """Why the BMC does not answer."""
    uptime_s: float | None = real_or_none()
    clock: float | None = real_or_none()
    """The BMC's own, when its log was read."""
    log: BmcLog = one(BmcLog)
    log_why: str | None = word_or_none()
    events: list[BmcEvent] = many(BmcEvent)
    events_why: str | None = word_or_none()
    sensors: list[BmcSensor] = many(BmcSensor)
    sensors_why: str | None = word_or_none()
    power: BmcPower = one(BmcPower)
    power_why: str | None = word_or_none()
    faults: list[str] = words()
    faults_why: str | None = word_or_none()

    def need(self, part: str) -> None:
        """Unreadable with the reason that the probe gives where this part was not read."""
        if self.why is not None:
            raise Unreadable(f"the BMC does not answer: {self.why}")
        why: str | None = getattr(self, part + "_why")
        if why is not None:
            raise Unreadable(why)
