"""Runs the checks: nodes side by side, cluster-wide checks one after the other at the end."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from rackwright.boundary import last_line
from rackwright.claims.check import Check, CheckResult, TestinfraHost
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster
from rackwright.site_folder import site_folder
from rackwright.ssh import Pool, RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.state_folder import state_folder
from rackwright.status import Status
from rackwright.verify.ahead import Ahead
from rackwright.verify.backend import Hosts
from rackwright.verify.judge import Patience, ask, out_of_scope, result
from rackwright.verify.report import VerifyReport
from rackwright.verify.selection import PlannedCheck, load_checks, select
from rackwright.verify.site_checks import ROLE, site_checks

WORKERS_MAX = 64
LANES_PER_NODE = 4
_WORD = "rackwright"
"""What a node has to repeat before it is asked anything: one that prints other text answers nothing."""
Progress = Callable[[CheckResult], None]


def verify(
    cluster: Cluster,
    *,
    limit: str | None = None,
    roles: frozenset[str] | None = None,
    shell: RootShell | None = None,
    checks_of: Callable[[str], tuple[Check, ...]] = load_checks,
    progress: Progress | None = None,
    drained: bool = False,
) -> VerifyReport:
    """Check what the roles of a cluster and the site's own checks claim, and return every result.

    `limit` is a NodeSet expression, `roles` a set of role names (`checks`: the site's own); RackwrightError when either
    names something the cluster does not have. `drained`: leave
    out the site's checks that need the node in service; those of roles are left out by `checks_of`. Nodes are reached over ssh unless another `shell`
    is given. Never raises for what a node does: what cannot be found out is UNKNOWN.
    `progress` is called with each result, from several threads.
    """
    own = (roles is None or ROLE in roles) and bool(site_folder(cluster.path).checks)
    if roles is not None and own:
        roles -= {ROLE}
    selection = select(cluster, limit=limit, roles=roles, checks_of=checks_of)
    started, begun = datetime.now(UTC), time.monotonic()
    with ExitStack() as stack:
        reached = shell if shell is not None else stack.enter_context(Pool(cluster))
        beside = None
        if own:
            beside = stack.enter_context(side_by_side(1)).submit(
                site_checks, cluster, selection.nodes, drained
            )
        run = _Run(cluster, reached, selection.checks, progress)
        results = run.all(selection.checks)
        if beside is not None:
            results += beside.result()
    return VerifyReport(
        cluster=cluster.name,
        file=str(cluster.path),
        sha256=cluster.sha256,
        nodes=tuple(node.name for node in selection.nodes),
        results=tuple(results),
        left_out=selection.left_out,
        started=started,
        seconds=time.monotonic() - begun,
    )


class _Run:
    def __init__(
        self,
        cluster: Cluster,
        shell: RootShell,
        checks: Sequence[PlannedCheck],
        progress: Progress | None,
    ) -> None:
        self._cluster = cluster
        self._shell = shell
        self._ahead = Ahead(cluster, shell, checks, state_folder(cluster.name) / "verify")
        self._hosts: Callable[[str], TestinfraHost] = Hosts(cluster, shell, self._ahead)
        self._progress = progress
        self._unreachable: dict[str, str] = {}
        self._patience = Patience(time.monotonic(), threading.Event())

    def all(self, checks: Sequence[PlannedCheck]) -> list[CheckResult]:
        """The result of every check, in the order of the checks."""
        names = sorted({planned.node.name for planned in checks})
        lanes = _lanes(checks)
        results: dict[int, CheckResult] = {}
        with side_by_side(min(WORKERS_MAX, LANES_PER_NODE * len(names))) as executor:
            try:
                for name, reason in zip(names, executor.map(self._reach, names), strict=True):
                    if reason is not None:
                        self._unreachable[name] = reason
                for found in executor.map(
                    lambda lane: {place: self._answer(checks[place]) for place in lane}, lanes
                ):
                    results.update(found)
                for place in range(len(checks)):
                    # one at a time, nothing beside it: "every node is idle" and "a job runs" would
                    # otherwise disturb each other
                    if place not in results:
                        results[place] = self._answer(checks[place])
            finally:
                self._patience.stop.set()
                self._ahead.save()
        return [results[place] for place in range(len(checks))]

    def _reach(self, name: str) -> str | None:
        """Why a node cannot be asked anything, or None."""
        try:
            if self._ahead.fetch(name):
                return None
            answer = self._shell.run(name, f"echo {_WORD}", timeout=60)
        except ConnectionFailed as error:
            return error.message
        if answer.exit_status != 0:
            words = last_line(answer.stdout, answer.stderr)
            return f"{name} cannot run commands: `echo {_WORD}` exited {answer.exit_status}: {words}"
        if answer.stdout.strip() != _WORD:
            words = last_line(answer.stdout)
            return f"{name} answers `echo {_WORD}` with other text, so no answer of it is used: {words}"
        return None

    def _answer(self, planned: PlannedCheck) -> CheckResult:
        found = out_of_scope(planned)
        if found is None and planned.node.name in self._unreachable:
            found = result(planned, Status.UNKNOWN, self._unreachable[planned.node.name])
        if found is None:
            found = ask(planned, self._cluster, self._host, self._patience)
        if self._progress is not None:
            self._progress(found)
        return found

    def _host(self, name: str) -> TestinfraHost:
        """The host of a node; ConnectionFailed for one that answers nothing, so that the check names it."""
        if name in self._unreachable:
            raise ConnectionFailed(self._unreachable[name])
        return self._hosts(name)


def _lanes(checks: Sequence[PlannedCheck]) -> list[list[int]]:
    """Places of the node-scope checks as lists to be worked through one by one.

    A node has at most LANES_PER_NODE of them, so that its checks do not use up their time waiting
    for each other; the first lane of every node comes before the second of any.
    """
    per_node: dict[str, list[int]] = defaultdict(list)
    for place, planned in enumerate(checks):
        if planned.check.scope == "node":
            per_node[planned.node.name].append(place)
    lanes = [places[turn::LANES_PER_NODE] for turn in range(LANES_PER_NODE) for places in per_node.values()]
    return [lane for lane in lanes if lane]
