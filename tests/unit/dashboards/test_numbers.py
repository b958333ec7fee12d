"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from rackwright.dashboards.model import Unit
from rackwright.dashboards.numbers import scale, shown


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (Unit.NUMBER, 0, "0"),
        (Unit.NUMBER, 12345, "12345"),
        (Unit.NUMBER, 1_234_567, "1.23 M"),
        (Unit.NUMBER, 2.5, "2.5"),
        (Unit.RATIO, 0.3571, "35.7 %"),
        (Unit.PERCENT, 99.96, "100 %"),
        (Unit.BYTES, 3 * 2**30, "3 GiB"),
        (Unit.BYTES, 12, "12 B"),
        (Unit.BYTES_PER_SECOND, 4.7e10, "47 GB/s"),
        (Unit.BYTES_PER_SECOND, -1500, "-1.5 kB/s"),
        (Unit.GIGABYTES_PER_SECOND, 371.2, "371 GB/s"),
        (Unit.WATTS, 11_200, "11.2 kW"),
        (Unit.KILOWATT_HOURS, 0.034, "0.034 kWh"),
        (Unit.GRAMS, 45_000, "45 kg"),
        (Unit.CELSIUS, 61, "61 °C"),
        (Unit.SECONDS, 0.000177, "177 µs"),
        (Unit.SECONDS, 0, "0 s"),
        (Unit.SECONDS, 45, "45 s"),
        (Unit.SECONDS, 7260, "2 h 1 min"),
        (Unit.SECONDS, 7200, "2 h"),
        (Unit.SECONDS, 200, "3 min 20 s"),
        (Unit.SECONDS, 86400 * 4 + 3 * 3600 + 59, "4 d 3 h"),
        (Unit.SECONDS, -7260, "-2 h 1 min"),
        (Unit.MEGAHERTZ, 1980, "1980 MHz"),
        (Unit.ROTATIONS_PER_MINUTE, 8400, "8400 rpm"),
        (Unit.PER_SECOND, 0.5, "0.5 /s"),
        (Unit.STATE, 4, "4"),
        (Unit.WATTS, math.nan, "unknown"),
        (Unit.WATTS, math.inf, "∞"),
        (Unit.WATTS, -math.inf, "-∞"),
    ],
)
def test_a_number(unit, value, text):
    assert shown(unit, value) == text


def test_all_numbers_of_a_chart_have_one_scale():
    by = scale(Unit.BYTES_PER_SECOND, -5e9)
    assert (by.divisor, by.suffix) == (1e9, " GB/s")
    assert scale(Unit.WATTS, math.inf).divisor == 1


def test_a_unit_is_one_that_grafana_knows():
    """By the SDK's own list of Grafana's units."""
    from grafana_foundation_sdk.models import units

    known = {
        value for name, value in vars(units).items() if not name.startswith("_") and isinstance(value, str)
    }
    assert {unit.value for unit in Unit} - {"none"} <= known
