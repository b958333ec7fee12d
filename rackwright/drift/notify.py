"""Notifications of state changes, through apprise: webhook, e-mail, Slack and others.

Its URLs contain credentials. They are read from a file or stdin, are kept in the secrets store and in one
file that only root and the checking user can read, and appear in no command line, unit file or log.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rackwright.drift.states import Change, Known, State
from rackwright.errors import RackwrightError
from rackwright.model.ranges import fold

_LINES_MAX = 40
_OPEN = re.compile(r"(json|jsons|xml|xmls|form|forms)://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._/-]{0,40})?")
"""URLs without a secret: a host and a short path, no user, no password, no query."""


def read_urls(given: Sequence[str]) -> list[str]:
    """The URLs of `--notify`: `@FILE` and `-` (stdin) hold one per line; a bare URL must not contain credentials."""
    urls: list[str] = []
    for one in given:
        if one == "-":
            urls += sys.stdin.read().split()
        elif one.startswith("@"):
            urls += _from_file(Path(one[1:]))
        elif _OPEN.fullmatch(one):
            urls.append(one)
        else:
            raise RackwrightError(
                "A --notify URL may contain credentials, and every user of this machine can read command lines.",
                hint="write the URLs to a file of mode 0600 and pass --notify @FILE, or --notify - for stdin",
            )
    for place, url in enumerate(urls, 1):
        if not _is_valid(url):
            raise RackwrightError(
                f"apprise does not understand notification URL {place} ({_kind(url)}).",
                hint="see https://appriseit.com for the URL format of each service",
            )
    return urls


def _from_file(path: Path) -> list[str]:
    try:
        if path.stat().st_mode & 0o077:
            raise RackwrightError(f"Other users can read {path}.", hint=f"chmod 600 {path}")
        return path.read_text().split()
    except OSError as error:
        raise RackwrightError(f"Cannot read {path}: {error.strerror}.") from error


def _kind(url: str) -> str:
    """The scheme of a URL, the only part of it that is ever shown."""
    return url.partition("://")[0] if re.match(r"[a-z]{1,20}://", url) else "no scheme"


def message(cluster: str, changes: Iterable[Change], history: Mapping[str, Known]) -> tuple[str, str]:
    """(title, body): names of nodes and of what drifted on them, never contents."""
    groups: dict[tuple[State, State, tuple[str, ...]], list[str]] = {}
    for change in changes:
        groups.setdefault((change.found.state, change.before, change.found.detail), []).append(change.node)
    lines = []
    for (state, before, detail), names in groups.items():
        about = f": {', '.join(detail)}" if detail else ""
        lines.append(f"{fold(names)}: {before} -> {state}{about}")
    if len(lines) > _LINES_MAX:
        lines = [*lines[:_LINES_MAX], f"... and {len(lines) - _LINES_MAX} more"]
    now = ", ".join(
        f"{count} {state}"
        for state in State
        if (count := sum(one.state is state for one in history.values()))
    )
    return f"{cluster}: {now}", "\n".join([*lines, "", "For details: rackwright drift FILE"])


def send(urls: Iterable[str], title: str, body: str) -> list[str]:
    """Notify all; returns those that failed, by position and scheme only."""
    failed = []
    for place, url in enumerate(urls, 1):
        if not _sent(url, title, body):
            failed.append(f"notification {place} ({_kind(url)})")
    return failed


def _sent(url: str, title: str, body: str) -> bool:
    import apprise  # slow to load, and most checks have nothing to send

    logging.getLogger("apprise").disabled = True  # it would log URLs
    target = apprise.Apprise()
    return bool(target.add(url)) and bool(target.notify(title=title, body=body))


def _is_valid(url: str) -> bool:
    import apprise  # as in _sent

    logging.getLogger("apprise").disabled = True
    return bool(apprise.Apprise().add(url))


def urls_of(path: Path) -> list[str]:
    """The URLs of an installed check."""
    return [str(url) for url in json.loads(path.read_text())]
