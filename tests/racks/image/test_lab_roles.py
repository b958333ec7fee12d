"""The images of the lab's head and worker, with all roles of inventory/vm.yaml."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.racks.image import machine
from tests.racks.image.boot_image import BootImage

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_DAEMONS = {
    "head1": {"mariadb-server", "slurmctld", "slurmdbd", "munge", "chrony"},
    "worker1": {"slurmd", "libpam-slurm-adopt", "munge", "chrony", "openmpi-bin"},
}


@pytest.mark.parametrize("node", _DAEMONS)
def test_the_packages_are_in_it_and_no_daemon_has_run(node: str, of_the_lab: Callable[[str], BootImage]):
    image = of_the_lab(node)

    assert _DAEMONS[node] <= {one.name for one in image.manifest.packages}
    ids = {line.split(":")[0]: line.split(":")[2:4] for line in image.text("/etc/passwd").splitlines()}
    assert ids["munge"] == ["440", "440"]
    assert ids["slurm"] == ["64030", "64030"]
    assert image.names("/var/lib/munge") == set()
    assert not [name for name in image.names("/var/log/slurm") if name.endswith(".log")]
    assert "munge.key" not in image.names("/etc/munge")
    assert not {"slurm.conf", "slurmdbd.conf"} & image.names("/etc/slurm")
    image.check()


def test_two_groups_have_two_images_and_nothing_is_left_here(of_the_lab: Callable[[str], BootImage]):
    before = machine.state()
    head, worker = of_the_lab("head1"), of_the_lab("worker1")

    assert head.manifest.key != worker.manifest.key
    assert worker.manifest.group == "worker[1-2]"
    assert "slurmctld" not in {one.name for one in worker.manifest.packages}
    assert machine.state() == before
