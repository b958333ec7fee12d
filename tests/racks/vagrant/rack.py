"""A copy of inventory/vagrant.yaml in a folder, its images and boxes, and the commands that a user runs on its VMs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.racks.program import Ran
from tests.racks.vagrant.private_libvirt import PrivateLibvirt

REPO = Path(__file__).resolve().parents[3]
UP_SECONDS = 2400
"""A VM under emulation on a busy machine; three at once."""
BUILD_SECONDS = 1800


@dataclass(frozen=True)
class VagrantRack:
    """The VMs of a cluster file, by Vagrant, in a private libvirtd."""

    folder: Path
    libvirt: PrivateLibvirt

    @property
    def file(self) -> Path:
        """The cluster file."""
        return self.folder / "inventory" / "vagrant.yaml"

    @property
    def lab(self) -> Path:
        """Key, known_hosts, seeds, images and boxes, where the cluster file has them."""
        return self.folder / "inventory" / ".lab" / "vagrant"

    @property
    def environment(self) -> dict[str, str]:
        """Of the programs inside: nothing of the user's own Vagrant or rackwright is read or written."""
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPO),
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "RACKWRIGHT": f"{sys.executable} -m rackwright",
            "RACKWRIGHT_CLUSTER": str(self.file),
            "RACKWRIGHT_VAGRANT_DRIVER": "qemu",
            "VAGRANT_CWD": str(REPO / "vagrant"),
            "VAGRANT_DOTFILE_PATH": str(self.folder / "vagrant"),
            "VAGRANT_HOME": str(self.folder / "vagrant.d"),
            "VAGRANT_DEFAULT_PROVIDER": "libvirt",
            "VAGRANT_CHECKPOINT_DISABLE": "1",
            "COLUMNS": "160",
        }

    def declare(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Write the cluster file: the repository's, changed."""
        content = yaml.safe_load((REPO / "inventory" / "vagrant.yaml").read_text())
        change(content)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(yaml.safe_dump(content, sort_keys=False))

    def build(self, *roles: str) -> None:
        """An image and a box for the nodes of each of these roles, as docs/vagrant.md has the commands."""
        content = yaml.safe_load(self.file.read_text())
        for role in roles:
            group = next(group["nodes"] for group in content["nodes"] if role in group["roles"])
            image = self.lab / "images" / role
            self._outside(
                sys.executable, "-m", "rackwright", "image", "build", str(self.file), "--group", group,
                "--out", str(image), "--size", "8",
            )  # fmt: skip
            box = self.lab / "boxes" / f"{role}.box"
            self._outside(str(REPO / "vagrant" / "box"), str(image), "--out", str(box))
            (image / "disk.qcow2").unlink()  # a gigabyte; the seeds need the folder's etc alone

    def remove(self) -> None:
        """Remove images, boxes and what Vagrant unpacked."""
        shutil.rmtree(self.lab, ignore_errors=True)
        shutil.rmtree(self.folder / "vagrant.d", ignore_errors=True)

    def vagrant(self, *arguments: str, timeout: float = UP_SECONDS, expect: int = 0) -> Ran:
        """Run vagrant, with an AssertionError on another exit status."""
        return self.inside("vagrant", *arguments, timeout=timeout, expect=expect)

    def rackwright(self, *arguments: str, timeout: float = 3000, expect: int = 0) -> Ran:
        """Run rackwright, likewise."""
        return self.inside(sys.executable, "-m", "rackwright", *arguments, timeout=timeout, expect=expect)

    def inside(self, *argv: str, timeout: float, expect: int = 0) -> Ran:
        """Run a program in the namespaces of libvirtd."""
        ran = self.libvirt.run(argv, timeout=timeout, cwd=self.folder, environment=self.environment)
        assert ran.status == expect, f"{' '.join(argv)}: wanted {expect}, {ran}"
        return ran

    def _outside(self, *argv: str) -> None:
        """Images take their packages from the machine's own mirrors, which the namespaces do not reach."""
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS, cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(REPO)},
        )  # fmt: skip
        assert done.returncode == 0, (
            f"{' '.join(argv)}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
