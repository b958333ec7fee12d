"""Numbers as people read them: 1.2 GB/s, 36 %, 4 d 3 h."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rackwright.dashboards.model import Unit

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_IEC = ((2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "Ki"))
_TIMES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_SMALL = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


@dataclass(frozen=True)
class Scale:
    """What a number is divided by, and what stands behind it."""

    divisor: float
    suffix: str


def scale(unit: Unit, largest: float) -> Scale:
    """The scale for numbers up to an absolute value of `largest`."""
    size = abs(largest) if math.isfinite(largest) else 0.0
    if unit is Unit.RATIO:
        return Scale(0.01, " %")
    if unit is Unit.SECONDS:
        return _seconds(size)
    if unit is Unit.BYTES:
        return _prefixed(size, _IEC, "B")
    if unit in _PREFIXED:
        return _prefixed(size, _SI, _PREFIXED[unit])
    if unit is Unit.NUMBER and size >= 1e5:
        return _prefixed(size, _SI, "")
    return Scale(1.0, _PLAIN.get(unit, ""))


_PREFIXED = {
    Unit.BYTES_PER_SECOND: "B/s",
    Unit.WATTS: "W",
    Unit.GRAMS: "g",
}
_PLAIN = {
    Unit.PERCENT: " %",
    Unit.GIGABYTES_PER_SECOND: " GB/s",
    Unit.KILOWATT_HOURS: " kWh",
    Unit.CELSIUS: " °C",
    Unit.PER_SECOND: " /s",
    Unit.MEGAHERTZ: " MHz",
    Unit.ROTATIONS_PER_MINUTE: " rpm",
}


def _prefixed(size: float, prefixes: tuple[tuple[float, str], ...], unit: str) -> Scale:
    for divisor, prefix in prefixes:
        if size >= divisor:
            return Scale(divisor, f" {prefix}{unit}")
    return Scale(1.0, f" {unit}")


def _seconds(size: float) -> Scale:
    for divisor, name in _TIMES:
        if size >= 2 * divisor:
            return Scale(divisor, f" {name}")
    for divisor, name in _SMALL:
        if size >= divisor:
            return Scale(divisor, f" {name}")
    return Scale(1.0, " s")


def shown(unit: Unit, value: float) -> str:
    """One number with its unit; `unknown` for NaN or infinity."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if unit is Unit.SECONDS and abs(value) >= 120:
        return _duration(value)
    by = scale(unit, value)
    return f"{rounded(value / by.divisor)}{by.suffix}"


def rounded(value: float) -> str:
    """Three figures, no more than needed: 12, 1.25, 0.034, 12345."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.3g}"


def _duration(value: float) -> str:
    """The two largest parts: `4 d 3 h`."""
    sign, left = ("-", -value) if value < 0 else ("", value)
    parts: list[str] = []
    for divisor, name in (*_TIMES, (1.0, "s")):
        count, left = divmod(left, divisor)
        if count or parts:
            parts.append(f"{count:.0f} {name}")
        if len(parts) == 2:
            break
    return sign + " ".join(part for part in parts if not part.startswith("0 "))
