"""What the rack's filesystems reach through Slurm, against their floors; and checkpoints that outlive a killed rank."""

from __future__ import annotations

from typing import Any

import pytest

from tests.racks.patience import settled, until
from tests.racks.site import Site
from tests.racks.slurm_jobs import in_service
from tests.racks.storage.conftest import HEAD, WORKERS

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_LEFT = "ls -A /shared/ckpt | grep rackwright-bench || echo none"


def bench(site: Site, *options: str, expect: int | None, what: str = "bench") -> dict[str, Any]:
    """The report on the checkpoint filesystem."""
    ran = site.cli("storage", what, str(site.file), "--fs", "ckpt", "--json", *options, expect=expect)
    [found] = ran.json()["filesystems"]
    return dict(found)


def test_every_rate_is_measured_and_nothing_is_left(rack: Site) -> None:
    in_service(rack, *WORKERS)
    found = bench(rack, expect=0)
    assert found["status"] == "PASS", found["findings"]
    measured = {one["key"]: one for one in found["figures"]}
    assert set(measured) >= {
        "read_gbs",
        "write_gbs",
        "together_read_gbs",
        "together_write_gbs",
        "metadata_ops",
    }
    assert {one["node"] for one in found["alone"]} == set(WORKERS)
    saved = found["checkpoint"]
    assert saved is not None
    assert saved["save_gbs"] > 0
    for worker in WORKERS:
        assert rack.on(worker, _LEFT).strip() == "none"


def test_a_floor_that_is_not_reached_fails(rack: Site) -> None:
    def higher(content: dict[str, Any]) -> None:
        content["storage"]["ckpt"]["floor"]["write_gbs"] = 1000

    with rack.declaring(higher):
        found = bench(rack, "--quick", expect=3)
    assert any("write" in one["text"] and one["status"] == "FAIL" for one in found["findings"]), found[
        "findings"
    ]


def test_a_server_that_dies_under_a_bench_is_unknown_and_the_next_one_cleans_up(rack: Site) -> None:
    running = rack.start("storage", "bench", str(rack.file), "--fs", "ckpt", "--json")
    until(lambda: rack.on(WORKERS[0], _LEFT).strip() != "none", "folder of the bench")
    rack.on(HEAD, "systemctl stop nfs-server")
    try:
        ran = running.wait(2700)
        assert ran.status == 4, ran
        [found] = ran.json()["filesystems"]
        assert found["status"] == "UNKNOWN"
    finally:
        rack.on(HEAD, "systemctl start nfs-server")
    settled(rack, HEAD, *WORKERS)
    in_service(rack, *WORKERS)
    assert bench(rack, "--quick", expect=0)["status"] == "PASS"
    assert rack.on(WORKERS[0], _LEFT).strip() == "none"
