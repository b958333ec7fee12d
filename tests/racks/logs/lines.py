"""Numbered lines: written on nodes, and counted where they arrive."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from rackwright.logs.sources import address_of
from rackwright.roles.logs.paths import JOURNALS, SOURCES
from tests.racks import patience
from tests.racks.site import Site
from tests.racks.verified import results

HEAD = "head1"
PATIENCE = 180.0
"""Seconds; a sender tries again every ten, and a machine may be starved."""
Line = dict[str, Any]
until = partial(patience.until, seconds=PATIENCE, every=1)


def write(site: Site, node: str, tag: str, first: int, last: int) -> None:
    """Lines `TAG NUMBER` of a program of that name, on the node's disk when this returns."""
    site.on(node, f"seq -f '{tag} %.0f' {first} {last} | systemd-cat -t {tag}; journalctl --sync")


def on_head(site: Site, node: str, tag: str) -> list[str]:
    """What the node's own files on the head have of a program, each message as often as it is there."""
    address = address_of(json.loads(site.on(HEAD, f"cat {SOURCES}"))[node])
    files = f"{JOURNALS}/remote-{address}[.@]*"
    said = site.on(HEAD, f"journalctl -q --all -o cat --file='{files}' SYSLOG_IDENTIFIER={tag} || :")
    return said.splitlines()


def reach(site: Site, node: str, tag: str, least: int) -> None:
    """Waits until this number of distinct lines of a program is in the node's files on the head."""
    until(
        lambda: len(set(on_head(site, node, tag))) >= least, f"{least} lines of {tag} from {node} on the head"
    )


def ask(site: Site, *options: str, expect: int = 0) -> dict[str, Any]:
    """The document of `rackwright logs`."""
    words = ("logs", str(site.file), "--json", "--lines", "10000", *options)
    document: dict[str, Any] = site.cli(*words, expect=expect).json()
    return document


def found(site: Site, *options: str, expect: int = 0) -> list[tuple[str, str]]:
    """(node, message) of lines that `rackwright logs` finds, oldest first."""
    return [(line["node"], line["message"]) for line in ask(site, *options, expect=expect)["lines"]]


def arrives(site: Site, tag: str, last: dict[str, int]) -> None:
    """Until all numbers of each node are on the head; then rackwright finds each once, and no other."""
    for node, number in last.items():
        reach(site, node, tag, number)
    lines = [line for line in ask(site, "--grep", tag)["lines"] if line["name"] == tag]
    for node in site.nodes:
        mine = [line["message"] for line in lines if line["node"] == node]
        assert sorted(mine, key=_number) == numbered(tag, range(1, last.get(node, 0) + 1)), node


def is_as_declared(site: Site) -> None:
    """A plan finds nothing to change, and every check of the role passes."""
    assert site.cli("plan", str(site.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    by_status = results(site, 0, "--role", "logs")
    assert set(by_status) <= {"PASS", "OUT OF SCOPE"}
    assert {one["node"] for one in by_status["PASS"]} >= set(site.nodes)


def numbered(tag: str, numbers: Iterable[int]) -> list[str]:
    """The messages of `write`."""
    return [f"{tag} {number}" for number in numbers]


def _number(message: str) -> int:
    return int(message.rpartition(" ")[2])
