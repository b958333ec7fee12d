"""docs/alerts.md and a page for each alert: `python -m rackwright.alerts.pages docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rackwright.alerts.catalogue import ALERTS, GROUPS, RECORDINGS
from rackwright.alerts.rule import Alert, RuleGroup
from rackwright.alerts.text import number, with_thresholds

_INDEX = """\
# Alerts

Generated from the code by `python -m rackwright.alerts.pages docs`; a test fails when these pages are out of date.

{count} alert rules. Prometheus loads those whose scrape jobs the cluster has. Each rule has a runbook page with the steps in
order. On these pages NODE, GPU, DEVICE and so on stand for the values in the alert, FILE for the cluster file, and BMC and
USER for the address and the user of a node's BMC.

**critical**: jobs fail or data is at risk. **warning**: needs work within days. **info**: worth knowing; not sent anywhere
by default. "After" is how long a fault lasts before its alert fires.

A site changes a rule in the cluster file:

```yaml
roles:
  prometheus:
    alerts:
      FilesystemAlmostFull: {{thresholds: {{percent: 15}}, severity: critical}}
      CpuThrottledByHeat: {{hold_seconds: 3600}}
      NodeRebooted: {{enabled: false}}
```
"""
_RECORDED = """\
## Recorded series

| series | what it is |
|---|---|
"""
_WORD = re.compile(r"\b[A-Z][A-Za-z0-9]+\b")
_TITLES = {
    "nodes": "Nodes",
    "memory": "Memory",
    "clocks": "Clocks",
    "network": "Ethernet",
    "fabric": "Fabric",
    "fabric_errors": "Fabric: errors and losses",
    "filesystems": "Filesystems",
    "mounts": "Mounts, file servers, arrays",
    "units": "systemd units",
    "services": "Services",
    "gpus": "GPUs",
    "gpu_memory": "GPU memory",
    "gpu_clocks": "GPU temperature and power",
    "gpu_links": "GPU links",
    "slurm": "Slurm",
    "slurm_nodes": "Nodes in Slurm",
    "jobs": "Jobs",
    "health": "Health checks",
    "upkeep": "Drift, backups, runs",
    "logs": "Central journal",
    "power": "Power and cooling",
    "devices": "Switches, PDUs, UPSes",
    "monitoring": "Monitoring",
    "prometheus": "Prometheus and Alertmanager",
}


def page(alert: Alert) -> str:
    """The runbook of an alert."""
    steps = "\n".join(f"{place}. {_linked(step, alert)}" for place, step in enumerate(alert.steps, 1))
    parts = [
        f"# {alert.name}",
        f"{alert.severity.value.capitalize()}. Fires {_after(alert)}.",
        _linked(alert.means, alert),
        f"## What to do\n\n{steps}",
        f"## The rule\n\n```promql\n{_formatted(alert)}\n```",
        _reads(alert),
    ]
    if alert.thresholds:
        parts.append(_thresholds(alert))
    if alert.source is not None:
        parts.append(f"Source: {alert.source}.")
    parts.append("[All alerts](../alerts.md)")
    return "\n\n".join(parts) + "\n"


def _linked(text: str, alert: Alert) -> str:
    """Names of other alerts become links, but not within code."""

    def link(found: re.Match[str]) -> str:
        name = found[0]
        return f"[{name}]({name}.md)" if name in ALERTS and name != alert.name else name

    parts = text.split("`")
    return "`".join(part if place % 2 else _WORD.sub(link, part) for place, part in enumerate(parts))


def index() -> str:
    """All alerts by subject."""
    subjects = [_table(group) for group in GROUPS if group.name in _TITLES]
    recorded = "".join(f"| `{one.record}` | {one.about} |\n" for one in RECORDINGS.values())
    return "\n".join([_INDEX.format(count=len(ALERTS)), *subjects, _RECORDED + recorded])


def files() -> dict[str, str]:
    """All pages by their path in the folder of the documentation."""
    return {"alerts.md": index(), **{f"alerts/{name}.md": page(alert) for name, alert in ALERTS.items()}}


def write(folder: Path) -> None:
    """Writes all pages, and removes those of alerts that no longer exist."""
    made = files()
    (folder / "alerts").mkdir(parents=True, exist_ok=True)
    for old in (folder / "alerts").glob("*.md"):
        if f"alerts/{old.name}" not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text)


def _table(group: RuleGroup) -> str:
    alerts = [rule for rule in group.rules if isinstance(rule, Alert)]
    rows = "".join(
        f"| [{alert.name}](alerts/{alert.name}.md) | {alert.severity.value} | {_span(alert.hold_seconds) or 'at once'} "
        f"| {_first_sentence(alert.means)} |\n"
        for alert in alerts
    )
    return (
        f"## {_TITLES[group.name]}\n\n| alert | severity | after | what it means |\n|---|---|---|---|\n{rows}"
    )


def _after(alert: Alert) -> str:
    return f"after {_span(alert.hold_seconds)}" if alert.hold_seconds else "at once"


def _span(seconds: int) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s" if seconds else ""


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


def _formatted(alert: Alert) -> str:
    lines = [line.strip() for line in with_thresholds(alert.expr, alert).strip().splitlines()]
    return "\n".join(line for line in lines if line)


def _reads(alert: Alert) -> str:
    needed = ", ".join(f"`{job}`" for job in sorted(alert.jobs)) or "any"
    also = ", ".join(f"`{job}`" for job in sorted(alert.also_reads))
    return f"Scrape jobs: {needed}" + (f"; where the cluster has them, {also}." if also else ".")


def _thresholds(alert: Alert) -> str:
    rows = "".join(
        f"| `{name}` | {number(one.value)} {one.unit} | {one.about} | {one.source} |\n"
        for name, one in alert.thresholds.items()
    )
    return (
        f"## Thresholds\n\n| name | default | what it limits | source |\n|---|---|---|---|\n{rows}".rstrip()
    )


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
