"""Debian's installer, from the agent to the last file that it can fetch here.

The mirror of the lab has no .udeb packages, so the installer stops before it asks for its session. What comes after - the
check of the disks, the writing, the report - is proved by no machine yet.
"""

from __future__ import annotations

import hashlib
import http.client
import time

import pytest

from rackwright.install.states import State
from rackwright.lab import racked, vm
from rackwright.lab.netns import open_socket
from tests.racks.installers.conftest import BRIDGE, WORKER, Machines
from tests.racks.patience import until

pytestmark = [pytest.mark.lab, pytest.mark.proof]

FETCHED = ["fetched preseed.cfg", "fetched guard.sh", "fetched finish.sh"]


def test_the_installer_boots_and_fetches_its_answers_and_what_stops_it_is_survived(bare: Machines):
    """The head is killed between the two boots; the second run goes on, and gives up when the time is over."""
    blank = _disk(bare)
    running = bare.start_install()
    handed_over = bare.wait_for(lambda record: record.state is State.HANDED_OVER, running)
    running.process.kill()
    running.wait(60)
    assert [one["serial"] for one in handed_over.disks] == [f"{WORKER}-root"]

    running = bare.start_install()
    before = len(bare.console())
    booted = bare.wait_for(lambda record: record.state is State.INSTALLER, running)
    assert booted.run == handed_over.run
    bare.wait_for(lambda record: record.phase == FETCHED[-1], running)
    said = bare.console()[before:].lower()
    assert "secure boot" in said
    assert "locked down" in said
    phases = [line["phase"] for line in bare.journal() if str(line.get("phase", "")).startswith("fetched")]
    assert phases == FETCHED

    # from the head's own address, and by a guess: nothing
    folder = bare.record().answers
    for path in (f"/{folder}/once", f"/{folder}/preseed.cfg", f"/{'x' * 32}/once"):
        assert _status(bare, path) == 404
    assert bare.record().state is State.INSTALLER

    assert running.wait(900).status == 1
    failed = bare.record()
    assert failed.state is State.FAILED
    assert "did not fetch its session within 8 min (last: fetched finish.sh)" in failed.reason
    assert not racked.medium(bare.name, WORKER).exists()
    assert not list((bare.state / "rackwright" / bare.name / "install" / "media").glob("*"))
    assert _disk(bare) == blank
    assert failed.answers == failed.session == ""


def test_it_is_left_as_it_is_and_installed_anew_once_it_is_off(bare: Machines):
    assert bare.power() == "on"
    assert "its power is on" in bare.refused().err
    bare.rack.power(WORKER, "off")
    before = bare.record().run
    running = bare.start_install()
    again = bare.wait_for(lambda record: record.run != before and record.state is State.INSTALLER, running)
    assert again.disks
    until(lambda: bare.power() == "on", "power", every=1)
    time.sleep(10)  # the head sees it too
    bare.rack.power(WORKER, "off")
    assert running.wait(300).status == 1
    assert "lost power in installer" in bare.record().reason


def _status(site: Machines, path: str) -> int:
    connection = http.client.HTTPConnection(BRIDGE)
    connection.sock = open_socket(site.name, BRIDGE, 8480, 10)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def _disk(site: Machines) -> str:
    """Digest of the disk that would be written."""
    return hashlib.sha256((vm.disk_folder(site.name, WORKER) / "root.qcow2").read_bytes()).hexdigest()
