"""A built boot image, read without mounting it: by debugfs, from inside the disk."""

from __future__ import annotations

import subprocess
from functools import cached_property
from pathlib import Path

from rackwright.image import manifest
from rackwright.image.manifest import Manifest

ROOT_AT = 65 * 1024 * 1024
ESP_AT = 1024 * 1024


class BootImage:
    """The folder of an image, and its disk unpacked beside it."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self._raw = scratch / f"{folder.name}.raw"

    @cached_property
    def manifest(self) -> Manifest:
        """Its manifest."""
        found = manifest.read(self.folder)
        assert found is not None
        return found

    @cached_property
    def raw(self) -> Path:
        """The disk without qcow2."""
        _run("qemu-img", "convert", "-O", "raw", str(self.folder / "disk.qcow2"), str(self._raw))
        return self._raw

    def text(self, path: str) -> str:
        """Content of a file on the root file system; empty where there is none."""
        return self._debugfs(f"cat {path}")

    def names(self, path: str) -> set[str]:
        """Names in a folder of the root file system."""
        lines = self._debugfs(f"ls -p {path}").splitlines()
        return {line.split("/")[5] for line in lines if line.count("/") >= 5} - {".", ".."}

    def esp(self) -> str:
        """The files of the EFI partition."""
        return _run("mdir", "-b", "-s", "-i", f"{self.raw}@@{ESP_AT}", "::").replace("::/", "")

    def check(self) -> None:
        """A file-system check that changes nothing finds nothing."""
        _run("e2fsck", "-fn", f"{self.raw}?offset={ROOT_AT}")

    def _debugfs(self, request: str) -> str:
        return _run("debugfs", "-R", request, f"{self.raw}?offset={ROOT_AT}")


def _run(*command: str) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=300, check=True
    ).stdout
