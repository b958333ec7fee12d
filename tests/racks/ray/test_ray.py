"""Ray on a rack: applied, verified, broken in ways that verify or plan has to find, drained and lost."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rackwright.roles.ray.places import ENVIRONMENTS, HEAD_UNIT, WITH_RAY, WORKER_UNIT
from tests.racks.patience import until
from tests.racks.site import Site
from tests.racks.verified import named, results

pytestmark = [pytest.mark.lab, pytest.mark.proof]

HEAD, WORKER = "head1", "worker1"
SECONDS = 120


def listed(site: Site) -> dict[str, Any]:
    """What the head knows."""
    found: dict[str, Any] = json.loads(
        site.on(HEAD, f"timeout 100 {WITH_RAY} nodes.py list").splitlines()[-1]
    )
    return found


def alive(site: Site, node: str) -> bool:
    """Whether a node's newest raylet is connected."""
    return bool(listed(site)["nodes"].get(node, {}).get("alive"))


def failed(site: Site) -> set[str]:
    """Checks of the role that fail; the others pass, none is unknown."""
    found = results(site, None, "--role", "ray")
    assert found.keys() <= {"PASS", "FAIL"}, found
    return {check for _, _, check in named(found.get("FAIL", []))}


@pytest.mark.smoke
def test_a_second_apply_has_nothing_to_do(site: Site):
    site.plan(0)


@pytest.mark.smoke
def test_verify_passes(site: Site):
    """Train, Tune, Data and Serve, a spill and an actor that is killed are among its checks."""
    assert failed(site) == set()


def test_an_edited_environment_is_found_and_replaced(site: Site):
    site.on(
        WORKER,
        f"f=$(ls {ENVIRONMENTS}/current/lib/python3*/site-packages/ray/_version.py); d=$(stat -c %y $f); "
        "echo '# edited' >>$f; touch -d \"$d\" $f",
    )
    assert {"Ray's environment is the installed one", "Ray's environment is as locked"} <= failed(site)
    site.apply()
    until(lambda: alive(site, WORKER), "worker", SECONDS)
    site.plan(0)
    assert failed(site) == set()


def test_resources_that_are_not_the_declared_ones_are_found(site: Site):
    unit = f"/etc/systemd/system/{WORKER_UNIT}"
    site.on(
        WORKER,
        f"sed -i 's/--num-cpus=2/--num-cpus=1/' {unit}; systemctl daemon-reload; systemctl restart {WORKER_UNIT}",
    )
    until(lambda: listed(site)["nodes"][WORKER]["resources"].get("CPU") == 1, "drift", SECONDS)
    assert {"Ray's files are as declared", "every node has its declared resources in Ray"} <= failed(site)
    site.apply()
    until(lambda: listed(site)["nodes"][WORKER]["resources"].get("CPU") == 2, "repair", SECONDS)


def test_a_raylet_that_is_killed_comes_back(site: Site):
    before = listed(site)["nodes"][WORKER]["id"]
    site.on(WORKER, "pkill -KILL -x raylet")
    until(
        lambda: alive(site, WORKER) and listed(site)["nodes"][WORKER]["id"] != before, "new raylet", SECONDS
    )


def test_a_gcs_that_is_killed_is_back_with_its_raylets(site: Site):
    before = {name: one["id"] for name, one in listed(site)["nodes"].items() if name != HEAD}
    site.on(HEAD, "pkill -KILL -x gcs_server")
    time.sleep(5)
    until(lambda: site.on(HEAD, f"systemctl is-active {HEAD_UNIT} || :").strip() == "active", "head", SECONDS)
    assert {name: one["id"] for name, one in listed(site)["nodes"].items() if name != HEAD} == before


def test_the_head_is_away_and_knows_its_nodes_and_drains_again(site: Site):
    site.on(HEAD, f"{WITH_RAY} nodes.py drain worker2 'ticket 2' root")
    until(lambda: not alive(site, "worker2"), "drained worker", SECONDS)
    before = listed(site)["nodes"][WORKER]["id"]
    away = f"systemctl kill -s KILL {HEAD_UNIT}; systemctl stop {HEAD_UNIT}; sleep 75"
    site.on(HEAD, f"{away}; systemctl start --no-block {HEAD_UNIT}", 200)
    time.sleep(5)
    until(lambda: site.on(HEAD, f"systemctl is-active {HEAD_UNIT} || :").strip() == "active", "head", SECONDS)
    assert "worker2" in listed(site)["drains"]
    assert listed(site)["nodes"][WORKER]["id"] == before, (
        "its raylet outlived a head that was away for longer than 60 s"
    )
    site.on(HEAD, f"{WITH_RAY} nodes.py resume worker2")
    until(lambda: alive(site, "worker2"), "resumed worker", SECONDS)


def test_a_drain_outlives_a_restart_of_the_node(site: Site):
    site.on(HEAD, f"{WITH_RAY} nodes.py drain {WORKER} 'ticket 3' root")
    until(lambda: not alive(site, WORKER), "drained worker", SECONDS)
    site.on(WORKER, f"systemctl restart {WORKER_UNIT}")
    time.sleep(20)
    assert not alive(site, WORKER)
    site.on(HEAD, f"{WITH_RAY} nodes.py resume {WORKER}")
    until(lambda: alive(site, WORKER), "resumed worker", SECONDS)


def test_a_worker_that_loses_power_joins_again(site: Site):
    site.fault(WORKER, "kill")
    until(lambda: not alive(site, WORKER), "dead worker", 180)
    site.heal(WORKER)
    until(lambda: alive(site, WORKER), "worker", 180)
    site.plan(0)
