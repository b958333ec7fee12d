"""A connector that runs commands in a shell of this machine, and breaks on request."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gevent
from pyinfra.api.command import StringCommand

from rackwright.boundary import Refused
from rackwright.command import CommandResult
from rackwright.data import Site
from rackwright.engine.reports import Reports
from rackwright.factcache.answers import Ask
from rackwright.factcache.cache import ClassCache
from rackwright.factcache.fetch import Opened, prefetch
from rackwright.model.cluster import Cluster
from rackwright.plan.node_plan import NodeOutcome, NodePlan
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.local import ThisMachineConnector


class LocalShell(ThisMachineConnector):
    """Every host is this machine. `ran_commands` holds what was run; `before` may raise for (host, command)."""

    ran_commands: ClassVar[list[tuple[str, str]]] = []
    before: ClassVar[Callable[[str, str], None] | None] = None

    def execute(self, command: StringCommand, arguments: dict[str, Any]) -> CommandResult:
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


class Told(Reports):
    """A Reporter that keeps everything."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, ...]] = []

    def started(self, node: str, role: str, name: str) -> None:
        self.events.append(("started", node, name))

    def finished(self, node: str, role: str, name: str, changed: bool, error: str | None) -> None:
        self.events.append(("finished", node, name, "failed" if error else "changed" if changed else "same"))


class LocalRun:
    """Plans and applies a deploy text on hosts that are all this machine."""

    def __init__(self, cluster: Cluster, folder: Path, connector: type[LocalShell] = LocalShell) -> None:
        self._cluster = cluster
        self._deploy = folder / "deploy_under_test.py"
        self._connector = connector
        self.ask: Ask | None = None
        self.reported = Told()
        LocalShell.ran_commands = []
        LocalShell.before = None

    def driver(self, text: str, cache: ClassCache | None = None) -> Driver:
        """A driver for a deploy's text; what it reports is in `reported`.

        As in a worker, nodes that are as they were when last in sync never get to the driver.
        """
        self._deploy.write_text(text)
        self.reported = Told()
        opened: dict[str, Opened] = {}
        for node in self._cluster.nodes:
            if self.ask is None or cache is None:
                opened[node.name] = Opened(None, None)
                continue
            try:
                answers, same = prefetch(self.ask, cache, node.name)
            except Refused as refused:
                self.reported.planned(NodePlan(node.name, error=str(refused), executions=1))
                continue
            if same:
                self.reported.planned(NodePlan(node.name, executions=answers.executions))
            else:
                opened[node.name] = Opened(None, answers)
        sites = [Site(self._cluster, node) for node in self._cluster.nodes if node.name in opened]
        return Driver(
            sites, self._deploy, self.reported, connector=self._connector, cache=cache, opened=opened
        )

    def plan(self, text: str, cache: ClassCache | None = None) -> dict[str, NodePlan]:
        """Plan on every host."""
        self.driver(text, cache).plan()
        return self.reported.plans

    def apply(self, text: str, cache: ClassCache | None = None) -> dict[str, NodeOutcome]:
        """Plan and apply on every host."""
        driver = self.driver(text, cache)
        driver.plan()
        driver.apply([name for name, plan in self.reported.plans.items() if plan.evaluated])
        return self.reported.outcomes
