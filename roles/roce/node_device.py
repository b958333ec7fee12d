"""An RDMA device on the node, its files and programs. Part of the program on the node: see node.py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from rackwright.roles.roce.node_readings import UnreadableError

ROOT = "/"
SECONDS = 20


def place(path: str) -> Path:
    """A path below ROOT."""
    return Path(ROOT) / path.lstrip("/")


def tool(*words: str) -> str:
    """What a program prints."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, text=True, check=False)
    except FileNotFoundError as error:
        raise UnreadableError(f"{words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise UnreadableError(f"{words[0]} did not end within {SECONDS} s") from error
    if done.returncode != 0:
        message = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise UnreadableError(f"`{' '.join(words)}` exited {done.returncode}: {message}")
    return done.stdout


def content(path: str) -> str:
    """The text of a file below ROOT."""
    try:
        return place(path).read_text().strip()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from error


def put(path: str, text: str) -> None:
    place(path).write_text(text)


class Device:
    """An RDMA device, its interface, and where its settings are."""

    def __init__(self, name: str, entry: dict[str, Any]) -> None:
        self.name, self.port = name, int(entry["port"])
        self.wanted: dict[str, str] = entry["wanted"]
        self.priority = str(entry["priority"])
        self.folder = f"/sys/class/infiniband/{name}"
        self._netdev: str | None = entry["netdev"]

    @property
    def netdev(self) -> str:
        if self._netdev is not None:
            return self._netdev
        folder = place(self.folder) / "device/net"
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if len(names) != 1:
            raise UnreadableError(f"{self.name} has {len(names)} interfaces in sysfs: declare `netdev`")
        return names[0]

    @property
    def cc(self) -> str:
        """debugfs's folder of congestion control."""
        pci = os.path.basename(os.path.realpath(place(self.folder) / "device"))
        return f"/sys/kernel/debug/mlx5/{pci}/cc_params"

    @property
    def cm(self) -> str:
        return f"/sys/kernel/config/rdma_cm/{self.name}"
