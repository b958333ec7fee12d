"""testinfra hosts over rackwright's own connections."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from testinfra.backend import base
from testinfra.host import Host

from rackwright.claims.check import TestinfraHost, Undetermined
from rackwright.model.cluster import Cluster
from rackwright.ssh import TIMED_OUT, RootShell
from rackwright.verify.ahead import Ahead

_deadline: ContextVar[tuple[float, float]] = ContextVar("deadline")
"""(when the check of this thread must be done, its seconds), on time.monotonic's clock."""

_DEFAULT_SECONDS = 60.0


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Give all commands this thread runs inside the block this many seconds together."""
    token = _deadline.set((time.monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


class NodeBackend(base.BaseBackend):  # type: ignore[no-any-unimported, unused-ignore]
    """Runs testinfra's commands as root on one node, within the time of the check that asks."""

    NAME = "rackwright"

    def __init__(self, node: str, shell: RootShell, ahead: Ahead | None = None) -> None:
        super().__init__(node)
        self._shell = shell
        self._ahead = ahead
        self._encoding = "utf-8"  # else testinfra asks the node's Python for it

    def run(self, command: str, *args: str, **_: Any) -> base.CommandResult:  # noqa: ANN401
        """Run a command; Undetermined when the check's time is over before it ends."""
        line = self.get_command(command, *args)
        known = self._ahead.answer(self.hostname, line) if self._ahead is not None else None
        if known is not None:
            return self.result(known.exit_status, line.encode(), known.stdout, known.stderr)
        deadline, seconds = _deadline.get((time.monotonic() + _DEFAULT_SECONDS, _DEFAULT_SECONDS))
        left = deadline - time.monotonic()
        if left > 0:
            # timeout(1) on the node ends what we stop waiting for
            bounded = f"timeout -k 5 {math.ceil(left) + 1} sh -c {shlex.quote(line)}"
            result = self._shell.run(self.hostname, bounded, timeout=left)
            if result.exit_status != TIMED_OUT or time.monotonic() < deadline:
                if self._ahead is not None:
                    self._ahead.ran(self.hostname, line, time.monotonic() - deadline + left)
                return self.result(result.exit_status, line.encode(), result.stdout, result.stderr)
        raise Undetermined(f"`{line[:120]}` did not end within the {seconds:g} s the check has")


class Hosts:
    """The testinfra hosts of a cluster, one per node, made when first asked for."""

    def __init__(self, cluster: Cluster, shell: RootShell, ahead: Ahead | None = None) -> None:
        self._hosts: dict[str, TestinfraHost] = {}
        for node in cluster.nodes:
            backend = NodeBackend(node.name, shell, ahead)
            host = Host(backend)
            backend.set_host(host)
            self._hosts[node.name] = cast(TestinfraHost, host)

    def __call__(self, node: str) -> TestinfraHost:
        """The host of a node; Undetermined if the cluster does not have that node."""
        if node not in self._hosts:
            raise Undetermined(f"the cluster has no node {node}")
        return self._hosts[node]
