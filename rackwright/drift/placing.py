"""What nodes and the asking head have in common: units, and metrics that node_exporter finds."""

from __future__ import annotations

from shlex import quote

from rackwright.drift import places
from rackwright.drift.declaration import Declaration
from rackwright.operations import files, settings, units


def textfile_link(declared: Declaration, name: str, state: str) -> None:
    """node_exporter finds the metrics through a link, so that its folder need not be ours to write."""
    folder = quote(declared.textfiles)
    settings.setting(
        name="Make node_exporter's textfile folder",
        target=declared.textfiles,
        read=f"test -d {folder} && echo there",
        want="there",
        write=f"mkdir -p {folder} && printf %s {folder} >{places.MADE_TEXTFILES}",
    )
    files.link(name="Link the metrics", path=f"{declared.textfiles}/{name}", target=f"{state}/{name}")


def remove_units(unit: str) -> None:
    """A service and its timer, and what systemd remembers of them."""
    units.unit(
        name=f"Stop {unit}.timer",
        unit=f"{unit}.timer",
        running=False,
        enabled=False,
        disruptive=False,
    )
    files.absent(name=f"Remove {unit}.timer", path=f"{places.UNITS}/{unit}.timer")
    files.absent(name=f"Remove {unit}.service", path=f"{places.UNITS}/{unit}.service")
    files.absent(name=f"Remove the stamp of {unit}", path=f"/var/lib/systemd/timers/stamp-{unit}.timer")
    settings.setting(
        name=f"Let systemd forget {unit}",
        target=f"{unit} as systemd knows it",
        read=f"systemctl show -p LoadState --value {unit}.service {unit}.timer | sort -u | xargs",
        want="not-found",
        write=f"systemctl stop {unit}.service; systemctl daemon-reload; "
        f"systemctl reset-failed {unit}.service {unit}.timer 2>/dev/null || :",
    )
