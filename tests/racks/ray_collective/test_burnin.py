"""The burn-in through ray.util.collective: measured, judged, beside other work, and given up."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from rackwright.roles.ray.places import WITH_RAY
from rackwright.ssh import Pool
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import JobStep, Output
from tests.racks.patience import until
from tests.racks.site import Site
from tests.racks.verified import results

pytestmark = [pytest.mark.lab, pytest.mark.proof]

HEAD, WORKERS = "head1", ["worker1", "worker2"]
HOLDER = """\
import time, ray
ray.init(log_to_driver=False)
@ray.remote(num_cpus=1)
class Holder:
    def ready(self):
        return True
one = Holder.remote()
assert ray.get(one.ready.remote())
print("holds", flush=True)
time.sleep(600)
"""


def burnin(site: Site, status: int) -> dict[str, Any]:
    """The only group of the result."""
    ran = site.cli("burnin", str(site.file), "--json", expect=status, timeout=1200)
    (group,) = ran.json()["groups"]
    return dict(group)


def processes(site: Site) -> set[str]:
    """Of drivers and ranks, on all nodes."""
    return {
        f"{node}: {line}"
        for node in (HEAD, *WORKERS)
        for line in site.on(
            node, "ps -eo args= | grep -E '[r]ay::Rank|[r]ackwright-burnin-' | cut -c-80 || :"
        ).splitlines()
    }


@pytest.mark.smoke
def test_all_nodes_reduce_together_with_every_value_right(site: Site):
    group = burnin(site, 0)
    assert group["engine"] == "ray-gloo"
    (measured,) = group["measurements"]
    assert (measured["collective"], measured["status"], sorted(measured["hosts"])) == (
        "all_reduce",
        "PASS",
        WORKERS,
    )
    sizes = [row["size"] for row in measured["rows"]]
    assert (sizes[0], sizes[-1]) == (8, 64 * 2**20)
    assert {row[way]["wrong"] for row in measured["rows"] for way in ("out_of_place", "in_place")} == {0}
    assert group["versions"]["ray"] == "2.60.0"
    assert group["versions"]["torch"] == "2.13.0+cpu"
    assert processes(site) == set()


@pytest.mark.smoke
def test_the_environment_with_torch_is_as_locked(site: Site):
    assert results(site, None, "--role", "ray").keys() == {"PASS"}
    site.plan(0)


def test_tasks_that_need_no_launcher_run_on_each_node(site: Site):
    def ran(script: str, seconds: int = 60) -> Output:
        step = JobStep(
            tuple(WORKERS), 1, ("sh", "-c", script), seconds, environment={"A": "b c"}, start="each"
        )
        with Pool(site.cluster) as shell:
            manager = manager_of(site.cluster, shell)
            assert manager is not None
            return manager.run(step)

    output = ran('echo "$(hostname) $A $(id -un)"')
    assert (sorted(output.text.split("\n"))[-2:], output.problem) == (
        [f"{node} b c ray" for node in WORKERS],
        None,
    )
    assert ran("echo some text; exit 7").exit_status == 7
    late = ran("echo begun; sleep 100", 5)
    assert (late.exit_status, late.text.count("begun")) == (124, 2)


def test_less_than_the_floor_fails(site: Site):
    with site.declaring(lambda content: content["burnin"].update(floor_busbw_gbs=9000)):
        group = burnin(site, 3)
    assert any("below the floor of 9000 GB/s" in one["text"] for one in group["findings"]), group["findings"]


def test_work_that_runs_is_left_alone(site: Site):
    site.on(HEAD, f"cat >/tmp/holder.py <<'E'\n{HOLDER}E\nchmod 644 /tmp/holder.py")
    site.on(
        HEAD,
        f"systemd-run -q --unit=holder -p StandardOutput=file:/tmp/holder.out {WITH_RAY} -- /tmp/holder.py",
    )
    try:
        until(lambda: "holds" in site.on(HEAD, "cat /tmp/holder.out"), "actor that holds a CPU", 120)
        group = burnin(site, 4)
        assert any("not ready" in one["text"] for one in group["findings"]), group["findings"]
        assert site.on(HEAD, "systemctl is-active holder").strip() == "active"
    finally:
        site.on(HEAD, "systemctl stop holder || :")


def test_a_burn_in_that_is_given_up_leaves_nothing(site: Site):
    with site.declaring(lambda content: content["burnin"].update(iterations=100000, max_bytes=2**28)):
        running = site.start("burnin", str(site.file))
        until(lambda: any("ray::Rank" in line for line in processes(site)), "ranks", 180, every=2)
        time.sleep(5)
        running.process.send_signal(signal.SIGINT)
        running.wait(120)
    until(lambda: not processes(site), "end of the ranks", 60)
