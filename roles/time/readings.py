"""What chronyc and date print, read into values."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.claims.check import Undetermined

LOCAL_REFERENCE = "7F7F0101"
"""Reference ID (127.127.1.1) of a chronyd that serves its own clock."""
MOST_DRIFT = 500e-6
"""The largest frequency error that Linux corrects (MAXFREQ of linux/timex.h, 500 ppm); crystals stay below 100 ppm."""


@dataclass(frozen=True)
class Tracking:
    """`chronyc -c -n tracking`."""

    reference_id: str
    reference: str
    stratum: int
    offset_seconds: float
    """How far the system clock is from NTP time; positive is slow."""
    root_delay_seconds: float
    root_dispersion_seconds: float
    leap: str

    @property
    def synchronised(self) -> bool:
        """Whether chronyd follows anything at all."""
        return self.leap != "Not synchronised"

    @property
    def error_seconds(self) -> float:
        """The most the clock can be off, as chronyc(1) defines it."""
        return abs(self.offset_seconds) + self.root_dispersion_seconds + self.root_delay_seconds / 2


@dataclass(frozen=True)
class Source:
    """One line of `chronyc -c -n sources`."""

    state: str
    """`*` selected, `+` combined, `-` not combined, `?` unusable, `x` falseticker, `~` too variable."""
    address: str
    stratum: int
    reach: int
    """The last eight polls, one bit each."""
    age_seconds: int
    """Since the last sample."""
    offset_seconds: float
    """The clock's current offset by that sample, with chronyd's corrections since; positive is fast."""
    margin_seconds: float
    """The most that sample can be wrong."""


def parse_tracking(output: str) -> Tracking:
    """Read `chronyc -c -n tracking`; Undetermined when it is not that."""
    fields = output.strip().split(",")
    if len(fields) != 14:
        raise Undetermined(
            f"chronyc tracking printed {len(fields)} fields and not 14: {output.strip()[:80]!r}"
        )
    try:
        return Tracking(
            reference_id=fields[0],
            reference=fields[1],
            stratum=int(fields[2]),
            offset_seconds=float(fields[4]),
            root_delay_seconds=float(fields[10]),
            root_dispersion_seconds=float(fields[11]),
            leap=fields[13],
        )
    except ValueError as error:
        raise Undetermined(f"chronyc tracking is not readable: {error}") from error


def parse_sources(output: str) -> tuple[Source, ...]:
    """Read `chronyc -c -n sources`; Undetermined for a line that is not a source."""
    sources = []
    for line in output.splitlines():
        fields = line.split(",")
        try:
            state, address, stratum, reach, age = (
                fields[1],
                fields[2],
                int(fields[3]),
                fields[5],
                int(fields[6]),
            )
            offset, margin = float(fields[7]), float(fields[9])
            sources.append(Source(state, address, stratum, int(reach, 8), age, offset, margin))
        except (IndexError, ValueError) as error:
            raise Undetermined(
                f"chronyc sources printed a line that is not a source: {line[:80]!r}"
            ) from error
    return tuple(sources)


def clock_error(tracking: Tracking, sources: tuple[Source, ...]) -> float:
    """The most a clock can be off, in seconds: by all that chronyd knows, or by the last sample alone.

    A chronyd that was just started assumes a frequency error of 100 % (`Skew: 1000000 ppm`) until its samples
    are good enough to estimate it, and its bound grows by a second each second; the sample does not.
    """
    samples = (
        abs(tracking.offset_seconds)
        + abs(source.offset_seconds)
        + source.margin_seconds
        + source.age_seconds * MOST_DRIFT
        for source in sources
        if source.state == "*"
    )
    return min([tracking.error_seconds, *samples])


@dataclass(frozen=True)
class Interval:
    """How far a node's clock is ahead of some other clock: somewhere between two bounds."""

    low: float
    high: float

    def narrowed(self, other: Interval) -> Interval:
        """What both measurements allow; the later one alone when they contradict (a clock was set)."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else other


def spread(intervals: dict[str, Interval]) -> tuple[float, float, str, str]:
    """The least and the most by which two clocks differ, and the nodes furthest behind and ahead."""
    behind = min(intervals, key=lambda name: intervals[name].high)
    ahead = max(intervals, key=lambda name: intervals[name].low)
    least = max(0.0, intervals[ahead].low - intervals[behind].high)
    most = max(entry.high for entry in intervals.values()) - min(entry.low for entry in intervals.values())
    return least, most, behind, ahead
