"""The control node's disk fills up in the middle of an apply, or cannot be written from the start.

The disk is a small tmpfs over the state folder, in a mount namespace of the program's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.racks.operators.test_operators import job_on, state_of
from tests.racks.program import Ran
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_DRIFT = "touch /etc/chrony/chrony.conf"


# The disk gets what earlier runs cached, or a node would be evaluated in full, and no journals of theirs.
_MOUNT = """\
set -e
if [ "$1" = ro ] || [ "$1" = size=4k ]; then mount -t tmpfs -o "$1" none "$2"; else
mkdir -p "$2.real"; mount --bind "$2" "$2.real"
mount -t tmpfs -o "$1" none "$2"
cp -a "$2.real/rackwright" "$2"; rm -rf "$2"/rackwright/*/runs "$2"/rackwright/*/log
fi
shift 2
exec "$@"
"""


class OnSmallDisk:
    """`rackwright apply` whose state folder is a small file system that nothing else sees."""

    def __init__(self, site: Site, *options: str, mount: str = "size=8m") -> None:
        apply = [sys.executable, "-m", "rackwright", "apply", str(site.file), "--yes", *options]
        inside = [
            "unshare",
            "-m",
            "--propagation",
            "private",
            "sh",
            "-c",
            _MOUNT,
            "sh",
            mount,
            str(site.state),
        ]
        self._outputs = site.output_paths(("small-disk",))
        with self._outputs[0].open("w") as out, self._outputs[1].open("w") as err:
            self.process = subprocess.Popen(
                [*inside, *apply],
                stdout=out,
                stderr=err,
                cwd=site.folder,
                env=site.environment,
                stdin=subprocess.DEVNULL,
            )
        self.disk = Path(f"/proc/{self.process.pid}/root{site.state}")
        self._site = site

    def is_mounted(self) -> bool:
        return self.disk.stat().st_dev != self._site.state.stat().st_dev

    def wait_for(self, text: str, times: int = 1, seconds: float = 600) -> None:
        deadline = time.monotonic() + seconds
        while not self.is_mounted() or self._count(text) < times:
            assert self.process.poll() is None, self.wait()
            assert time.monotonic() < deadline, f"no {text}"
            time.sleep(0.2)

    def _count(self, text: str) -> int:
        return sum(path.read_text().count(text) for path in self.disk.glob("rackwright/*/runs/*"))

    def fill(self) -> None:
        """Until nothing fits any more, not even into a page that is half full."""
        assert self.is_mounted(), "this machine's own disk is not to be filled"
        with (self.disk / "filler").open("wb", buffering=0) as file:
            try:
                for _ in range(4096):
                    file.write(bytes(4096))
            except OSError:
                pass
        for path in self.disk.glob("rackwright/*/runs/*"):
            assert path.stat().st_size, "the run had begun"

    def wait(self, seconds: float = 600) -> Ran:
        status = self.process.wait(seconds)
        return Ran(status, self._outputs[0].read_text(), self._outputs[1].read_text(), 0.0)


def test_a_disk_that_fills_up_ends_the_run_in_order_and_leaves_no_worker_drained(site: Site, second: Site):
    for worker in ("worker1", "worker2"):
        site.on(worker, _DRIFT)
    with job_on(site, "worker2"):
        running = OnSmallDisk(site, "--wave", "1")
        # the first worker is done, the second one waits for its job
        running.wait_for('"event": "drain"', times=2)
        running.fill()
        while "drain" not in state_of(site, "worker2"):
            time.sleep(0.5)
        # a page of the journal that is half full takes some more lines; the job's end is the next of them
        journal = next(running.disk.glob("rackwright/*/runs/*"))
        with journal.open("ab", buffering=0) as file:
            file.write(b" " * (-journal.stat().st_size % 4096))
    ran = running.wait()
    assert ran.status == 1
    assert "Traceback" not in ran.err
    assert "The run stopped: " in ran.err
    assert "No space left on device" in ran.err
    assert "worker2: failed: not started: " in ran.out
    assert state_of(site, "worker1").startswith("idle")
    assert state_of(site, "worker2").startswith("idle")
    place = f"/var/lib/rackwright/runs/{site.name}"
    kept = site.on("head1", f"cat {place}/$(ls -t {place} | head -n1)").splitlines()
    assert json.loads(kept[-1])["event"] == "end", "the head's journal went on"
    run = json.loads(kept[0])["run"]
    assert '"worker1"' in second.cli("runs", run, str(second.file), "--json").out
    second.cli("resume", run, str(second.file), "--yes")
    second.plan(0)


@pytest.mark.parametrize("mount", ["ro", "size=4k"])
def test_a_disk_that_cannot_be_written_at_the_start_is_refused_before_anything_changes(
    site: Site, mount: str
):
    site.on("worker1", _DRIFT)
    ran = OnSmallDisk(site, mount=mount).wait()
    assert ran.status == 1
    assert "Traceback" not in ran.err
    assert "error: " in ran.err
    assert "XDG_STATE_HOME" in ran.err
    assert [node["node"] for node in site.plan(2)["nodes"] if node["operations"]] == ["worker1"]
    site.converge()
