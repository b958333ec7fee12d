"""A service on Ray Serve: replicas follow the load, up to their limit, and a worker that loses power is not noticed for long."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rackwright.roles.ray.places import WITH_RAY
from tests.racks.patience import until
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

HEAD = "head1"
MOST = 3
_APP = Path(__file__).with_name("serving_app.py")


def _run(site: Site, *arguments: str, timeout: float = 300) -> str:
    return site.on(HEAD, f"{WITH_RAY} -s /tmp/serving_app.py {' '.join(arguments)}", timeout)


def _last(printed: str) -> Any:
    return json.loads(printed.splitlines()[-1])


def _running(site: Site) -> int:
    return int(_last(_run(site, "replicas")).get("RUNNING", 0))


@pytest.fixture
def service(site: Site) -> Iterator[Site]:
    """An echo service with one replica."""
    site.on(HEAD, f"cat >/tmp/serving_app.py <<'APP'\n{_APP.read_text()}\nAPP\nchmod 644 /tmp/serving_app.py")
    try:
        _run(site, "deploy")
        yield site
    finally:
        _run(site, "remove")
        site.on(HEAD, "rm /tmp/serving_app.py")


def test_replicas_follow_the_load_and_a_dead_worker_is_left_out(service: Site):
    assert _running(service) == 1
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(_run, service, "load", "240", "12", timeout=600)
        began = time.monotonic()
        until(lambda: _running(service) == MOST, f"{MOST} replicas under load", 120, every=2)
        killed = time.monotonic() - began
        service.fault("worker1", "kill")
        answers = _last(load.result())
    service.heal("worker1")
    nodes = {node for when, node in answers if node is not None and when < killed}
    assert nodes == {"worker1", "worker2"}, "replicas on both workers answered"
    failures = [when for when, node in answers if node is None]
    assert [when for when in failures if when < killed] == [], "no request fails while the service grows"
    late = [(when, node) for when, node in answers if when > 200]
    assert {node for _, node in late} == {"worker2"}, "in the end the other worker answers everything"
    assert len(late) > 40
    until(lambda: _running(service) == 1, "one replica without load", 120)
