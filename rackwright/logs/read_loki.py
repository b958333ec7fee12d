"""Reads Loki on its server, with that node's certificate. Standard library, Python 3.9.

API: grafana/loki docs/sources/reference/loki-http-api.md (read 2026-11-27): query_range, query; POST takes the parameters
as a form. Structured metadata appears among a stream's labels.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from typing import Any

from rackwright.logs.answer import Reading, Unreadable, main
from rackwright.logs.entries import MESSAGE_MAX, Entry, Wanted, is_trusted, name_of, whole
from rackwright.logs.https import Asker

PAGE = 5000
"""Lines per answer: Loki's limit (max_entries_limit_per_query)."""
RECENT_MINUTES = 10
_SESSION = re.compile(r"session-.+\.scope")
_INSTANCE = re.compile(r"(.+@).+(\.[a-z]+)")


def unit_label(unit: str) -> str:
    """Stream label of a unit, as Alloy's rules create it."""
    return "session.scope" if _SESSION.fullmatch(unit) else _INSTANCE.sub(r"\1\2", unit)


def query_of(wanted: Wanted) -> str:
    """LogQL for the query, or more: `Wanted.takes` decides."""
    selector = [f"node=~{_quoted('|'.join(map(re.escape, sorted(wanted.nodes))))}"]
    filters = []
    if wanted.audit:
        selector.append('audit="yes"')
    elif wanted.unit is not None:
        units = f"{unit_label(wanted.unit)}|init.scope"
        selector.append(f"unit=~{_quoted(units)}")
    elif wanted.job is not None:
        units = "|".join(map(re.escape, wanted.job.units))
        filters.append(f'| kernel="yes" or systemd_unit=~{_quoted(units)}')
    if wanted.grep is not None:
        filters.insert(0, f"|~ {_quoted('(?i)' + re.escape(wanted.grep))}")
    return " ".join(["{" + ", ".join(selector) + "}", *filters])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _asker(settings: dict[str, Any]) -> Asker:
    return Asker(settings["ca"], certificate=(settings["certificate"], settings["key"]))


def _ask(settings: dict[str, Any], asker: Asker, path: str, parameters: dict[str, Any]) -> list[Any]:
    """The result; Unreadable if there is none."""
    form = urllib.parse.urlencode(parameters).encode()
    url = f"{settings['url']}/loki/api/v1/{path}"
    status, answer = asker.ask(url, form, form="application/x-www-form-urlencoded")
    result = answer.get("data", {}).get("result") if isinstance(answer, dict) else None
    if status != 200 or not isinstance(result, list):
        raise Unreadable(f"Loki answers {status}: {str(answer)[:200]}")
    return result


def read(settings: dict[str, Any], reading: Reading) -> None:
    """Pages, newest first."""
    wanted, asker = reading.wanted, _asker(settings)
    query, end = query_of(wanted), int(wanted.until * 1e9)
    while not reading.late:
        parameters = {
            "query": query,
            "start": int(reading.newest_lines.floor * 1e9),
            "end": end,
            "limit": PAGE,
            "direction": "backward",
        }
        page = [
            entry for stream in _ask(settings, asker, "query_range", parameters) for entry in entries(stream)
        ]
        for _, entry in page:
            reading.newest_lines.add(entry)
        if len(page) < PAGE:
            return
        oldest = min(stamp for stamp, _ in page)
        # `end` is exclusive: lines of the same moment that did not fit into the page come again, and count once
        end = oldest + 1 if oldest + 1 < end else oldest


def entries(stream: Any) -> list[tuple[int, Entry]]:  # noqa: ANN401 - of JSON
    """(nanoseconds, entry) of one stream of an answer; Unreadable if it is invalid."""
    try:
        labels, values = stream["stream"], stream["values"]
        return [(int(value[0]), _entry(labels, int(value[0]), value[1])) for value in values]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise Unreadable("Loki's answer is not a list of streams") from None


def _entry(labels: dict[str, str], stamp: int, message: str) -> Entry:
    kernel, uid = labels.get("kernel") == "yes", whole(labels.get("uid"))
    return {
        "node": labels["node"],
        "at": stamp / 1e9,
        "message": message[:MESSAGE_MAX],
        "name": name_of(labels.get("name")),
        "pid": whole(labels.get("pid")),
        "unit": name_of(labels.get("systemd_unit") or labels.get("unit")),
        "priority": whole(labels.get("priority")),
        "facility": whole(labels.get("facility")),
        "kernel": kernel,
        "uid": uid,
        "trusted": is_trusted(kernel, uid),
        "cgroup": name_of(labels.get("cgroup")),
    }


def last(settings: dict[str, Any], nodes: list[str]) -> dict[str, float | None]:
    """For nodes with a line in the last minutes, the start of these; for others, their newest line of a day."""
    asker = _asker(settings)
    names = "|".join(map(re.escape, sorted(nodes)))
    query = f"sum by (node) (count_over_time({{node=~{_quoted(names)}}}[{RECENT_MINUTES}m]))"
    recent: dict[str, float] = {}
    for one in _ask(settings, asker, "query", {"query": query}):
        try:
            recent[one["metric"]["node"]] = float(one["value"][0]) - RECENT_MINUTES * 60
        except (KeyError, TypeError, ValueError, IndexError):
            raise Unreadable("Loki's answer is not a list of numbers") from None
    found: dict[str, float | None] = {node: recent.get(node) for node in nodes}
    for node in [node for node in nodes if node not in recent][:20]:
        query = f"{{node={_quoted(node)}}}"
        result = _ask(settings, asker, "query_range", {"query": query, "limit": 1, "since": "24h"})
        stamps = [stamp for stream in result for stamp, _ in entries(stream)]
        found[node] = max(stamps) / 1e9 if stamps else None
    return found


if __name__ == "__main__":
    main(read, last)
