"""Operating system: release, kernel, command line, clock, services and processes."""

from __future__ import annotations

import json
from typing import Any

from rackwright.health.guard import places
from rackwright.health.probe.source import Source, Unavailable, number, pairs, patience

PROPERTIES = "Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,LimitMEMLOCK"
STUCK_SAMPLE = 50
SYSTEMCTL_SECONDS = 3.0
CHRONYC_SECONDS = 2.0


def system(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The operating system as a whole."""
    release = pairs(source.text("/etc/os-release"))
    return {
        "hostname": source.node_name(),
        "os": release.get("ID", "").strip('"') or None,
        "os_version": release.get("VERSION_ID", "").strip('"') or None,
        "kernel": source.kernel_release(),
        "kernels": kernels(source),
        "architecture": source.architecture(),
        "command_line": source.text("/proc/cmdline").split(),
        "uptime_s": number(source.text("/proc/uptime")),
    }


def naming(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The addresses that the node's own name resolves to; a separate section because a resolver can be slow."""
    name = source.node_name()
    return {"hostname": name, "addresses": source.addresses_of(name)}


def kernels(source: Source) -> list[str]:
    """Releases of the installed bootable kernels."""
    return [name for name in source.names("/lib/modules") if source.exists("/boot/vmlinuz-" + name)]


def processes(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Number of processes, of zombies, and of processes in state D."""
    total, zombies, waiting = 0, 0, []
    for name in source.names("/proc"):
        if not name.isdigit():
            continue
        text = source.maybe(f"/proc/{name}/stat")
        if text is None:
            continue  # it has exited meanwhile
        total += 1
        command, _, rest = text.partition(" (")[2].rpartition(") ")
        zombies += rest.startswith("Z")
        if rest.startswith("D"):
            waiting.append({"pid": int(name), "name": command})
    if not total:
        raise Unavailable("/proc: no process")
    return {"total": total, "zombies": zombies, "waiting": waiting[:STUCK_SAMPLE]}


def clock(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The clock's source and its offset."""
    return parse_tracking(source.run(["chronyc", "-c", "tracking"], patience(request, CHRONYC_SECONDS)))


def parse_tracking(text: str) -> dict[str, Any]:
    """Read `chronyc -c tracking`."""
    fields = text.strip().split(",")
    if len(fields) < 14:
        raise Unavailable(f"`chronyc -c tracking` prints {len(fields)} fields, not 14")
    return {
        "reference": fields[1],
        "stratum": number(fields[2]),
        "offset_s": number(fields[4]),
        "leap": fields[13],
    }


def services(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The requested units, every failed unit, and whether an unwanted unit runs."""
    asked = sorted(set(request.get("services") or []))
    limit = max(
        SYSTEMCTL_SECONDS, 0.8 * float(request.get("seconds") or 0)
    )  # a longer deadline gives each tool more time
    units = []
    if asked:
        text = source.run(["systemctl", "show", "--no-pager", "-p", PROPERTIES, "--", *asked], limit)
        units = [unit(pairs(block)) for block in text.strip().split("\n\n")]
        if len(units) != len(asked):
            raise Unavailable(f"`systemctl show` printed {len(units)} units, not {len(asked)}")
        for name, one in zip(asked, units):  # noqa: B905 - Python 3.9
            one["name"] = name
    text = source.run(
        ["systemctl", "list-units", "--state=failed", "--plain", "--no-legend", "--no-pager"], limit
    )
    return {"units": units, "failed": [line.split()[0] for line in text.splitlines() if line.strip()]}


def unit(shown: dict[str, str]) -> dict[str, Any]:
    """One block of `systemctl show`."""
    return {
        "id": shown.get("Id"),
        "loaded": shown.get("LoadState"),
        "active": shown.get("ActiveState"),
        "enabled": shown.get("UnitFileState"),
        "restarts": number(shown.get("NRestarts") or "0"),
        "memlock": shown.get("LimitMEMLOCK"),
    }


def history(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Error counters from earlier passes of the node's health check; empty if there are none."""
    if not source.exists(places.COUNTERS):
        return {"snapshots": []}
    try:
        return {"snapshots": json.loads(source.text(places.COUNTERS))}
    except ValueError as error:
        raise Unavailable(f"{places.COUNTERS}: {error}") from None
