"""Reads Elasticsearch or OpenSearch from the log server, as its management user. Standard library, Python 3.9.

`_search`: path and names of the request are the same in Elasticsearch 8 and OpenSearch 2 (npm packages
@elastic/elasticsearch 9 and @opensearch-project/opensearch 3, read 2026-11-27).
"""

from __future__ import annotations

import calendar
import json
import re
import time
from typing import Any

from rackwright.logs.answer import Reading, Unreadable, main
from rackwright.logs.entries import AUDIT_FACILITIES, MESSAGE_MAX, Entry, Wanted, is_trusted, name_of, whole
from rackwright.logs.https import Asker

PAGE = 5000
"""index.max_result_window allows 10,000."""
FIELDS = (
    "node",
    "message",
    "name",
    "pid",
    "unit",
    "priority",
    "facility",
    "kernel",
    "uid",
    "cgroup",
)
"""Fields of a document besides @timestamp; the ingest pipeline creates them."""
_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,9})?(Z|[+-]00:00)")


def body_of(wanted: Wanted, since: int, until: int) -> dict[str, Any]:
    """The search request, or more: `Wanted.takes` decides. Times in milliseconds."""
    bounds = {"gte": since, "lte": until, "format": "epoch_millis"}
    filters: list[dict[str, Any]] = [
        {"terms": {"node": sorted(wanted.nodes)}},
        {"range": {"@timestamp": bounds}},
    ]
    if wanted.audit:
        filters.append({"terms": {"facility": list(AUDIT_FACILITIES)}})
    elif wanted.unit is not None:
        filters.append({"terms": {"unit": [wanted.unit, "init.scope"]}})
    elif wanted.job is not None:
        either = [{"term": {"kernel": True}}, {"terms": {"unit": list(wanted.job.units)}}]
        filters.append({"bool": {"should": either, "minimum_should_match": 1}})
    if wanted.priority is not None:
        filters.append({"range": {"priority": {"lte": wanted.priority}}})
    return {
        "size": PAGE,
        "query": {"bool": {"filter": filters}},
        "sort": [{"@timestamp": {"order": "desc"}}],
        "_source": ["@timestamp", *FIELDS],
        "track_total_hits": False,
    }


class Store:
    """The search cluster, at the first of its addresses that answers."""

    def __init__(self, settings: dict[str, Any]) -> None:
        try:
            with open(settings["login"], encoding="utf-8") as file:
                login = json.load(file)
            user, password = login["user"], login["password"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unreadable(f"cannot read {settings['login']}: {error}") from None
        self._asker = Asker(settings["ca"], login=(user, password))
        self._urls: list[str] = list(settings["urls"])
        self._prefix: str = settings["prefix"]

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer; Unreadable if there is none, or it does not cover all indices."""
        problems = []
        for url in self._urls:
            where = f"{url}/{self._prefix}-lines,{self._prefix}-audit/_search?ignore_unavailable=true"
            try:
                status, answer = self._asker.ask(where, json.dumps(body).encode(), method="POST")
            except Unreadable as error:
                problems.append(str(error))
                continue
            if status != 200 or not isinstance(answer, dict):
                raise Unreadable(f"{url} answers {status}: {str(answer)[:200]}")
            if answer.get("timed_out") or (answer.get("_shards") or {}).get("failed"):
                raise Unreadable(f"{url} answers for only some of its shards")
            return answer
        raise Unreadable("; ".join(problems))


def read(settings: dict[str, Any], reading: Reading) -> None:
    """Pages, newest first; what appears in two of them counts once."""
    store, until = Store(settings), int(reading.wanted.until * 1000) + 1
    while not reading.late:
        hits = _hits(store.search(body_of(reading.wanted, int(reading.newest_lines.floor * 1000), until)))
        entries = [entry for entry in map(entry_of, hits) if entry is not None]
        for entry in entries:
            reading.newest_lines.add(entry)
        if len(hits) < PAGE or not entries:
            return
        oldest = int(min(entry["at"] for entry in entries) * 1000) + 1
        until = oldest if oldest < until else until - 1


def _hits(answer: dict[str, Any]) -> list[dict[str, Any]]:
    hits = (answer.get("hits") or {}).get("hits")
    if not isinstance(hits, list) or not all(isinstance(hit, dict) for hit in hits):
        raise Unreadable("the answer is not a list of documents")
    return hits


def entry_of(hit: dict[str, Any]) -> Entry | None:
    """A document as an entry; None if it has no node, time or text."""
    source = hit.get("_source")
    if not isinstance(source, dict):
        return None
    at = seconds(source.get("@timestamp"))
    node, message = source.get("node"), source.get("message")
    if at is None or not isinstance(node, str) or not isinstance(message, str):
        return None
    kernel, uid = source.get("kernel") is True, whole(source.get("uid"))
    return {
        "node": node,
        "at": at,
        "message": message[:MESSAGE_MAX],
        **{key: name_of(source.get(key)) for key in ("name", "unit", "cgroup")},
        **{key: whole(source.get(key)) for key in ("pid", "priority", "facility")},
        "kernel": kernel,
        "uid": uid,
        "trusted": is_trusted(kernel, uid),
    }


def seconds(stamp: Any) -> float | None:  # noqa: ANN401 - of JSON
    """`2026-11-27T01:02:03.123456Z` as seconds since the epoch."""
    found = _STAMP.fullmatch(stamp) if isinstance(stamp, str) else None
    if found is None:
        return None
    whole_seconds = calendar.timegm(time.strptime(found.group(1), "%Y-%m-%dT%H:%M:%S"))
    return whole_seconds + float(found.group(2) or 0)


def last(settings: dict[str, Any], nodes: list[str]) -> dict[str, float | None]:
    """The newest document of each node."""
    newest = {"max": {"field": "@timestamp"}}
    body = {
        "size": 0,
        "query": {"terms": {"node": sorted(nodes)}},
        "aggs": {"nodes": {"terms": {"field": "node", "size": len(nodes)}, "aggs": {"newest": newest}}},
    }
    answer = Store(settings).search(body)
    found: dict[str, float | None] = dict.fromkeys(nodes)
    try:
        for bucket in answer["aggregations"]["nodes"]["buckets"]:
            if bucket["key"] in found:
                found[bucket["key"]] = float(bucket["newest"]["value"]) / 1000
    except (KeyError, TypeError, ValueError):
        if "aggregations" in answer:
            raise Unreadable(
                "the answer is not a list of numbers"
            ) from None  # otherwise the index does not exist yet
    return found


if __name__ == "__main__":
    main(read, last)
