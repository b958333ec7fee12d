"""What the agent read of a real machine with a GPU: it is read, and nothing that is unknown passes for good."""

from __future__ import annotations

import json
from pathlib import Path

from rackwright.install.inventory import read_inventory
from rackwright.install.verdict import choose, judge
from rackwright.model.install import DiskRule
from tests.unit.install.site import changed, make_worker

RECORDED = Path(__file__).parent / "recorded"


def test_a_machine_without_firmware_tables_and_readable_disks_is_held():
    found = read_inventory(json.loads((RECORDED / "h200-virtual-machine.json").read_text()))
    assert (found.gpus, found.cpus, found.efi) == (1, 16, False)
    assert [(disk.path, disk.signatures, bool(disk.error)) for disk in found.disks] == [
        ("/dev/vda", (), True),
        ("/dev/vdb", (), True),
    ]
    verdict = judge(make_worker(), found, "SN-1", {})
    assert not verdict.approved
    assert verdict.chosen == ()
    assert any("its serial number is not set" in one for one in verdict.contradictions)


def test_a_disk_that_could_not_be_read_is_not_an_empty_one():
    found = read_inventory(json.loads((RECORDED / "h200-virtual-machine.json").read_text()))
    by_slot = found.model_copy(
        update={"disks": (found.disks[0].model_copy(update={"by_path": ("pci-0000:00:01.0",)}),)}
    )
    install = changed(make_worker(), disk=DiskRule(by_path=("pci-0000:00:01.0",))).install
    assert install is not None
    _, wrong = choose(install, by_slot)
    assert any("are unknown: /dev/vda cannot be read" in one for one in wrong), wrong
    assert any("has no serial number" in one for one in wrong), wrong
