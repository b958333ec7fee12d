"""A Redfish client of the standard library's alone, so that a BMC is tested without the client that rackwright has."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.lab.netns import open_socket

SYSTEM, MANAGER, CHASSIS = (f"/redfish/v1/{name}/1" for name in ("Systems", "Managers", "Chassis"))
CD = f"{MANAGER}/VirtualMedia/Cd"
LOG = f"{MANAGER}/LogServices/SEL"
SESSIONS = "/redfish/v1/SessionService/Sessions"


@dataclass
class Reply:
    """What a BMC answered."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def message(self) -> str:
        message: str = self.body["error"]["message"]
        return message


@dataclass
class Redfish:
    """One BMC, asked from inside its rack."""

    rack: str
    address: str
    authority: Path
    password: str
    user: str = "admin"
    headers: dict[str, str] = field(default_factory=dict)
    """Sent in place of the password where there are any."""

    def ask(self, method: str, path: str, body: object = None, timeout: float = 60, **headers: str) -> Reply:
        context = ssl.create_default_context(cafile=str(self.authority))
        plain = open_socket(self.rack, self.address, 443, timeout)
        assert plain is not None
        with plain, context.wrap_socket(plain, server_hostname=self.address) as connection:
            client = http.client.HTTPConnection(self.address)
            client.sock = connection
            client.request(method, path, None if body is None else json.dumps(body), self._headers(headers))
            answer = client.getresponse()
            text = answer.read()
        found = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status, found, json.loads(text) if text else {})

    def _headers(self, further: dict[str, str]) -> dict[str, str]:
        word = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        login = self.headers or {"Authorization": f"Basic {word}"}
        return {**login, "Content-Type": "application/json", **further}

    def get(self, path: str) -> dict[str, Any]:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        return reply.body

    def post(self, path: str, body: object = None) -> Reply:
        return self.ask("POST", path, {} if body is None else body)

    def done(self, method: str, path: str, body: object = None) -> None:
        """Ask for something that has to be done."""
        reply = self.ask(method, path, {} if body is None else body)
        assert reply.status in (200, 201, 204), reply

    # What the tests do often

    @property
    def power(self) -> str:
        power: str = self.get(SYSTEM)["PowerState"]
        return power

    def reset(self, kind: str) -> None:
        self.done("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": kind})

    def boot(self, target: str, enabled: str) -> None:
        override = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled}
        self.done("PATCH", SYSTEM, {"Boot": override})

    def insert(self, url: str) -> Reply:
        return self.post(f"{CD}/Actions/VirtualMedia.InsertMedia", {"Image": url, "WriteProtected": True})

    def eject(self) -> None:
        self.done("POST", f"{CD}/Actions/VirtualMedia.EjectMedia")

    def secure_boot(self, on: bool) -> None:
        self.done("PATCH", f"{SYSTEM}/SecureBoot", {"SecureBootEnable": on})

    def events(self) -> list[str]:
        return [entry["Message"] for entry in self.get(f"{LOG}/Entries")["Members"]]


def wait(condition: Callable[[], bool], what: str, seconds: float = 240) -> None:
    """Until a condition holds, asked twice a second."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.5)
