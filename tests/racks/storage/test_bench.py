"""What the rack's filesystems reach through Slurm, against their floors; and checkpoints that outlive a killed rank."""

from __future__ import annotations

from typing import Any

import pytest

from tests.racks.patience import settled, until
from tests.racks.site import Site
from tests.racks.slurm_jobs import in_service
from tests.racks.storage.conftest import HEAD, WORKERS

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_LEFT = "ls -A {path} | grep rackwright-bench || echo none"


def bench(site: Site, name: str, *options: str, expect: int | None, timeout: float = 1800) -> dict[str, Any]:
    """The report on a filesystem."""
    command = ("storage", "bench", str(site.file), "--fs", name, "--json", *options)
    [found] = site.cli(*command, expect=expect, timeout=timeout).json()["filesystems"]
    return dict(found)


def left(site: Site, name: str) -> str:
    """Folders of a bench that are still there."""
    return site.on(WORKERS[0], _LEFT.format(path=f"/shared/{name}")).strip()


def test_every_rate_is_measured_and_nothing_is_left(rack: Site) -> None:
    in_service(rack, *WORKERS)
    found = bench(rack, "ckpt", expect=0, timeout=3600)  # loading PyTorch takes an emulated node minutes
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
    assert left(rack, "ckpt") == "none"


def test_a_floor_that_is_not_reached_fails(rack: Site) -> None:
    def higher(content: dict[str, Any]) -> None:
        content["storage"]["data"]["floor"]["write_gbs"] = 1000

    with rack.declaring(higher):
        found = bench(rack, "data", "--quick", expect=3)
    assert any("write" in one["text"] and one["status"] == "FAIL" for one in found["findings"]), found[
        "findings"
    ]


def test_a_server_that_dies_under_a_bench_is_unknown_and_the_next_one_cleans_up(rack: Site) -> None:
    running = rack.start("storage", "bench", str(rack.file), "--fs", "data", "--json")
    until(lambda: left(rack, "data") != "none", "folder of the bench")
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
    assert bench(rack, "data", "--quick", expect=0)["status"] == "PASS"
    assert left(rack, "data") == "none"
