"""Reaching a node and asking what it was asked before: all a node in sync ever needs.

Nothing here loads pyinfra, which a check that finds nothing does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackwright.checks import CommandResult
from rackwright.engine.answers import Answers, Ask
from rackwright.engine.memory import Memories, Memory
from rackwright.engine.plan import NodePlan
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh import connect, run

if TYPE_CHECKING:
    import paramiko


@dataclass(frozen=True)
class Opened:
    """A node that was reached, and whatever of its answers was foreseen; it is to be evaluated."""

    client: paramiko.SSHClient | None
    answers: Answers | None


def open_node(cluster: Cluster, node: Node, memory: Memory | Memories | None) -> Opened | NodePlan:
    """Connect and, in one execution, fetch what is foreseen.

    A NodePlan comes back when there is nothing left to do: the node is as it was when it was last
    in sync (its connection is closed), or it cannot be reached.
    """
    try:
        client = connect(cluster, node)
    except ConnectionFailed as error:
        hint = f" ({error.hint})" if error.hint else ""
        return NodePlan(node.name, error=f"{error.message}{hint}", unreachable=True)
    if memory is None:
        return Opened(client, None)

    def ask(command: str, stdin: bytes) -> CommandResult:
        ssh = cluster.ssh
        return run(
            client, command, sudo=ssh.become == "sudo", stdin=stdin, timeout=ssh.command_timeout_seconds
        )

    try:
        answers, same = foresee(ask, memory, node.name)
    except ConnectionFailed as error:
        client.close()
        return NodePlan(node.name, error=error.message, unreachable=True, executions=1)
    if same:
        client.close()
        return NodePlan(node.name, executions=answers.executions)
    return Opened(client, answers)


def foresee(ask: Ask, memory: Memory | Memories, name: str) -> tuple[Answers, bool]:
    """The answers of a node's remembered questions, and whether they are those of its last sync."""
    remembered = memory.recall(name)
    answers = Answers(ask, remembered.questions, remembered.packed)
    return answers, answers.fetch_all(remembered.digest)
