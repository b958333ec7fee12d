"""docs/health-checks.md from the registry: `python -m rackwright.health.docs [FILE]`."""

from __future__ import annotations

import sys
from pathlib import Path

from rackwright.health import absent
from rackwright.health.judge import all_checks
from rackwright.health.limits import LIMITS
from rackwright.health.registry import AREAS, HealthCheck

HEAD = """\
# Health checks

Generated from the code by `python -m rackwright.health.docs docs/health-checks.md`; a test fails when it is out of date.

One probe reads a node; {count} checks compare what it reports with the declared SKU and the site's options. A check
reports PASS, WARN, FAIL or UNKNOWN. UNKNOWN means that a value was not read: no data, a missing tool, unexpected
output, a timeout, or a value missing from the SKU. Checks for hardware that the SKU does not have do not run. A check
that the platform cannot support is OUT OF SCOPE; one that the site switches off is DISABLED, with its reason.

`fast`: nodes also run the check themselves, under the scheduler. The action is what a FAIL calls for, unless the
finding has a different one.

| area | checks | fast |
|---|---|---|
{table}
"""

LIMITS_HEAD = """\
## Thresholds

A site overrides any threshold by name (`HealthOptions.limits`). The last column is the day the source was read.

| name | default | of | source | read |
|---|---|---|---|---|
"""


ABSENT_HEAD = """\
## What nvidia-smi does not report

A missing value is UNKNOWN, unless every condition of one of these rows holds and no other GPU of the node reports the
value: then the check is OUT OF SCOPE. All sources were read on {read}.

| value | where | source |
|---|---|---|
"""

BEGIN, END = "<!-- recorded documents: begin -->", "<!-- recorded documents: end -->"
"""Between these markers are the results of `python -m tests.unit.health.corpus --write`."""


def page(before: str) -> str:
    """The regenerated page; the measured part is kept from the old page."""
    _, begin, rest = before.partition(BEGIN)
    measured, end, _ = rest.partition(END)
    return text() + (f"\n{begin}{measured}{end}\n" if end else "")


def text() -> str:
    """The part that is generated from the code."""
    checks = all_checks()
    table = "\n".join(
        f"| {area} | {len(of(checks, area))} | {sum(check.fast for check in of(checks, area))} |"
        for area in AREAS
    )
    pages = "".join(_area(area, of(checks, area)) for area in AREAS)
    limits = "".join(
        f"| `{name}` | {limit.value:g} {limit.unit} | {limit.what} | {limit.source} | {limit.read} |\n"
        for name, limit in LIMITS.items()
    )
    missing = "".join(
        f"| {', '.join(f'`{field}`' for field in row.fields)} | {_where(row)} | {row.source} |\n"
        for row in absent.TABLE
    )
    head = HEAD.format(count=len(checks), table=table)
    return f"{head}{pages}\n{LIMITS_HEAD}{limits}\n{ABSENT_HEAD.format(read=absent.READ)}{missing}"


def _where(row: absent.Absence) -> str:
    parts = [f"driver before {row.below}"] if row.below is not None else []
    parts += [" or ".join(name.capitalize() for name in row.architectures)] if row.architectures else []
    parts += [f"NVSwitches on the {'board' if row.switches == 'node' else 'rack'}"] if row.switches else []
    conditions = (
        (row.mig, "MIG mode"),
        (row.vm, "virtual machine"),
        (row.closed_modules, "kernel modules not known to be the open ones"),
        (row.ecc_off, "ECC off"),
    )
    return ", ".join([*parts, *(name for holds, name in conditions if holds)])


def of(checks: list[HealthCheck], area: str) -> list[HealthCheck]:
    """The checks of one area."""
    return [check for check in checks if check.area == area]


def _area(area: str, checks: list[HealthCheck]) -> str:
    return f"\n## {area}\n" + "".join(_check(check) for check in checks)


def _check(check: HealthCheck) -> str:
    lines = [
        f"**{check.claim}.** `{check.id}`{' (fast)' if check.fast else ''}",
        f"- reads: {', '.join(check.reads)}",
        f"- action: {check.action.value}",
        f"- remedy: {check.remedy}",
        f"- judged by: {check.source}",
    ]
    if check.limits:
        lines.append(
            f"- thresholds: {', '.join(f'`{name}` {LIMITS[name].value:g} {LIMITS[name].unit}'.strip() for name in check.limits)}"
        )
    if check.needs:
        lines.append(f"- out of scope without: {', '.join(check.needs)}")
    return "\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        file = Path(sys.argv[1])
        file.write_text(page(file.read_text(encoding="utf-8") if file.exists() else ""), encoding="utf-8")
    else:
        sys.stdout.write(text())
