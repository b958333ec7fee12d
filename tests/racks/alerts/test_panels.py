"""Every panel that this rack can have shows data; the others do from recorded exporters (unit/dashboards/test_recorded_data.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rackwright.dashboards.catalogue import DASHBOARDS
from rackwright.dashboards.collect import Drawn, State, collect
from rackwright.lab.dcgm_stand_in import OVERRIDES
from rackwright.prometheus.query import run_queries
from rackwright.textfiles import TEXTFILES
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_SPAN = "30m"
_SECONDS = 300
_BUSY = "0 DCGM_FI_DEV_GPU_UTIL 60\\n1 DCGM_FI_DEV_GPU_UTIL 20\\n"
_SUBMIT = "cd /tmp && su {user} -s /bin/sh -c 'sbatch -Q -o /dev/null {options} --wrap \"sleep {seconds}\"'"
_JOBS = (("--gres=gpu:2 -w worker1", 3000), ("-w worker1", 20), ("--gres=gpu:8 -N2", 20))
_UNTIL_THEY_RUN = (
    "for try in $(seq 120); do [ $(squeue -h -t R -o %b | grep -c gpu) = 2 ] && exit; sleep 1; done; "
    "squeue; exit 1"
)
_HEALTH_PASSES = "for pass in 1 2 3; do /usr/libexec/rackwright/health-check; done"
_MODE_OF = "/etc/cloud/cloud.cfg.d/99-rackwright.cfg"
NOTHING_TO_SHOW = {("storage", "Degraded arrays"), ("waste", "Jobs below 40 %")}
"""A container has no array, and no job of a test runs for half an hour."""
Panels = dict[tuple[str, str], list[Drawn]]


@pytest.fixture(scope="module")
def busy(rack: Site) -> Iterator[Site]:
    """Jobs that run, wait and have ended; a burn-in, a backup, runs; and a fault of each kind that a panel lists."""
    rack.cli("burnin", "run", str(rack.file))
    _tell_of_runs(rack)
    rack.on("head1", "systemctl start rackwright-backup")
    for options, seconds in _JOBS:
        for user in ("ada", "bob"):
            rack.on("worker1", _SUBMIT.format(user=user, options=options, seconds=seconds))
        rack.on("head1", _UNTIL_THEY_RUN)  # those that wait keep others waiting, and a broken GPU starts none
    rack.on("worker1", f"printf '{_BUSY}' > {OVERRIDES}.panels")
    for kind in ("gpu:ecc", "gpu:xid:79"):
        rack.fault("worker1", kind)
    rack.on("worker1", _HEALTH_PASSES)
    rack.on("head1", f"chmod 600 {_MODE_OF}; systemctl start rackwright-drift")
    rack.on("head1", "scontrol update nodename=worker2 state=drain reason=test")
    rack.fault("worker2", "cut")
    yield rack
    for node in ("worker1", "worker2"):
        rack.heal(node)
    rack.on("head1", f"chmod 644 {_MODE_OF}; systemctl start rackwright-drift")
    rack.on("head1", "scancel -u ada; scancel -u bob; scontrol update nodename=worker2 state=resume || :")
    rack.on("worker1", f"rm -f {OVERRIDES}.panels; {_HEALTH_PASSES}")
    rack.on("head1", f"rm -f {TEXTFILES}/rackwright_runs.prom")


def _tell_of_runs(rack: Site) -> None:
    """As the control node's timer does (docs/metrics.md)."""
    metrics = rack.cli("metrics", str(rack.file)).out
    folder = rack.folder / "metrics"
    folder.mkdir(exist_ok=True)
    (folder / "rackwright_runs.prom").write_text(metrics)
    rack.send("head1", folder, "rackwright_runs.prom", to="/var/lib/rackwright-ops")
    rack.on(
        "head1",
        f"chmod 755 /var/lib/rackwright-ops; ln -sf /var/lib/rackwright-ops/rackwright_runs.prom {TEXTFILES}/",
    )


def _panels(rack: Site) -> Panels:
    with rack.here():
        pages = collect(
            rack.cluster, DASHBOARDS, lambda queries: run_queries(rack.cluster, queries), since=_SPAN
        )
    found: Panels = {}
    for page in pages:
        for drawn in page.drawn:
            found.setdefault((page.dashboard.name, drawn.panel.title), []).append(drawn)
    return found


def _without(panels: Panels) -> dict[tuple[str, str], str]:
    """Panels without data on any page, and why."""
    return {
        panel: drawn[0].reason
        for panel, drawn in panels.items()
        if panel not in NOTHING_TO_SHOW and not any(one.state is State.DATA for one in drawn)
    }


def test_every_panel_has_data(busy: Site):
    end = time.monotonic() + _SECONDS
    while missing := _without(panels := _panels(busy)):
        assert time.monotonic() < end, missing
        time.sleep(10)
    errors = [
        (name, one.reason) for name, drawn in panels.items() for one in drawn if one.state is State.ERROR
    ]
    assert errors == []
    assert len(panels) > 150


def test_pages_are_drawn(busy: Site):
    folder = busy.folder / "dashboards"
    busy.cli("dashboards", "render", str(busy.file), "--since", _SPAN, "--out", str(folder))
    names = {path.name.partition("-")[0].removesuffix(".html") for path in folder.glob("*.html")}
    assert names >= {one.name for one in DASHBOARDS} | {"index"}
