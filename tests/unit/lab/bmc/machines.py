"""A BMC without a rack: its machine is an object that writes down what is done to it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackwright.errors import LabError
from rackwright.lab.bmc.actions import Controller
from rackwright.lab.bmc.media import Source
from rackwright.lab.bmc.sessions import Sessions
from rackwright.lab.bmc.settings import Settings
from rackwright.lab.bmc.tree import Answer, Request, answer
from rackwright.lab.bmc.view import View
from rackwright.lab.spec import BmcSpec, NodeSpec, VmSpec
from tests.unit.lab.specs import node

ACCOUNT = ("admin", "right")
SHAPE = VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1, data_disks_gb=(4,))


def bmc_spec(number: int = 1, folder: Path = Path("/site"), **changes: Any) -> BmcSpec:
    plain = {
        "address": f"10.1.0.{10 + number}",
        "prefix_length": 24,
        "port": 443,
        "user": "admin",
        "password": folder / "bmc_password",
        "authority": folder / "bmc_ca.pem",
        "secure_boot": False,
    }
    return BmcSpec(**(plain | changes))


def racked(number: int = 1, folder: Path = Path("/site"), **changes: Any) -> NodeSpec:
    """A racked machine."""
    return node(number, **({"vm": SHAPE, "bmc": bmc_spec(number, folder)} | changes))


class FakeMachine:
    """Does at once what it is asked to."""

    def __init__(self) -> None:
        self.power = False
        self.done: list[str] = []
        self.fails = False

    def running(self) -> bool:
        return self.power

    def on(self) -> None:
        if self.fails:
            raise LabError("no memory")
        self.power = True
        self.done.append("on")

    def off(self) -> None:
        self.power = False
        self.done.append("off")

    def press(self) -> None:
        self.power = False
        self.done.append("press")

    def put_in(self, image: Path | None) -> None:
        self.done.append("eject" if image is None else f"put in {image.name}")


class FakeBmc:
    """One BMC, asked past its network."""

    def __init__(self, folder: Path) -> None:
        self.machine = FakeMachine()
        self.settings = Settings()
        self.faults: dict[str, list[str]] = {}
        self.sources: list[Source] = []
        self.controller = Controller(
            machine=self.machine,
            changing=self._changing,
            sessions=Sessions(),
            download=self._download,
            medium=folder / "medium.iso",
            authorities=lambda: ["the lab's CA"],
        )

    @contextmanager
    def _changing(self) -> Iterator[Settings]:
        yield self.settings

    def _download(self, source: Source, target: Path) -> int:
        self.sources.append(source)
        target.write_text("image")
        return 5

    def look(self) -> View:
        return View("unit", racked(), self.settings, self.machine.power, self.faults)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, **headers: str) -> Answer:
        word = base64.b64encode(":".join(ACCOUNT).encode()).decode()
        sent = {"authorization": f"Basic {word}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        path, _, text = path.partition("?")
        query = dict(pair.split("=") for pair in text.split("&") if text)
        return answer(self.controller, self.look, ACCOUNT, Request(method, path, query, sent, body or {}))

    def get(self, path: str) -> dict[str, Any]:
        found = self.ask("GET", path)
        assert (found.status, found.body is not None) == (200, True), found
        return found.body or {}
