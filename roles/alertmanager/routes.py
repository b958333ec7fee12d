"""Which alert goes to which receiver, and when it does not."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import LabelName, Slug
from rackwright.model.text import mistake

LabelText = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Clock = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$")]
Timezone = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+/-]{1,63}$")]
DaysOfMonth = Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,2}(:-?[0-9]{1,2})?$")]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MUTE = Field(default=(), description="Names of `mute_times` within which nothing is sent.")
_LAST_DAY = 31


class Span(Frozen):
    """Part of a day."""

    start: Clock
    end: Clock = Field(description="24:00 is the end of the day.")

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.end <= self.start:
            raise mistake(
                f"{self.start} to {self.end} is not part of one day.",
                "a night is two: `22:00` to `24:00`, and `00:00` to `06:00`",
            )
        return self


class MuteTime(Frozen):
    """When notifications are held back; every condition given must match."""

    weekdays: tuple[Weekday, ...] = ()
    days_of_month: tuple[DaysOfMonth, ...] = Field(
        default=(), description="Days and ranges, e.g. `1:7`; -1 is the last day."
    )
    times: tuple[Span, ...] = Field(default=(), description="Parts of these days. Empty: all day.")
    timezone: Timezone = Field(default="UTC", description="E.g. `Europe/Berlin`.")

    @model_validator(mode="after")
    def _is_some_time(self) -> Self:
        if not (self.weekdays or self.days_of_month or self.times):
            raise mistake("This mute time never ends: no alert would be sent.", "e.g. `weekdays: [sunday]`")
        return self

    @field_validator("days_of_month")
    @classmethod
    def _are_days(cls, ranges: tuple[str, ...]) -> tuple[str, ...]:
        for one in ranges:
            first, last = (int(day) for day in (one if ":" in one else f"{one}:{one}").split(":"))
            within = all(1 <= abs(day) <= _LAST_DAY for day in (first, last))
            if not within or ((first < 0) == (last < 0) and first > last) or (first < 0 < last):
                raise mistake(
                    f"{one} is not a range of days of a month.", "e.g. `1:7`, or `-1` for the last day"
                )
        return ranges


class SeverityRoute(Frozen):
    """Where alerts of one severity go."""

    receiver: Slug | None = Field(default=None, description="None: the first of `receivers`.")
    repeat_hours: float = Field(
        default=24, ge=0.01, le=1000, description="After how long an alert that still fires is sent again."
    )
    mute: tuple[Slug, ...] = _MUTE


class Route(Frozen):
    """Alerts with some labels, wherever their severity would take them."""

    match: dict[LabelName, LabelText] = Field(default_factory=dict, description="Labels and their values.")
    match_regex: dict[LabelName, LabelText] = Field(
        default_factory=dict, description="Labels and regular expressions (RE2) of the whole value."
    )
    receiver: Slug
    repeat_hours: float | None = Field(default=None, ge=0.01, le=1000, description="None: as for warnings.")
    further: bool = Field(default=False, description="Whether later routes get these alerts as well.")
    mute: tuple[Slug, ...] = _MUTE

    @field_validator("match_regex")
    @classmethod
    def _are_expressions(cls, given: dict[str, str]) -> dict[str, str]:
        for label, expression in given.items():
            try:
                re.compile(expression)
            except re.error as error:
                raise mistake(
                    f"{expression!r} for {label} is not a regular expression: {error}.", "e.g. `gpu.*`"
                ) from None
        return given

    @model_validator(mode="after")
    def _matches_some(self) -> Self:
        if not self.match and not self.match_regex:
            raise mistake("This route takes every alert.", "e.g. `match: {alertname: NodeDown}`")
        return self
