"""What a rack serves to its nodes by HTTP on the bridge address: the artefact, and images of pods."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rackwright.lab import cgroup, names, state
from rackwright.lab.artefact import http_server, store
from rackwright.lab.artefact.build import MANIFEST
from rackwright.lab.netns import open_socket
from rackwright.lab.process import launch, wait_until
from rackwright.lab.spec import RackSpec

PORT, POD_IMAGES_PORT = 8480, 8481


def open_door(spec: RackSpec, folder: Path) -> None:
    """Serve an artefact to a rack's nodes; what already does is left alone."""
    served = state.read_json(names.rack_state(spec.name) / "artefact.json")
    if served != str(folder):
        cgroup.remove(spec.name, "artefact.http")
    store.claim(spec.name, folder)
    _serve(spec, folder, PORT, "artefact", MANIFEST)


def open_pod_images(spec: RackSpec, folder: Path, files: Sequence[str]) -> None:
    """Serve images that were built for the pods of a cluster, anew each time: the server knows the files of its start."""
    cgroup.remove(spec.name, "pod-images.http")
    _serve(spec, folder, POD_IMAGES_PORT, "pod-images", files[0])


def _serve(spec: RackSpec, folder: Path, port: int, what: str, probe: str) -> None:
    address = spec.bridge_address.partition("/")[0]
    answers = partial(_answers, spec.name, address, port, probe)
    if cgroup.populated(spec.name, f"{what}.http") and answers():
        return
    namespace = str(names.NETNS / names.namespace(spec.name))
    argv = [sys.executable, "-I", http_server.__file__, namespace, address, str(port), str(folder)]
    launch(argv, cgroup.create(spec.name, f"{what}.http"), names.rack_state(spec.name) / f"{what}.log")
    wait_until(answers, f"the {what} of rack {spec.name} to be served")


def _answers(rack: str, address: str, port: int, probe: str) -> bool:
    try:
        connection = open_socket(rack, address, port, 2)
        if connection is None:
            return False
        with connection:
            connection.settimeout(5)
            connection.sendall(f"HEAD /{probe} HTTP/1.0\r\n\r\n".encode())
            return connection.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
