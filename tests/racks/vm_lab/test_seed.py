"""The disk with a machine's identity, on the buses of hypervisors that the lab does not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.image.for_lab import ensure
from rackwright.lab import qemu
from rackwright.lab.boot_tree import SEED_SERIAL
from rackwright.lab.from_cluster import rack_spec
from rackwright.lab.rack import Rack
from tests.racks.site import Site
from tests.racks.vm_lab.conftest import NODE, declared

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_VIRTIO = f"virtio-blk-pci,drive=seed,serial={SEED_SERIAL}"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Of a rack that is not up."""
    site = Site(tmp_path, "vmseed", declared())
    yield site
    if site.name in Rack.names():
        site.rack.down()


@pytest.mark.parametrize("serial", [f",serial={SEED_SERIAL}", ""], ids=["VirtualBox", "VMware"])
def test_a_seed_on_a_sata_disk_gives_the_machine_its_identity(
    site: Site, monkeypatch: pytest.MonkeyPatch, serial: str
) -> None:
    """VirtualBox gives the disk its serial number, VMware can give it none."""
    of_the_lab = qemu.command

    def with_sata(*arguments: Any) -> list[str]:
        words = of_the_lab(*arguments)
        words[words.index(_VIRTIO)] = f"ide-hd,bus=ide.0,drive=seed{serial}"
        return [word.replace("id=seed,format=raw,readonly=on", "id=seed,format=raw") for word in words]

    with site.here(), monkeypatch.context() as patch:
        patch.setattr(qemu, "command", with_sata)
        Rack(rack_spec(site.cluster), print).up(ensure(site.cluster, print))
    page = "/sys/block/sda/device/vpd_pg80"
    assert site.on(NODE, f"grep -c {SEED_SERIAL} {page} || :").strip() == ("1" if serial else "0")
    assert site.tool(*site.rack.ssh_command(NODE, ("uname", "-n")), name="ssh").out.strip() == NODE
