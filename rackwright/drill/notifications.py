"""Notifications received by the webhook on the head."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from shlex import join
from typing import Self

from rackwright.errors import RackwrightError
from rackwright.lab.rack import Rack
from rackwright.node_programs import one_text

_UNIT = "rackwright-drill-receiver"
_FOLDER = "/run/rackwright-drill"
_PROGRAM = f"{_FOLDER}/receiver.py"
_FILE = f"{_FOLDER}/notifications"
_POLL_SECONDS = 1.0


class Notifications:
    """A webhook on a node of the rack, from `with` to its end, and all that it was sent since."""

    def __init__(self, rack: Rack, node: str, port: int) -> None:
        self._rack, self._node, self._port = rack, node, port
        self._lines: list[dict[str, object]] = []
        self._read = 0
        self._lock = threading.Lock()
        self._asked = 0.0

    def __enter__(self) -> Self:
        self._stop()
        self._shell(f"mkdir -p {_FOLDER} && : > {_FILE} && chmod 700 {_FOLDER}")
        self._shell(f"cat > {_PROGRAM} <<'PROGRAM'\n{one_text('rackwright.drill.receiver')}\nPROGRAM")
        started = ["systemd-run", f"--unit={_UNIT}", "--collect", "--quiet"]
        self._shell(join([*started, "python3", "-IS", _PROGRAM, str(self._port), _FILE]))
        self._wait_until_it_listens()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def seen(self, alert: str, labels: Mapping[str, str], status: str, since: int) -> bool:
        """Whether an alert with these labels was sent with this status, after the first `since` of all that was sent."""
        self._fetch()
        return any(
            one["status"] == status and _matches(one["labels"], {"alertname": alert, **labels})
            for one in self._lines[since:]
        )

    def firing(self, alert: str, labels: Mapping[str, str]) -> bool:
        """Whether an alert with these labels was sent as firing, and not as resolved since."""
        self._fetch()
        wanted = {"alertname": alert, **labels}
        last = {
            json.dumps(one["labels"], sort_keys=True): one["status"]
            for one in self._lines
            if _matches(one["labels"], wanted)
        }
        return "firing" in last.values()

    def count(self) -> int:
        """How many alerts were sent so far."""
        self._fetch()
        return len(self._lines)

    def _fetch(self) -> None:
        with self._lock:
            if time.monotonic() - self._asked < _POLL_SECONDS / 2:
                return
            text = self._shell(f"tail -c +{self._read + 1} {_FILE}")
            whole = text[: text.rfind("\n") + 1]
            self._read += len(whole.encode())
            self._lines += [json.loads(line) for line in whole.splitlines()]
            self._asked = time.monotonic()

    def _shell(self, command: str) -> str:
        return self._rack.run(self._node, ["sh", "-c", command])

    def _stop(self) -> None:
        self._shell(f"systemctl stop {_UNIT}.service 2>/dev/null || :; rm -rf {_FOLDER}")

    def _wait_until_it_listens(self) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if f":{self._port} " in self._shell("ss -Hltn"):
                return
            time.sleep(0.2)
        raise RackwrightError(
            f"The webhook on {self._node} is not listening on port {self._port} after 20 s.",
            hint=f"rackwright lab exec {self._node} journalctl -u {_UNIT}",
        )


def _matches(labels: object, wanted: Mapping[str, str]) -> bool:
    return isinstance(labels, dict) and all(labels.get(name) == value for name, value in wanted.items())
