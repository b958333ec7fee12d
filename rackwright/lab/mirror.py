"""The site mirror: one caching apt proxy per machine, and a door to it in every rack.

The nodes have no route out, as on an air-gapped site. One apt-cacher-ng runs for all racks (two on one
cache folder would damage it), listens on a free port of the loopback address only, and keeps its cache
over racks and reboots. Each rack has a relay from its bridge address to that port. The daemon stops with
the last rack which uses it. Debian's own apt-cacher-ng.service, running or not, is not touched.
"""

import os
import pwd
import random
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, names, relay, sources, state
from rackwright.lab.netns import open_socket
from rackwright.lab.process import launch, wait_until
from rackwright.lab.spec import RackSpec

_DAEMON = "mirror.daemon"
_RELAY = "mirror.relay"
_LOCK = "mirror"
_ACCOUNT = "apt-cacher-ng"


def open_door(spec: RackSpec) -> None:
    """Give a rack its apt proxy; what already runs is left alone."""
    if spec.apt_proxy is None:
        return
    with state.lock(_LOCK, wait=300):
        # Written first, so that no other rack's end takes the daemon away from under this one.
        state.write_json(_claim(spec.name), {"apt_proxy": spec.apt_proxy})
        if not (cgroup.populated(_DAEMON) and _soon(_answers)):
            _start_daemon()
        target = _port()
    address, port = spec.apt_proxy_endpoint
    # A relay may lead to the port of an earlier daemon, where nothing listens any more.
    answers = partial(_relay_answers, spec.name, address, port)
    if not (cgroup.populated(spec.name, _RELAY) and _soon(answers)):
        namespace = str(names.NETNS / names.namespace(spec.name))
        argv = [sys.executable, "-I", relay.__file__, namespace, address, str(port), str(target)]
        launch(argv, cgroup.create(spec.name, _RELAY), names.rack_state(spec.name) / "mirror.log")
    wait_until(answers, f"the mirror's door in rack {spec.name}")


def door_answers(spec: RackSpec) -> bool:
    """Whether a rack's nodes get an answer from the mirror now; only for a rack which has one."""
    return _relay_answers(spec.name, *spec.apt_proxy_endpoint)


def close_door(rack: str) -> None:
    """Forget a rack's claim on the mirror, and end the mirror with the last claim."""
    with state.lock(_LOCK, wait=300):
        _claim(rack).unlink(missing_ok=True)
        if not any(names.RUNTIME.glob("*/mirror.json")):
            cgroup.remove(_DAEMON)
            shutil.rmtree(_folder(), ignore_errors=True)


def _start_daemon() -> None:
    cgroup.remove(_DAEMON)
    port = _free_port(_port())
    shutil.rmtree(_folder(), ignore_errors=True)
    cache = names.lab_dir() / "mirror"
    for folder in (_folder() / "conf", _folder() / "log", cache):
        folder.mkdir(parents=True, exist_ok=True)
    user = []
    try:
        account = pwd.getpwnam(_ACCOUNT)
    except KeyError:
        pass  # not the Debian package: it then runs as root
    else:
        for folder in (_folder() / "log", cache):
            os.chown(folder, account.pw_uid, account.pw_gid)
        user = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    (_folder() / "conf" / "acng.conf").write_text(_configuration(cache, port))
    state.write_json(_folder() / "port.json", port)
    argv = [*user, "apt-cacher-ng", "-c", str(_folder() / "conf")]
    launch(argv, cgroup.create(_DAEMON), _folder() / "output.log")
    wait_until(_answers, f"apt-cacher-ng; see {_folder() / 'output.log'}")


def _free_port(wanted: int) -> int:
    # The relays of other racks lead to the last daemon's port. A new one is at most 32767, for
    # apt-cacher-ng takes anything beyond for a negative number.
    for port in [*([wanted] if wanted else []), *random.sample(range(20_000, 32_768), 100)]:
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise LabError("no free port between 20000 and 32767 for the mirror")


def _configuration(cache: Path, port: int) -> str:
    upstream = sources.apt_setting("Acquire::http::Proxy") or os.environ.get("http_proxy")
    return "\n".join(
        [
            f"CacheDir: {cache}",
            f"LogDir: {_folder() / 'log'}",
            "BindAddress: 127.0.0.1",
            f"Port: {port}",
            "ForeGround: 1",
            "VerboseLog: 0",
            "ReportPage: acng-report.html",
            # A mirror reached over TLS cannot be cached, but it can be reached.
            "PassThroughPattern: .*:443$",
            # The cache is shared for weeks without its nightly job: disable expiry.
            "ExThreshold: 365",
            *([f"Proxy: {upstream}"] if upstream else []),
            "",
        ]
    )


def _answers() -> bool:
    try:
        return _is_mirror(socket.create_connection(("127.0.0.1", _port()), timeout=2))
    except OSError:
        return False


def _soon(condition: Callable[[], bool]) -> bool:
    # A busy mirror is slow to answer; ending it would break the downloads of every other rack.
    try:
        wait_until(condition, "an answer", timeout=60)
    except LabError:
        return False
    return True


def _relay_answers(rack: str, address: str, port: int) -> bool:
    try:
        connection = open_socket(rack, address, port, 2)
        return connection is not None and _is_mirror(connection)
    except OSError:
        return False


def _is_mirror(connection: socket.socket) -> bool:
    with connection:
        connection.settimeout(5)
        connection.sendall(b"GET /acng-report.html HTTP/1.0\r\n\r\n")
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    return b"Apt-Cacher" in answer


def _folder() -> Path:
    return names.RUNTIME / ".mirror"


def _port() -> int:
    # 0 is a port where nothing answers, which is intended while the daemon is down.
    return int(state.read_json(_folder() / "port.json") or 0)


def _claim(rack: str) -> Path:
    return names.rack_state(rack) / "mirror.json"
