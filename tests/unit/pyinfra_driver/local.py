"""A connector that runs commands in a shell of this machine, and breaks on request."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import gevent
from pyinfra.api.command import StringCommand
from pyinfra.connectors.base import BaseConnector
from pyinfra.connectors.util import CommandOutput, OutputLine

from rackwright.command import CommandResult
from rackwright.data import Site
from rackwright.factcache.answers import Ask
from rackwright.factcache.fetch import Opened, foresee
from rackwright.factcache.memory import Memory
from rackwright.model.cluster import Cluster
from rackwright.plan.node_plan import NodeOutcome, NodePlan
from rackwright.pyinfra_driver.connector_state import Watched
from rackwright.pyinfra_driver.driver import Driver


class LocalShell(Watched, BaseConnector):
    """Every host is this machine. `ran_commands` holds what was run; `before` may raise for (host, command)."""

    handles_execution = True
    ran_commands: ClassVar[list[tuple[str, str]]] = []
    before: ClassVar[Callable[[str, str], None] | None] = None

    @staticmethod
    def make_names_data(name: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        yield name, {}, []

    def run_shell_command(self, command: StringCommand, *args, **arguments) -> tuple[bool, CommandOutput]:
        answer = self.foreseen(command, arguments)
        if answer is None:
            answer = self._execute(command, arguments)
            self.ran(command, arguments, answer)
        if answer.exit_status:
            self.last = answer
        output = [OutputLine("stdout", line) for line in answer.stdout.splitlines()]
        output += [OutputLine("stderr", line) for line in answer.stderr.splitlines()]
        return answer.exit_status == 0, CommandOutput(output)

    def _execute(self, command: StringCommand, arguments: dict[str, Any]) -> CommandResult:
        text = command if isinstance(command, str) else command.get_raw_value()
        LocalShell.ran_commands.append((self.host.name, text))
        gevent.sleep(0)  # let the other hosts run in between, as a network would
        if LocalShell.before is not None:
            try:
                LocalShell.before(self.host.name, text)
            except ConnectionResetError as error:
                self.lost = str(error)
                raise
        done = subprocess.run(
            ["sh", "-c", text],
            input=arguments.get("_stdin") or "",
            check=False,
            capture_output=True,
            text=True,
            timeout=240,
        )
        return CommandResult(text, done.returncode, done.stdout, done.stderr)

    def put_file(self, *args, **kwargs) -> bool:
        raise NotImplementedError

    def get_file(self, *args, **kwargs) -> bool:
        raise NotImplementedError


class Told:
    """A Reporter that keeps everything."""

    def __init__(self) -> None:
        self.plans: dict[str, NodePlan] = {}
        self.outcomes: dict[str, NodeOutcome] = {}
        self.events: list[tuple[str, ...]] = []

    def planned(self, plan: NodePlan) -> None:
        self.plans[plan.node] = plan

    def started(self, node: str, role: str, name: str) -> None:
        self.events.append(("started", node, name))

    def finished(self, node: str, role: str, name: str, changed: bool, error: str | None) -> None:
        self.events.append(("finished", node, name, "failed" if error else "changed" if changed else "same"))

    def applied(self, outcome: NodeOutcome) -> None:
        self.outcomes[outcome.node] = outcome


class LocalRun:
    """Plans and applies a deploy text on hosts that are all this machine."""

    def __init__(self, cluster: Cluster, folder: Path, connector: type[LocalShell] = LocalShell) -> None:
        self._cluster = cluster
        self._deploy = folder / "deploy_under_test.py"
        self._connector = connector
        self.ask: Ask | None = None
        self.told = Told()
        LocalShell.ran_commands = []
        LocalShell.before = None

    def driver(self, text: str, memory: Memory | None = None) -> Driver:
        """A driver for a deploy's text; what it reports is in `told`.

        As in a worker, nodes that are as they were when last in sync never get to the driver.
        """
        self._deploy.write_text(text)
        self.told = Told()
        opened: dict[str, Opened] = {}
        for node in self._cluster.nodes:
            if self.ask is None or memory is None:
                opened[node.name] = Opened(None, None)
                continue
            answers, same = foresee(self.ask, memory, node.name)
            if same:
                self.told.planned(NodePlan(node.name, executions=answers.executions))
            else:
                opened[node.name] = Opened(None, answers)
        sites = [Site(self._cluster, node) for node in self._cluster.nodes if node.name in opened]
        return Driver(sites, self._deploy, self.told, connector=self._connector, memory=memory, opened=opened)

    def plan(self, text: str, memory: Memory | None = None) -> dict[str, NodePlan]:
        """Plan on every host."""
        self.driver(text, memory).plan()
        return self.told.plans

    def apply(self, text: str, memory: Memory | None = None) -> dict[str, NodeOutcome]:
        """Plan and apply on every host."""
        driver = self.driver(text, memory)
        driver.plan()
        driver.apply([name for name, plan in self.told.plans.items() if plan.evaluated])
        return self.told.outcomes
