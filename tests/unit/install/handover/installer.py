"""A site whose workers declare Debian's installer, and machines whose firmware boots the agent, then the installer."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import ssl
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from rackwright.bmc.interface import BootOverride, BootTarget, Power
from rackwright.install.authority import credentials
from rackwright.install.handover import node as handover_node
from rackwright.install.handover import server
from rackwright.install.record import Record, read
from rackwright.model.cluster import Cluster
from rackwright.model.install import DiskRule, Install, Installer
from rackwright.model.settings import Ssh
from tests.factories import make_address
from tests.unit.install.fake_machine import Agent, FakeMachine, _fetch
from tests.unit.install.operator import Site, free_port
from tests.unit.install.site import HOST_KEY, make_boot_network, make_site, make_worker

HERE, ELSEWHERE = "127.0.0.2", "127.0.0.3"
"""Addresses of worker1 and of another machine on the boot network."""
FILES = ("linux", "initrd.gz", "bootnetx64.efi", "grubx64.efi")


def netboot_folder(folder: Path) -> Path:
    """debian-installer/amd64 of a netboot.tar.gz, which is not really one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).write_bytes(f"{name}\n".encode())
    return folder


def installed_by(files: Path, number: int = 1, **changes: Any) -> Any:
    """worker<number>, which the installer of Debian makes, at 127.0.0.<1 + number>."""
    install = Install(
        installer=Installer.PRESEED,
        installer_files=files,
        disk=DiskRule(serials=(f"DISK-{number}",)),
        secure_boot=False,
        **changes,
    )
    return make_worker(
        number, addresses=(make_address("management", f"127.0.0.{1 + number}"),), install=install
    )


class InstallerMachine(FakeMachine):
    """A machine whose second boot is the installer's."""

    def __init__(self, number: int = 1) -> None:
        super().__init__(number)
        self.installer: Callable[[Installing], None] = Installing.install
        self.installers: list[Installing] = []

    def _boot(self) -> None:
        cd = self.override.target is BootTarget.CD and self.medium is not None
        content = json.loads(_fetch(str(self.medium))) if cd else {}
        if "arguments" not in content:
            return super()._boot()
        self.override = BootOverride(BootTarget.NONE)
        self.installers.append(Installing(self, content["arguments"]))
        self.agents.append(self.installers[-1])
        self.installers[-1].start()
        return None


class Installing(Agent):
    """The installer: it fetches its answers, then the session, and reports."""

    def __init__(self, machine: InstallerMachine, arguments: str) -> None:
        super().__init__(machine, "")
        self.player, self.arguments = machine, arguments
        self.files: dict[str, tuple[int, str]] = {}
        self.posts: dict[str, tuple[int, Any]] = {}

    @property
    def folder(self) -> str:
        """URL of its files."""
        return next(
            word.removeprefix("url=").removesuffix("preseed.cfg")
            for word in self.arguments.split()
            if word.startswith("url=")
        )

    def run(self) -> None:
        with contextlib.suppress(OSError):
            self.player.installer(self)
        if not self.dead.is_set():
            self.machine.state = Power.OFF

    def install(self) -> None:
        """All of it."""
        for name in ("preseed.cfg", "guard.sh", "finish.sh", "once"):
            self.fetch(name)
        if self.files["once"][0] != 200:
            return
        self.check()
        self.finish()

    def _step(self, name: str) -> None:
        self.reached(name)
        if self.dead.is_set():
            raise OSError("no power")

    def fetch(self, name: str, address: str = HERE) -> tuple[int, str]:
        """One file, as asked for from an address."""
        self.files[name] = get(self.folder + name, address)
        self._step(name)
        return self.files[name]

    def check(self) -> None:
        """The guard's report."""
        self.post("progress", {"phase": "partition", "percent": 0})
        self.machine.holds = None

    def finish(self) -> None:
        """The system is written; the run's name comes from the kernel arguments that the answers give it."""
        found = re.search(r"rackwright\.run=([a-z0-9]+)", self.files["finish.sh"][1])
        assert found is not None
        self.machine.holds = found[1]
        self.post(
            "done", {"run": found[1], "host_keys": {"ed25519": HOST_KEY}, "seconds": 1, "disks": ["DISK-1"]}
        )

    def post(self, call: str, body: dict[str, Any], session: str | None = None) -> tuple[int, Any]:
        """A call to the head, as the scripts make it."""
        script = self.files["guard.sh"][1]
        url = re.search(r"https://([0-9.]+):([0-9]+)", script)
        assert url is not None
        token = session or self.files["once"][1].splitlines()[0]
        context = ssl.create_default_context(cadata=certificate(script))
        connection = http.client.HTTPSConnection(url[1], int(url[2]), timeout=5, context=context)
        with contextlib.closing(connection):
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", f"/v1/{call}", json.dumps(body), headers)
            answer = connection.getresponse()
            self.posts[call] = answer.status, json.loads(answer.read())
        self._step(call)
        return self.posts[call]


def certificate(script: str) -> str:
    """The CA in the script that checks the disks."""
    found = re.search(r"-----BEGIN.*-----END CERTIFICATE-----\n", script, re.DOTALL)
    assert found is not None
    return found[0]


def get(url: str, address: str = HERE, method: str = "GET") -> tuple[int, str]:
    """What is served, asked for from one of this machine's addresses."""
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=5, source_address=(address, 0))
    with contextlib.closing(connection):
        connection.request(method, f"/{path}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


class InstallerSite(Site):
    """Workers that declare Debian's installer."""

    def __init__(self, tmp_path: Path, monkeypatch: Any, count: int = 1) -> None:
        super().__init__(tmp_path, monkeypatch, count)
        self.files = netboot_folder(tmp_path / "netboot")
        self.nodes = [installed_by(self.files, number) for number in range(1, count + 1)]
        self.machines = {f"worker{number}": InstallerMachine(number) for number in range(1, count + 1)}
        self.network = make_boot_network(free_port(), answers_port=free_port())
        monkeypatch.setattr(handover_node, "make_iso", self._make)
        monkeypatch.setattr(server, "_POLL_SECONDS", 0.005)
        credentials("test", frozenset((IPv4Address("127.0.0.1"),)))

    @property
    def cluster(self) -> Cluster:
        cluster = make_site(*self.nodes, network=self.network)
        return cluster.model_copy(update={"ssh": Ssh(user="admin", key=self.key)})

    @property
    def machine(self) -> InstallerMachine:
        """worker1's."""
        return self.machines["worker1"]

    @property
    def record(self) -> Record:
        """worker1's."""
        return read("test", "worker1")

    def _make(self, files: Any, arguments: str, target: Path) -> None:
        target.write_text(json.dumps({"arguments": arguments}))
