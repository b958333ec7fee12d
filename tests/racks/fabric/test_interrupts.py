"""Interrupts of a card, moved by the script that the role rdma runs at boot, on a machine with two NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright.roles.rdma import at_boot
from rackwright.roles.rdma.options import RdmaOptions
from tests.racks.site import Site
from tests.racks.vm_lab.conftest import NODE, declared

pytestmark = [pytest.mark.lab, pytest.mark.proof]


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One virtual machine, up and bare."""
    site = Site(tmp_path_factory.mktemp("irq"), "irq", declared())
    with site.booted():
        yield site


def test_interrupts_of_a_card_are_moved_to_its_numa_node(rack: Site) -> None:
    """The card is a virtio port, whose interrupts the kernel moves as it does those of one."""
    port = rack.on(NODE, "readlink -f /sys/class/net/*/device | sort | tail -n 1 | cut -d / -f 5").strip()
    at = f"/sys/bus/pci/devices/{port}"
    read, script = at_boot.interrupts_read((port,)), at_boot.script(RdmaOptions(interrupts="local"), (port,))
    to_first_cpu = f"for n in $(ls {at}/msi_irqs); do [ ! -d /proc/irq/$n ] || echo 0 > /proc/irq/$n/smp_affinity_list; done"
    rack.on(NODE, f"echo 1 > {at}/numa_node; {to_first_cpu}")
    assert rack.on(NODE, f"cat {at}/local_cpulist").strip() == "1"
    far = rack.on(NODE, read).splitlines()
    assert far
    assert all(line.endswith(f"of {port} is on CPU 0") for line in far), far
    rack.on(NODE, script)
    assert rack.on(NODE, read).strip() == at_boot.LOCAL
