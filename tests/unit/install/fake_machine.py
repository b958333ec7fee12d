"""A machine and its BMC, played in this process: its firmware boots a medium into an agent, or a disk into a system."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rackwright.bmc.interface import BmcIdentity, BootOverride, BootTarget, Power, PowerAction
from rackwright.errors import BmcError
from rackwright.install import medium, server
from rackwright.install.agent.client import Head
from rackwright.install.agent.programs import AgentError
from rackwright.install.authority import credentials
from rackwright.install.desk import Case, Desk
from rackwright.install.image import RootImage
from rackwright.install.limits import Tempo
from rackwright.install.machine import Machine
from rackwright.install.medium import VirtualMedia
from rackwright.install.record import Journal, folder
from rackwright.install.server import Server
from rackwright.install.states import State
from rackwright.model.cluster import Cluster, Node
from tests.unit.install.site import HOST_KEY, disk, document, mac, make_boot_network, make_site

TEMPO = Tempo(
    poll=0.004,
    power_on=20.0,
    power_off=20.0,
    bmc_silent=20.0,
    power_lost=0.05,
    installing=60.0,
    first_boot=20.0,
)


class FakeMachine:
    """worker<number>'s machine; every method of its BMC may be made to fail."""

    def __init__(self, number: int = 1, serial: str | None = None) -> None:
        self.number = number
        self.serial: str | None = serial or f"SN-{number}"
        self.dmi_serial = self.serial
        self.uuid: str | None = None
        self.dmi_uuid = f"00000000-0000-4000-8000-00000000000{number}"
        self.macs: tuple[str, ...] = (mac(number),)
        self.state = Power.OFF
        self.medium: str | None = None
        self.override = BootOverride(BootTarget.NONE)
        self.signatures: list[str] = []
        self.holds: str | None = None
        """Run whose system is on the disk."""
        self.system: str | None = None
        """Run whose system runs."""
        self.answers_ssh = False
        self.fails: dict[str, int] = {}
        """Method of the BMC to how many of its next calls fail; -1: all."""
        self.calls: list[str] = []
        self.tokens: list[str] = []
        self.agent: Callable[[Agent], None] = Agent.install
        self.agents: list[Agent] = []
        self._lock = threading.Lock()

    def _called(self, name: str) -> None:
        with self._lock:
            self.calls.append(name)
            left = self.fails.get(name.partition(" ")[0], 0)
            if left:
                self.fails[name.partition(" ")[0]] = left - 1 if left > 0 else left
                raise BmcError(
                    f"The BMC of worker{self.number} at 10.8.0.{self.number} does not answer {name}."
                )

    def silent(self, silent: bool) -> None:
        """Whether the BMC answers nothing at all."""
        methods = (
            "power",
            "set_power",
            "trust_media",
            "insert_media",
            "eject_media",
            "set_boot",
            "identity",
            "secure_boot",
        )
        self.fails = dict.fromkeys(methods, -1) if silent else {}

    def power(self) -> Power:
        self._called("power")
        return self.state

    def set_power(self, action: PowerAction) -> None:
        self._called(f"set_power {action}")
        if action is PowerAction.OFF:
            self.cut()
        elif action is PowerAction.ON and self.state is Power.OFF:
            self.state = Power.ON
            self._boot()

    def cut(self) -> None:
        """The machine loses its power."""
        self.state, self.system = Power.OFF, None
        for one in self.agents:
            one.dead.set()

    def identity(self) -> BmcIdentity:
        self._called("identity")
        return BmcIdentity(maker="Example", model="X1", serial=self.serial, uuid=self.uuid, macs=self.macs)

    def boot(self) -> BootOverride:
        self._called("boot")
        return self.override

    def set_boot(self, target: BootTarget, *, once: bool, http_uri: str | None = None) -> None:
        self._called(f"set_boot {target}")
        self.override = BootOverride(target, once, http_uri)

    def trust_media(self, pem: str) -> bool:
        self._called("trust_media")
        return "BEGIN CERTIFICATE" in pem

    def insert_media(self, url: str) -> None:
        self._called("insert_media")
        self.medium = url

    def eject_media(self) -> None:
        self._called("eject_media")
        self.medium = None

    def secure_boot(self) -> bool | None:
        self._called("secure_boot")
        return False

    def close(self) -> None:
        self.calls.append("close")

    def _boot(self) -> None:
        target, self.override = (
            self.override,
            BootOverride(BootTarget.NONE) if self.override.once else self.override,
        )
        if target.target is BootTarget.CD and self.medium is not None:
            self.agents.append(Agent(self, self.medium))
            self.agents[-1].start()
        elif self.holds is not None:
            self.system, self.answers_ssh = self.holds, True

    def logged_in(self, host_key: str) -> str | None:
        """The kernel's command line over ssh, by the host key of the system that runs."""
        if self.state is not Power.ON or self.system is None or host_key != HOST_KEY:
            return None
        return f"BOOT_IMAGE=/vmlinuz console=ttyS0 rackwright.run={self.system} quiet\n"


class Agent(threading.Thread):
    """What the medium boots into."""

    def __init__(self, machine: FakeMachine, url: str) -> None:
        super().__init__(daemon=True)
        self.machine, self.url = machine, url
        self.dead = threading.Event()
        self.reached: Callable[[str], None] = lambda step: None
        self.error: str | None = None

    def run(self) -> None:
        try:
            self.config = json.loads(_fetch(self.url))
            self.machine.tokens.append(self.config["token"])
            if self.config["serial"] not in (None, self.machine.dmi_serial):
                raise AgentError("this is another machine")
            server_url, authority = self.config["server"], self.config["ca"]
            self.head = Head(server_url, self.config["token"], authority, patience=20.0, sleep=self._sleep)
            self.machine.agent(self)
        except (AgentError, OSError, KeyError) as error:
            self.error = str(error)
        if not self.dead.is_set():
            self.machine.state = Power.OFF

    def _sleep(self, _: float) -> None:
        if self.dead.wait(0.004):
            raise AgentError("no power")

    def say_hello(self) -> None:
        self.head.hello({"version": 1, "serial": self.machine.dmi_serial})
        self._step("discovered")

    def decision(self) -> dict[str, Any]:
        while True:
            answer = self.head.post("/v1/inventory", self.document())
            if answer["action"] != "wait":
                return answer
            self._step("held")
            self._sleep(0.004)

    def document(self) -> dict[str, Any]:
        found = document(
            self.machine.number, disk(self.machine.number, signatures=sorted(self.machine.signatures))
        )
        found["dmi"] |= {"product_serial": self.machine.dmi_serial, "product_uuid": self.machine.dmi_uuid}
        return found

    def install(self) -> None:
        """All of it."""
        self.say_hello()
        answer = self.decision()
        if answer["action"] == "off":
            return
        self._step("installing")
        self.write(answer["install"])
        self.done(answer["install"])

    def write(self, orders: dict[str, Any]) -> None:
        """Partition the disk, then fill it; it holds nothing that boots until the end."""
        run, signatures = orders["run"], self.machine.signatures
        if orders["disks"]:
            assert sorted(signatures) == orders["disks"][0]["signatures"], "it changed since it was approved"
            self.machine.holds = None
            self.machine.signatures = [f"/dev/sda1:partlabel:rw-unfinished-{run}", "/dev/sda:gpt:1"]
        self._step("partitioned")
        got = b"".join(self.head.image(orders["image"]["size"]))
        assert len(got) == orders["image"]["size"]
        self.head.post("/v1/progress", {"phase": "image", "percent": 40})
        self._step("image")
        if self.dead.is_set():
            raise AgentError("no power")
        if orders["disks"]:
            self.machine.signatures = ["/dev/sda1:partlabel:root0", "/dev/sda1:ext4:", "/dev/sda:gpt:1"]
            self.machine.holds = run

    def done(self, orders: dict[str, Any]) -> None:
        self.head.post("/v1/done", {"run": orders["run"], "host_keys": {"ed25519": HOST_KEY}})
        self._step("done")

    def into_memory(self) -> None:
        """A diskless node: the system goes on where the agent was."""
        self.say_hello()
        orders = self.decision()["install"]
        self.write(orders)
        self.done(orders)
        self.machine.system = orders["run"]
        self.dead.set()

    def _step(self, name: str) -> None:
        self.reached(name)


def _fetch(url: str) -> bytes:
    """What the BMC fetches; it has the head's CA as well, or checks nothing."""
    host, _, path = url.removeprefix("https://").partition("/")
    context = ssl._create_unverified_context()
    with contextlib.closing(http.client.HTTPSConnection(host, timeout=5, context=context)) as connection:
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        if answer.status != 200:
            raise OSError(f"{answer.status} for the medium")
        return answer.read()


class Head1:
    """The head's process for one node: journal, desk, server and machine. `end` and a new one: it was killed."""

    def __init__(
        self, node: Node, machine: FakeMachine, image: RootImage, *, port: int = 0, **tempo: float
    ) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(32)
        self.port = listener.getsockname()[1]
        network = make_boot_network(self.port)
        self.node, self.fake = node, machine
        self.cluster: Cluster = make_site(node, network=network)
        keys = credentials("test", frozenset((network.server,)))
        self.journal = Journal("test", node.name)
        self.desk = Desk()
        self._case = case = Case(node, self.journal, self._orders, image)
        self.desk.open(case)
        self.server = Server(self.desk, [listener], keys.chain)
        self.notices: list[tuple[State, str]] = []
        self.machine = Machine(
            node=node,
            journal=self.journal,
            bmc=machine,  # type: ignore[arg-type]
            network=network,
            medium=VirtualMedia(self.cluster, node, network, case, Path("/nowhere/agent"), keys.ca),
            answers=lambda: machine.answers_ssh,
            logged_in=machine.logged_in,
            notice=lambda state, reason: self.notices.append((state, reason)),
            heard=lambda: self.desk.heard(node.name),
            tempo=replace(TEMPO, **tempo),
        )
        self.image = image

    def _orders(self, verdict: Any) -> dict[str, Any]:
        disks = [{"serial": one.serial, "signatures": list(one.disk.signatures)} for one in verdict.chosen]
        run = self.journal.record.run
        return {"run": run, "disks": disks, "image": {"size": self.image.size, "sha256": self.image.sha256}}

    def run(self, mode: str = "install", typed: str | None = None) -> State:
        """Until the node has ended."""
        self.desk.open(replace(self._case, mode=mode))
        return self.machine.run(mode, typed)

    def end(self) -> None:
        """No answer from here on."""
        self.server.close()

    @property
    def states(self) -> list[State]:
        """Each state in the journal, in order."""
        lines = (folder("test") / f"{self.node.name}.jsonl").read_text().splitlines()
        return [State(one["state"]) for one in map(json.loads, lines) if "state" in one]


def until(true: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)


def plain_media(monkeypatch: Any) -> None:
    """Media are the configuration alone, with the CA's file in it: no xorriso, no agent image."""

    def make(agent: Path, config: bytes, ca: bytes, target: Path, console: str) -> None:
        authority = target.parent.parent / f"{target.stem}.ca.pem"
        authority.write_bytes(ca)
        target.write_text(json.dumps({**json.loads(config), "ca": str(authority)}))

    monkeypatch.setattr(medium, "make_iso", make)
    monkeypatch.setattr(server, "_POLL_SECONDS", 0.005)
    monkeypatch.setattr("rackwright.install.agent.client.log", lambda text: None)
