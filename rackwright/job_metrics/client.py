"""`job-metrics JOB`: what a user's own job did. Python 3.9 or newer and its library alone."""

from __future__ import annotations

import argparse
import http.client
import json
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

from rackwright.job_metrics.identity import payload
from rackwright.job_metrics.questions import JOB
from rackwright.job_metrics.server import HEADER, PREFIX

SETTINGS = "/etc/rackwright-job-metrics/client.json"
"""`url` of the server, and `ca_file` (or null)."""
_SPAN = re.compile(r"([0-9]+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BLOCKS = " ▁▂▃▄▅▆▇█"
_WIDTH = 24


def seconds_of(text: str) -> int:
    """`90m` in seconds; ValueError for anything else than a number and s, m, h or d."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("a number and s, m, h or d, e.g. 90m")
    return int(found[1]) * _SECONDS[found[2]]


def ask(url: str, ca_file: str | None, job: str, since: int) -> dict[str, Any]:
    """The server's document; SystemExit with a sentence where there is none."""
    try:
        made = subprocess.run(
            ["munge", "--string", payload(job)], capture_output=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SystemExit(f"job-metrics: MUNGE makes no credential here: {error}") from error
    request = urllib.request.Request(
        f"{url}{PREFIX}{job}?since={since}", headers={HEADER: made.stdout.decode().strip()}
    )
    tls = ssl.create_default_context(cafile=ca_file) if url.startswith("https:") else None
    # urllib does not understand networks in NO_PROXY: the site's proxy would get the request, and the credential with it
    direct = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
    )
    try:
        with direct.open(request, timeout=60) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"job-metrics: {_reason(error)}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SystemExit(f"job-metrics: {url} does not answer: {error}") from error
    return dict(found)


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"the server answers {error.code}"


def lines(found: dict[str, Any]) -> list[str]:
    """A line for each series: where, least, mean and most, and its course."""
    shown = []
    for one in sorted(found["series"], key=lambda one: (one["name"], sorted(one["labels"].items()))):
        values = [value for _, value in one["points"]]
        if not values:
            continue
        labels = one["labels"]
        where = labels.get("node", "?") + (f" gpu {labels['gpu']}" if "gpu" in labels else "")
        mean = sum(values) / len(values)
        shown.append(
            f"{one['name']:<19} {where:<24} {min(values):9.1f} {mean:9.1f} {max(values):9.1f} {one['unit']:<6}"
            f"{_course(values)}"
        )
    return (
        [f"{'':<19} {'':<24} {'least':>9} {'mean':>9} {'most':>9}", *shown]
        if shown
        else ["no figures in this time"]
    )


def _course(values: list[float]) -> str:
    """The values in a line of blocks, their least at the bottom, the first on the left."""
    size = max(1, -(-len(values) // _WIDTH))
    means = [sum(values[at : at + size]) / len(values[at : at + size]) for at in range(0, len(values), size)]
    low, high = min(0.0, *means), max(means)
    span = (high - low) or 1.0
    return " ".join(["", "".join(_BLOCKS[round((value - low) / span * 8)] for value in means)])


def main(given: list[str], settings: str = SETTINGS) -> None:
    """Exit status 1 where there is nothing to show."""
    parser = argparse.ArgumentParser(
        "job-metrics", description="What one of your jobs did with its GPUs and nodes."
    )
    parser.add_argument("job", help="its number, as the queue shows it")
    parser.add_argument(
        "--since", type=seconds_of, default=3600, help="how far to look back, e.g. 90m (default: 1h)"
    )
    parser.add_argument("--json", action="store_true", help="print the series")
    chosen = parser.parse_args(given)
    if not JOB.fullmatch(chosen.job):
        parser.error("the job is a number")
    try:
        with open(settings, encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"job-metrics: {settings} cannot be read: {error}") from error
    found = ask(config["url"], config["ca_file"], chosen.job, chosen.since)
    print(json.dumps(found) if chosen.json else "\n".join(lines(found)))
    if not found["series"]:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
