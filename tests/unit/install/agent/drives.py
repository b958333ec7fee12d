"""Drives as files, and the programs that erase them, played in this process: what they support and where they lie."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

from rackwright.install.agent import erase_methods, erasing, signatures
from rackwright.install.agent.order import Disk
from rackwright.install.agent.programs import AgentError

PATTERN = b"precious 0123456789 "
FORMATS, MANAGES, ALL_NAMESPACES, CRYPTO = 0b10, 0b1000, 0b10, 0b100


class Drives:
    """All programs of the agent that concern drives."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        self.folder = folder
        self.oacs, self.fna = FORMATS, 0
        self.attached: list[int] = [1]
        self.allocated: list[int] = [1]
        self.supports = {"--secure", "--zeroout", "format"}
        self.liar: str | None = None
        """Name of a drive that claims to have erased, and has not."""
        self.fill = b"\0"
        """What a format leaves; empty: noise."""
        self.broken: set[str] = set()
        """Names of drives on which nothing works."""
        self.ran: list[list[str]] = []
        self.signatures: dict[str, list[str]] = {}
        self.busy: dict[str, str] = {}
        for module in (erase_methods,):
            monkeypatch.setattr(module, "run", self.run)
        monkeypatch.setattr(erase_methods, "log", lambda text: None)
        monkeypatch.setattr(erasing, "log", lambda text: None)
        monkeypatch.setattr(signatures, "read", lambda path: self.signatures.get(path, []))
        monkeypatch.setattr(signatures, "busy", self.busy.get)
        monkeypatch.setattr("rackwright.install.agent.disks.inventory.disks", self.listed)
        self.targets: list[erasing.Target] = []

    def make(self, name: str, size: int = 3 << 20) -> erasing.Target:
        path = self.folder / name
        path.write_bytes((PATTERN * (size // len(PATTERN) + 1))[:size])
        target = erasing.Target(Disk(str(path), f"S-{name}", ()), f"wwn-{name}", "Example", size)
        self.targets.append(target)
        return target

    def listed(self) -> list[dict[str, Any]]:
        """As the inventory has them."""
        return [
            {
                "path": one.disk.path,
                "serial": one.disk.serial,
                "wwn": one.wwn,
                "model": one.model,
                "size_bytes": one.size,
                "read_only": False,
                "signatures": self.signatures.get(one.disk.path, []),
            }
            for one in self.targets
        ]

    def order(self) -> erasing.Order:
        return erasing.Order("r1", tuple(self.targets), frozenset())

    def content(self, target: erasing.Target) -> bytes:
        return Path(target.disk.path).read_bytes()

    def run(self, argv: list[str], **_: Any) -> str:
        self.ran.append(argv)
        program, path = argv[0], next((word for word in argv if word.startswith(str(self.folder))), "")
        name = os.path.basename(path)
        if argv[:2] == ["nvme", "id-ctrl"]:
            return json.dumps({"oacs": self.oacs, "fna": self.fna})
        if argv[:2] == ["nvme", "list-ns"]:
            numbers = self.allocated if "--all" in argv else self.attached
            return "".join(f"[{place:4}]:{number:#x}\n" for place, number in enumerate(numbers))
        if program == "udevadm":
            return ""
        feature = "format" if program == "nvme" else argv[1]
        if feature not in self.supports or name in self.broken:
            raise AgentError(f"{program} failed with exit code 1: Operation not supported")
        start, length = 0, os.path.getsize(path)
        if program == "blkdiscard":
            start, length = (int(re.sub(r"\D", "", word)) for word in argv[2:4])
        if name != self.liar:
            with open(path, "r+b") as file:
                file.seek(start)
                fill = self.fill if feature == "format" else b"\0"
                file.write(fill * length if fill else random.Random(1).randbytes(length))
        return ""
