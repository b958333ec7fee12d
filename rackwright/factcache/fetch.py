"""Connects to a node and prefetches its answers: all that a node in sync needs.

Loads no pyinfra, so that checking nodes in sync stays cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackwright.boundary import Refused, last_line, printable
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.factcache.answers import Answers, Ask
from rackwright.factcache.cache import ClassCache, FactCache
from rackwright.factcache.helper_base import WAITS
from rackwright.model.cluster import Cluster, Node
from rackwright.plan.node_plan import NodePlan
from rackwright.ssh import TIMED_OUT, TOO_MUCH_OUTPUT, connect, run

if TYPE_CHECKING:
    import paramiko


ANSWER_SECONDS = 120
"""A node that needs longer for its answers counts as unreachable; a tenth of a second is usual."""
_LABEL_MAX = 200
"""Most characters of a node's description of what it waits for."""
REPLY_MAX_BYTES = 4 * 2**20
"""Of the compressed answers. A working head with every role sends some 30 KiB."""


@dataclass(frozen=True)
class Opened:
    """A node to be evaluated: its connection and the answers that were prefetched."""

    client: paramiko.SSHClient | None
    answers: Answers | None


def open_node(cluster: Cluster, node: Node, cache: ClassCache | FactCache | None) -> Opened | NodePlan:
    """Connect and, in one execution, prefetch the answers to the questions of the last evaluation.

    A NodePlan comes back when there is nothing left to do: the node has not changed since it was last in
    sync (its connection is closed), it is unreachable, it does not answer in time, or its answer is refused.
    """
    try:
        client = connect(cluster, node)
    except ConnectionFailed as error:
        return _unreachable(node, error)
    if cache is None:
        return Opened(client, None)

    def ask(command: str, stdin: bytes) -> CommandResult:
        limit = min(ANSWER_SECONDS * cluster.ssh.time_factor, cluster.ssh.command_timeout_seconds)
        sudo = cluster.ssh.become == "sudo"
        result = run(client, command, sudo=sudo, stdin=stdin, timeout=limit, limit=REPLY_MAX_BYTES)
        if result.exit_status == TOO_MUCH_OUTPUT:
            raise Refused(f"its answer is invalid: {last_line('', result.stderr)}")
        if result.exit_status == TIMED_OUT:
            raise ConnectionFailed(
                f"{node.name} did not report its state within {limit} s.{_stalled(result.stderr)}",
                hint="something hangs there: look for processes in state D and for mounts that hang",
            )
        return result

    try:
        answers, same = prefetch(ask, cache, node.name)
    except ConnectionFailed as error:
        client.close()
        return _unreachable(node, error, executions=1)
    except Refused as refused:
        client.close()
        return NodePlan(node.name, error=str(refused), executions=1)
    if same:
        client.close()
        return NodePlan(node.name, executions=answers.executions)
    return Opened(client, answers)


def _stalled(errors: str) -> str:
    """The helper's last report of what it was waiting for, as a sentence; empty if there is none."""
    progress = [line.removeprefix(WAITS) for line in errors.splitlines() if line.startswith(WAITS)]
    return f" It was {WAITS}{printable(progress[-1], _LABEL_MAX)}." if progress else ""


def _unreachable(node: Node, error: ConnectionFailed, executions: int = 0) -> NodePlan:
    hint = f" ({error.hint})" if error.hint else ""
    return NodePlan(node.name, error=f"{error.message}{hint}", unreachable=True, executions=executions)


def prefetch(ask: Ask, cache: ClassCache | FactCache, name: str) -> tuple[Answers, bool]:
    """The answers to a node's cached questions, and whether they still have the digest of its last sync.

    Refused where the node answers something else.
    """
    cached = cache.get(name)
    answers = Answers(ask, cached.questions, cached.packed)
    return answers, answers.fetch_all(cached.digest)
