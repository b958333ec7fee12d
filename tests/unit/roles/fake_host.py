"""A simulated node: it answers scripted commands and no others."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

from rackwright.claims.check import Check, CheckResult
from rackwright.data import Site
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.plan.node_plan import NodePlan
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.offline import EmptyNode
from rackwright.shipped import SITE_DEPLOY
from rackwright.verify.judge import Patience, ask, out_of_scope
from rackwright.verify.selection import PlannedCheck


class Reply(NamedTuple):
    """What a command gives back, under the names testinfra has for it."""

    rc: int
    stdout: str
    stderr: str


Answer = str | tuple[int, str, str]
"""Just the output of a command that succeeds, or (exit status, stdout, stderr)."""


@dataclass
class FakeHost:
    """A scripted testinfra host: command -> answer; a command without an answer is not found (127).

    `always` answers every command the script does not have: a node on which everything prints
    rubbish, or nothing.
    """

    replies: Mapping[str, Answer]
    always: Answer | None = None
    asked: list[str] = field(default_factory=list)

    def run(self, command: str, *args: str) -> Reply:
        """As testinfra: `%s` is replaced by quoted arguments when there are any."""
        line = command % tuple(shlex.quote(arg) for arg in args) if args else command
        self.asked.append(line)
        answer = self.replies.get(line, self.always)
        if answer is None:
            return Reply(127, "", f"sh: 1: {line.split()[0]}: not found")
        return Reply(0, answer, "") if isinstance(answer, str) else Reply(*answer)


def judged(
    role: str,
    checks: tuple[Check, ...],
    name: str,
    cluster: Cluster,
    node: Node,
    hosts: Mapping[str, FakeHost] | FakeHost,
) -> CheckResult:
    """The result of one check of a node, judged as `rackwright verify` judges it, without waiting.

    One host stands for all nodes, unless hosts are given by name.
    """
    check = next(check for check in checks if check.name == name)
    planned = PlannedCheck(role, replace(check, settle_seconds=0), node, node.options[role], 0)
    found = out_of_scope(planned)
    if found is not None:
        return found
    of = (lambda _: hosts) if isinstance(hosts, FakeHost) else hosts.__getitem__
    return ask(planned, cluster, of, Patience(time.monotonic(), threading.Event()))


def claimed(role: str, checks: tuple[Check, ...], node: Node) -> tuple[str, ...]:
    """Names of the checks that are made of this node."""
    options = node.options.get(role)
    if options is None:
        return ()
    return tuple(check.name for check in checks if check.applies is None or check.applies(node, options))


class _Kept:
    """A Reporter that keeps plans: nothing is ever applied to an empty node."""

    def __init__(self) -> None:
        self.plans: list[NodePlan] = []

    def planned(self, plan: NodePlan) -> None:
        self.plans.append(plan)


def planned(cluster: Cluster, node: Node, connector: type[EmptyNode] = EmptyNode) -> NodePlan:
    """What deploys/site.py would do to this node if nothing were on it yet, or what `connector` reports."""
    kept = _Kept()
    Driver([Site(cluster, node, offline=True)], SITE_DEPLOY, kept, connector=connector).plan()
    return kept.plans[0]


def commands(plan: NodePlan, operation: str) -> tuple[str, ...]:
    """The commands of one operation, by its name."""
    return next(entry.commands for entry in plan.operations if entry.name == operation)


def content(plan: NodePlan, path: str) -> str | None:
    """The whole text of a file that a plan would write; None where it writes none."""
    changes = (change for entry in plan.operations for change in entry.changes)
    return next((change.content for change in changes if change.target == path), None)


def errors_in(options: type[RoleOptions], given: Any) -> list[str]:
    """What is wrong with options of a role as a cluster file has them."""
    with pytest.raises(ValidationError) as refused:
        options.model_validate(given)
    return [error["msg"].removeprefix("Value error, ") for error in refused.value.errors()]
