"""What a node is, as far as a second apply could touch it: read on the node, compared here."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.racks.site import Site

_READ = r"""
import hashlib, json, os, stat, subprocess

def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=240).stdout

paths = {}
for folder, folders, files in os.walk("/etc"):
    for name in [*folders, *files, "."]:
        path = os.path.normpath(os.path.join(folder, name))
        one = os.lstat(path)
        content = ""
        if stat.S_ISREG(one.st_mode):
            content = hashlib.sha256(open(path, "rb").read()).hexdigest()
        elif stat.S_ISLNK(one.st_mode):
            content = os.readlink(path)
        paths[path] = [content, oct(one.st_mode), one.st_uid, one.st_gid, one.st_mtime_ns]
units = {}
# Without --all those that are not inactive. Enabled or masked is a link in /etc; systemd needs 0.5 CPU-s for this.
wanted = "Id,ActiveState,SubState,MainPID,NRestarts,StateChangeTimestampMonotonic"
for block in output_of("systemctl", "show", "*.service", "*.socket", "*.target", "*.mount", "-p", wanted).split("\n\n"):
    pairs = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    units[pairs.pop("Id", "")] = pairs
packages = dict(line.split(" ", 1) for line in output_of(
    "dpkg-query", "-W", "-f", "${binary:Package} ${Version} ${Status}\n").splitlines())
records = {}
for what in ("cluster format=cluster", "account", "qos", "assoc", "user"):
    answer = output_of("sh", "-c", "command -v slurmdbd >/dev/null && timeout 80 sacctmgr -nP show " + what)
    records[what] = sorted(answer.splitlines())
print(json.dumps({"paths": paths, "units": units, "packages": packages, "records": records}))
"""
# Made and ended by ssh logins, timers and the machine around the rack, never by an apply.
_PASSING = ("user@", "user-runtime-dir@", "run-", "session-", "mnt-", "dev-", "sys-", "proc-", "systemd-")
# What systemd runs once while a node boots, or reaches once something waits for it, is of no interest either.
_PASSING_SERVICES = (
    "network-online.target",
    "ldconfig",
    "apt-daily",
    "dpkg-db-backup",
    "e2scrub",
    "fstrim",
    "logrotate",
    "man-db",
)


# A user who was removed and made again stands elsewhere in these, with another day of change.
USER_TABLES = tuple(
    f"paths /etc/{name}" for name in ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")
)


@dataclass(frozen=True)
class Snapshot:
    """One node at one moment."""

    content: dict[str, dict[str, Any]]

    def differences(self, later: Snapshot, *, touched: bool = True) -> list[str]:
        """What is not the same any more; without `touched`, times and process ids may differ."""
        found = []
        for kind, before in self.content.items():
            after = later.content[kind]
            for name in sorted(before.keys() | after.keys()):
                old, new = (_without_times(kind, one.get(name), touched) for one in (before, after))
                if old != new:
                    found.append(f"{kind} {name}: {old} -> {new}")
        return found


def _without_times(kind: str, value: Any, touched: bool) -> Any:
    if touched or value is None:
        return value
    if kind == "paths":
        return value[:4]
    if kind == "units":
        return {key: value[key] for key in ("ActiveState", "SubState")}
    return value


def _lasting(unit: str) -> bool:
    return not unit.startswith((*_PASSING, *_PASSING_SERVICES)) or unit == "systemd-journald.service"


def snapshots(site: Site) -> dict[str, Snapshot]:
    """Every node, at once."""
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(site.nodes, pool.map(lambda node: _snapshot(site, node), site.nodes), strict=True))


def _snapshot(site: Site, node: str) -> Snapshot:
    content = json.loads(site.rack.run(node, ["python3", "-c", _READ], timeout=600))
    content["units"] = {name: state for name, state in content["units"].items() if _lasting(name)}
    return Snapshot(content)


def assert_same(
    before: dict[str, Snapshot],
    after: dict[str, Snapshot],
    *,
    touched: bool = True,
    but: tuple[str, ...] = (),
) -> None:
    """No node differs, except in lines that contain one of `but`."""
    found = [
        f"{node}: {line}"
        for node in before
        for line in before[node].differences(after[node], touched=touched)
        if not any(part in line for part in but)
    ]
    assert not found, "\n".join(found)
