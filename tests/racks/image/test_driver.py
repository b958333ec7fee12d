"""A locked driver in an image of Debian 12: its modules are built for the locked kernel, which boots by default."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rackwright.cli import run as rackwright
from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import build, order
from tests.racks.dkms.pairs import both_nodes, good_alone
from tests.racks.image.boot_image import BootImage

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_MODULES = "nvidia-current-open.ko"


def test_the_modules_are_built_for_the_locked_kernel(tmp_path: Path):
    content = both_nodes()
    good_alone(content)
    content["cluster"]["name"] = "driver"
    content["defaults"]["platform"] = "vm"
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(content))
    assert rackwright(["lock", str(file)]) == 0
    cluster = load_cluster(file)
    kernel = "6.1.0-50-amd64"

    build(order(cluster, cluster.nodes, "disk", 8), tmp_path / "gpu12", print)

    image = BootImage(tmp_path / "gpu12", tmp_path)
    assert image.manifest.kernel == kernel
    assert f'set default="Debian GNU/Linux, with Linux {kernel}"' in image.text("/boot/grub/grub.cfg")
    assert _MODULES in image.names(f"/lib/modules/{kernel}/updates/dkms")
    assert "Build the driver's modules" in {one.name for one in image.manifest.installed}
    assert "mok.key" not in image.names("/var/lib/dkms")
    assert "no-autoinstall" not in image.names("/etc/dkms")
    assert "Load the driver" in image.manifest.left["nvidia_driver"]
    image.check()
