"""An Alertmanager on paper, and a role whose options reach it with commands of words."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster
from rackwright.model.monitoring import RoutesAlerts
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole
from tests.factories import make_cluster, make_node


class Routes(RoleOptions, RoutesAlerts):
    """Stands for the alertmanager role, on every head."""

    drill_port: int | None = None

    def runs_on(self, node):
        return node.holds(NodeRole.HEAD)

    def silence_command(self, matchers: Sequence[str], minutes: int, comment: str) -> str:
        return f"add {minutes} {'&'.join(matchers)} {comment}"

    def unsilence_command(self, silence: str) -> str:
        return f"end {silence}"


class FakeAlertmanager:
    """A shell of every node: knows which silences are active, and fails as it is told to."""

    def __init__(self, *, absent: Sequence[str] = (), unreachable: Sequence[str] = ()) -> None:
        self.absent, self.unreachable = absent, unreachable
        self.refusals = 0
        """So many commands are refused from now on."""
        self.prints: str | None = None
        """What `add` prints instead of an ID."""
        self.active: dict[str, str] = {}
        """Matchers, joined by `&`, of each silence."""
        self.log: list[tuple[str, str]] = []
        """(node, what) of each command, IDs left out."""
        self.most = 0
        """Silences that were active at once."""
        self._lock = threading.Lock()

    def run(self, node, command, *, stdin=None, timeout):
        with self._lock:
            words = command.split(" ", 3)
            self.log.append((node, command if words[0] == "add" else words[0]))
            if node in self.unreachable:
                raise ConnectionFailed(f"{node} does not answer.")
            if node in self.absent:
                return CommandResult(command, 127, "", "sh: 1: amtool: not found\n")
            if self.refusals:
                self.refusals -= 1
                return CommandResult(command, 1, "", "amtool: error: connection refused\n")
            if words[0] == "add":
                return CommandResult(command, 0, self._add(words[2]), "")
            self.active.pop(words[1])
            return CommandResult(command, 0, "", "")

    def _add(self, matchers: str) -> str:
        if self.prints is not None:
            return self.prints
        silence = f"0000000a-0000-4000-8000-{len(self.log):012x}"
        self.active[silence] = matchers
        self.most = max(self.most, len(self.active))
        return silence + "\n"


def rack(heads: int = 1, *, routes: bool = True) -> Cluster:
    """Heads, the last of which is the primary one, and two workers."""
    options = {"alertmanager": Routes()} if routes else {}
    nodes = [
        make_node(f"head{number}", 10 + number, NodeRole.HEAD).model_copy(update={"primary": number == heads})
        for number in range(1, heads + 1)
    ]
    nodes += [make_node(f"worker{number}", 20 + number) for number in (1, 2)]
    return make_cluster(*(node.with_options(options) for node in nodes))
