"""Probes and judges the node in one go, on the node itself: a prolog or HealthCheckProgram calls this.

    health.py EXPECTED.json [REQUEST]

EXPECTED.json is `Expected.to_json()`, written by rackwright; REQUEST is the probe's request as
JSON, e.g. {"fast": true}. Prints one JSON document; exit status 0: no check failed or is
UNKNOWN, 3: a check failed, 4: something is UNKNOWN.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rackwright.health.expected import Expected
from rackwright.health.judge import hardest, judge, worst
from rackwright.health.probe.main import probe
from rackwright.health.probe.source import Source
from rackwright.health.request import request_of
from rackwright.health.verdict import SEVERITY
from rackwright.status import Status

EXIT = {Status.FAIL: 3, Status.UNKNOWN: 4}


def report(expected: Expected, source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The verdict over this node, worst first."""
    document = probe(source, {**request_of(expected), **request})
    results = judge(expected, document)
    ranked = sorted(results, key=lambda one: (SEVERITY.index(one.status), -one.action.rank))
    return {
        "node": document["node"],
        "taken_at": document["taken_at"],
        "fast": document["fast"],
        "status": worst(results).value,
        "action": hardest(results).value,
        "reason": reason([one.check for one in ranked if one.status is Status.FAIL]),
        "results": [one.to_json() for one in ranked],
        "seconds": document["seconds"],
        "cpu_seconds": document["cpu_seconds"],
    }


def reason(failed: list[str]) -> str:
    """Machine-readable text for the scheduler: the failed checks, each once."""
    return ",".join(dict.fromkeys(failed))


def main(arguments: list[str]) -> None:
    """Judge this node."""
    try:
        with open(arguments[0], encoding="utf-8") as handle:
            expected = Expected.from_json(json.load(handle))
        request = json.loads(arguments[1]) if len(arguments) > 1 else {}
    except (IndexError, OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"error: the node's expected state cannot be read: {error!r}\n")
        sys.stderr.flush()
        os._exit(EXIT[Status.UNKNOWN])
    outcome = report(expected, Source(), request)
    sys.stdout.write(json.dumps(outcome) + "\n")
    sys.stdout.flush()
    os._exit(EXIT.get(Status(outcome["status"]), 0))  # as in the probe: a hung thread must not block the exit


if __name__ == "__main__":
    main(sys.argv[1:])
