"""The process of a rack's BMCs: an address each, and a look at their machines' power once a second."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from threading import Thread

from rackwright.errors import LabError
from rackwright.lab import fault_record, names, node, racked, state
from rackwright.lab.bmc import certificates, media, settings
from rackwright.lab.bmc.actions import Controller
from rackwright.lab.bmc.chassis import PARTS
from rackwright.lab.bmc.https import BmcServer, Service
from rackwright.lab.bmc.machine import RackedMachine
from rackwright.lab.bmc.sessions import Sessions
from rackwright.lab.bmc.tree import Answer, Request, answer
from rackwright.lab.bmc.view import View
from rackwright.lab.netns import socket_inside
from rackwright.lab.spec import NodeSpec, RackSpec

_WATCH_SECONDS = 1.0


def serve(rack: str) -> None:
    """Serve every BMC of a rack that is up, until this process is ended."""
    spec = state.saved_spec(rack)
    if spec is None:
        raise LabError(f"rack {rack} is not up")
    controllers = {one.name: _controller(spec, one) for one in spec.racked}
    servers = [BmcServer(_service(spec, one, controllers)) for one in spec.racked]
    for server in servers:
        Thread(target=server.serve_forever, daemon=True).start()
    while True:
        for one in spec.racked:
            with suppress(LabError, FileNotFoundError):  # the rack is going down
                _note_changes(spec, one)
        time.sleep(_WATCH_SECONDS)


def _controller(spec: RackSpec, one: NodeSpec) -> Controller:
    assert one.bmc is not None
    fetch = partial(media.download, names.bmc_namespace(spec.name), one.bmc.address)
    return Controller(
        machine=RackedMachine(spec, one),
        changing=partial(settings.changing, spec.name, one.name),
        sessions=Sessions(),
        download=lambda source, target: fetch(source, target),
        medium=racked.medium(spec.name, one.name),
        authorities=partial(_authorities, one.bmc.authority),
    )


def _authorities(path: Path | None) -> list[str]:
    """What the BMC trusts by itself: the CAs that the cluster file declares for BMCs."""
    return [path.read_text()] if path is not None and path.exists() else []


def _service(spec: RackSpec, one: NodeSpec, controllers: dict[str, Controller]) -> Service:
    assert one.bmc is not None
    listener = socket_inside(names.bmc_namespace(spec.name))
    if listener is None:
        raise LabError(f"rack {spec.name} has no BMC network")
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((one.bmc.address, one.bmc.port))
    return Service(
        listener,
        faults=partial(fault_record.recorded, spec.name, one.name),
        chain=lambda other: certificates.chain(spec.name, one.name, other=other),
        answer=partial(_answer, spec, one, controllers),
    )


def _answer(spec: RackSpec, one: NodeSpec, controllers: dict[str, Controller], request: Request) -> Answer:
    here = fault_record.recorded(spec.name, one.name)
    # Two cables are swapped: at this address the other node's BMC answers.
    target = spec.node(here["bmc:swap"][0]) if "bmc:swap" in here else one
    assert target.bmc is not None
    password = target.bmc.password.read_text().rstrip("\n")
    if "bmc:password" in here:
        password = token_hex(16)
    return answer(
        controllers[target.name], partial(_look, spec, target), (target.bmc.user, password), request
    )


def _look(spec: RackSpec, one: NodeSpec) -> View:
    return View(
        spec.name,
        one,
        settings.read(spec.name, one.name),
        node.running(spec.name, one.name),
        fault_record.recorded(spec.name, one.name),
    )


def _note_changes(spec: RackSpec, one: NodeSpec) -> None:
    """Write to the event log what happened to the machine since the last look, by any cause."""
    power = "On" if node.running(spec.name, one.name) else "Off"
    broken = [fault for fault in PARTS if fault in fault_record.recorded(spec.name, one.name)]
    known = settings.read(spec.name, one.name)
    if (known.power, known.broken) == (power, broken):
        return
    with settings.changing(spec.name, one.name) as kept:
        if kept.power != power:
            kept.note(f"System power {power.lower()}", "System Event")
        for fault, (part, sensor) in PARTS.items():
            if (fault in kept.broken) != (fault in broken):
                failed = fault in broken
                kept.note(
                    f"{part} {'failed' if failed else 'is good again'}",
                    sensor,
                    "Critical" if failed else "OK",
                )
        kept.power, kept.broken = power, broken
