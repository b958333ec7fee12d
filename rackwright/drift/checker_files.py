"""Files and folders of the checker in push mode, the same on the head and on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rackwright.drift import paths, texts
from rackwright.drift.baseline import kept_of
from rackwright.drift.declaration import Declaration
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.secrets.store import Secret


@dataclass(frozen=True)
class CheckerFile:
    """One file or folder."""

    path: str
    content: str = field(default="", repr=False)
    mode: str = "644"
    owner: str = "root"
    group: str = "root"
    sensitive: bool = False


def checker_folders(cluster: Cluster) -> list[CheckerFile]:
    """In creation order. The user can write only its state folder."""
    user = paths.USER
    return [
        CheckerFile(paths.check_folder(cluster.name), mode="750", group=user),
        CheckerFile(paths.state_of(cluster.name), mode="755", owner=user, group=user),
    ]


def checker_files(
    cluster: Cluster, declared: Declaration, secret: Callable[[str], Secret], expected_there: str | None
) -> list[CheckerFile]:
    """Its files; the user can read those it needs and write none.

    `expected_there` is the current text of its expected.json.
    """
    folder, user = paths.check_folder(cluster.name), paths.USER
    try:
        known_hosts = cluster.ssh.known_hosts.read_text()
    except OSError as error:
        raise RackwrightError(f"Cannot read {cluster.ssh.known_hosts}: {error.strerror}.") from error

    def read_by_user(name: str, content: str, sensitive: bool = False) -> CheckerFile:
        return CheckerFile(f"{folder}/{name}", content, mode="640", group=user, sensitive=sensitive)

    unit = f"{paths.UNITS}/{paths.check_unit(cluster.name)}"
    urls = secret(paths.NOTIFY_SECRET).reveal() if declared.notify else "[]"
    return [
        read_by_user("cluster.yaml", cluster.path.read_text()),
        read_by_user("known_hosts", known_hosts),
        read_by_user("expected.json", expected(cluster, expected_there), sensitive=True),
        read_by_user("key", secret(paths.KEY_SECRET).reveal(), sensitive=True),
        read_by_user("notify.json", urls, sensitive=True),
        CheckerFile(f"{unit}.service", texts.check_service(cluster, declared)),
        CheckerFile(f"{unit}.timer", texts.check_timer(cluster, declared)),
    ]


def expected_path(cluster: Cluster) -> str:
    """File with the digest that each node must compare itself with."""
    return f"{paths.check_folder(cluster.name)}/expected.json"


def expected(cluster: Cluster, there: str | None) -> str:
    """Digests of the nodes ever seen in sync: those known here, and newer ones that other users installed."""
    now = time.time()
    known = {node.name: kept_of(cluster, node.name) for node in cluster.nodes}
    entries = {name: (one.digest, _past(one.at, now)) for name, one in known.items() if one is not None}
    for name, (digest, later) in _read(there).items():
        at = _past(later, now)
        if name in known and (name not in entries or entries[name][1] < at):
            entries[name] = (digest, at)
    return json.dumps(dict(sorted(entries.items())), indent=1)


def _past(at: float, now: float) -> float:
    """A time in the future comes from a wrong clock; it would stay the newest for years."""
    return at if at <= now else 0.0


def _read(text: str | None) -> dict[str, tuple[str, float]]:
    try:
        return {
            str(name): (str(digest), float(at)) for name, (digest, at) in json.loads(text or "{}").items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}  # damaged: replaced
