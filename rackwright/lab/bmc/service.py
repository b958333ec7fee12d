"""The BMCs of a rack, as `lab up` starts them: passwords, certificates, and the process that serves them."""

from __future__ import annotations

import secrets
import ssl
import sys
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, keys, state
from rackwright.lab.bmc import certificates
from rackwright.lab.netns import open_socket
from rackwright.lab.process import launch, wait_until
from rackwright.lab.spec import NodeSpec, RackSpec

_GROUP = "bmcs.server"
_START_SECONDS = 60.0
_ANSWER_SECONDS = 5.0
_PASSWORD_BYTES = 12


def start(spec: RackSpec) -> None:
    """Serve the BMCs of a rack; a server that already serves them all is left alone."""
    if not spec.racked:
        cgroup.remove(spec.name, _GROUP)
        return
    for path in sorted({one.bmc.password for one in spec.racked if one.bmc is not None}):
        _ensure_password(path)
    certificates.ensure(spec)
    served = {one.name: one.to_json() for one in spec.racked}
    record = certificates.folder(spec.name) / "served.json"
    if cgroup.populated(spec.name, _GROUP) and state.read_json(record) == served:
        return
    log = certificates.folder(spec.name) / "server.log"
    argv = [sys.executable, "-P", "-m", "rackwright.lab.bmc", spec.name]
    launch(argv, cgroup.create(spec.name, _GROUP), log)
    wait_until(lambda: _serves(spec, log), f"the BMCs of rack {spec.name}; see {log}", _START_SECONDS)
    state.write_json(record, served)


def running(rack: str) -> bool:
    """Whether the process that serves a rack's BMCs lives."""
    return cgroup.populated(rack, _GROUP)


def answers(rack: str, node: NodeSpec) -> bool:
    """Whether a node's BMC answers at its address; its certificate is not checked."""
    assert node.bmc is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        connection = open_socket(rack, node.bmc.address, node.bmc.port, _ANSWER_SECONDS)
        if connection is None:
            return False
        with connection, context.wrap_socket(connection):
            return True
    except OSError:
        return False


def _serves(spec: RackSpec, log: Path) -> bool:
    if not running(spec.name):
        output = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
        raise LabError(f"the server of the BMCs of rack {spec.name} ended\n{output}", hint=f"see {log}")
    return all(_listens(spec.name, one) for one in spec.racked)


def _listens(rack: str, node: NodeSpec) -> bool:
    """Whether the address accepts connections; one with the fault bmc:hang does too."""
    assert node.bmc is not None
    try:
        connection = open_socket(rack, node.bmc.address, node.bmc.port, _ANSWER_SECONDS)
        if connection is not None:
            connection.close()
        return connection is not None
    except OSError:
        return False


def _ensure_password(path: Path) -> None:
    """The password of BMCs; one that is there stays."""
    if path.exists():
        return
    keys.make_folder(path.parent)
    state.write_text(path, secrets.token_urlsafe(_PASSWORD_BYTES) + "\n", 0o600)
    keys.give_to_owner_of(path.parent, path)
