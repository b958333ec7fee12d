"""The door to the artefact in a rack: an HTTP server on the bridge address, in the rack's control group."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from rackwright.lab import cgroup, names, state
from rackwright.lab.artefact import http_server, store
from rackwright.lab.artefact.build import MANIFEST
from rackwright.lab.netns import open_socket
from rackwright.lab.process import launch, wait_until
from rackwright.lab.spec import RackSpec

PORT = 8480
_GROUP = "artefact.http"


def open_door(spec: RackSpec, folder: Path) -> None:
    """Serve an artefact to a rack's nodes; what already does is left alone."""
    address = spec.bridge_address.partition("/")[0]
    answers = partial(_answers, spec.name, address)
    served = state.read_json(names.rack_state(spec.name) / "artefact.json")
    if served == str(folder) and cgroup.populated(spec.name, _GROUP) and answers():
        return
    store.claim(spec.name, folder)
    namespace = str(names.NETNS / names.namespace(spec.name))
    argv = [sys.executable, "-I", http_server.__file__, namespace, address, str(PORT), str(folder)]
    launch(argv, cgroup.create(spec.name, _GROUP), names.rack_state(spec.name) / "artefact.log")
    wait_until(answers, f"the packages of Kubernetes in rack {spec.name}")


def _answers(rack: str, address: str) -> bool:
    try:
        connection = open_socket(rack, address, PORT, 2)
        if connection is None:
            return False
        with connection:
            connection.settimeout(5)
            connection.sendall(f"HEAD /{MANIFEST} HTTP/1.0\r\n\r\n".encode())
            return connection.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
