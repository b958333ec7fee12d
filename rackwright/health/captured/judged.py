"""Judges a capture: only the checks whose sections it contains, and only what is in it."""

from __future__ import annotations

from rackwright.health.captured.kinds import Capture
from rackwright.health.expected import Expected
from rackwright.health.judge import judge
from rackwright.health.records import MISSING
from rackwright.health.registry import CHECKS
from rackwright.health.verdict import HealthResult
from rackwright.status import Status


def judge_capture(expected: Expected, capture: Capture) -> list[HealthResult]:
    """Every result about what the capture holds.

    A value that captures of this kind never hold would make a check UNKNOWN; such results are left out.
    """
    held = {*capture.sections, "history"}
    return [
        one
        for one in judge(expected, capture.document)
        if held.issuperset(CHECKS[one.check].reads)
        and one.check not in capture.leaves_out
        and not (one.status is Status.UNKNOWN and one.evidence.endswith(MISSING))
    ]
