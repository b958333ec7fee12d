"""A drain: nodes are cordoned, jobs waited for, services evicted."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from rackwright.boundary import last_line, printable
from rackwright.errors import RackwrightError, WorkloadError
from rackwright.model.ranges import fold
from rackwright.workload.kubernetes import patches
from rackwright.workload.kubernetes.output import NodeRow, Pod, by_node, jobs_of, services_of
from rackwright.workload.states import ROLLOUT_PREFIX

if TYPE_CHECKING:
    from rackwright.workload.kubernetes.kubectl import Kubectl

POLL_SECONDS = 2.0
EVICT_SECONDS = 5.0
"""Between two tries to evict a pod, as kubectl drain has it."""
_TRIES = 3
_NODES_PER_CALL = 200
_PODS_PER_CALL = 100
_AT_ONCE = 8
_SHOWN = 3
_EVICTION_V1 = (1, 22)
"""policy/v1 has evictions from there on, policy/v1beta1 until 1.25 (kubernetes.io, API-initiated eviction, read 2026-11-28)."""


class Drain:
    """One drain of some nodes for a run."""

    def __init__(self, kubectl: Kubectl, run: str, release: Callable[[], tuple[int, int]]) -> None:
        """`release`: asks for the API server's, e.g. (1, 34)."""
        self._kubectl = kubectl
        self._reason = f"{ROLLOUT_PREFIX}{run}"
        self._release = release
        self._refused_evictions: dict[str, str] = {}
        """Why the API server does not evict a pod, by its id."""
        self._next_eviction = 0.0

    def begin(self, nodes: Iterable[str], rows: Mapping[str, NodeRow]) -> list[str]:
        """Cordon those that are in service; the ones that this run has drained."""
        wanted = [name for name in nodes if name in rows and rows[name].state(()).in_service]
        mine: list[str] = []
        printed = ""
        for _ in range(_TRIES):
            if not wanted:
                return mine
            printed = change(self._kubectl, wanted, patches.cordon(self._reason, patches.author()))
            rows = self._kubectl.nodes()
            mine += [name for name in wanted if self._is_mine(rows.get(name))]
            wanted = [name for name in wanted if name in rows and rows[name].state(()).in_service]
        if wanted:
            self.give_back(mine)
            raise WorkloadError(f"Kubernetes did not cordon {fold(wanted)}: {printed}")
        return mine

    def finish(
        self, nodes: Collection[str], mine: Collection[str], seconds: float, *, kill_jobs: bool
    ) -> dict[str, str]:
        """Wait until these nodes are empty; {node: why it is not}, and back in service if this run drained it."""
        try:
            if kill_jobs:
                rows, pods = self._kubectl.look()
                self._kubectl.delete(job for job in jobs_of(pods) if job.node in nodes and job.node in rows)
            refused = self._wait(nodes, seconds)
        except RackwrightError:
            with contextlib.suppress(RackwrightError):  # the first error is the one to report
                self.give_back(mine)
            raise
        if given_back := [node for node in refused if node in mine]:
            self.give_back(given_back)
        return refused

    def give_back(self, nodes: Collection[str]) -> list[str]:
        """Uncordon those that this run still drains, and return them."""
        left, printed = list(nodes), ""
        done: list[str] = []
        for _ in range(_TRIES):
            rows = self._kubectl.nodes() if left else {}
            left = [name for name in left if self._is_mine(rows.get(name))]
            if not left:
                return done
            for has_by in (True, False):
                if some := [name for name in left if rows[name].has_by is has_by]:
                    printed = (
                        change(self._kubectl, some, patches.uncordon(self._reason, has_by=has_by)) or printed
                    )
            after = self._kubectl.nodes()
            done += [name for name in left if name in after and not after[name].cordoned]
            left = [name for name in left if name not in done]
        if left:
            raise WorkloadError(f"Kubernetes did not uncordon {fold(left)}: {printed}")
        return done

    def _is_mine(self, row: NodeRow | None) -> bool:
        return row is not None and row.cordoned and row.reason == self._reason

    def _wait(self, nodes: Collection[str], seconds: float) -> dict[str, str]:
        deadline = time.monotonic() + seconds
        while True:
            rows, pods = self._kubectl.look()
            of = by_node(pods)
            jobs, services = {}, {}
            for name in nodes:
                row = rows.get(name)
                if row is None:
                    continue
                silent = row.ready != "True"
                if found := jobs_of(of.get(name, ()), silent=silent):
                    jobs[name] = found
                elif not silent and (left := services_of(of.get(name, ()))):  # a silent node ends no pod
                    services[name] = left
            if not jobs and not services:
                return {}
            if time.monotonic() >= deadline:
                return {
                    **dict.fromkeys(jobs, f"its jobs did not end within {seconds:g} s"),
                    **{name: self._why(left, seconds) for name, left in services.items()},
                }
            self._evict(pod for left in services.values() for pod in left if not pod.deleted)
            time.sleep(POLL_SECONDS)

    def _why(self, pods: list[Pod], seconds: float) -> str:
        shown = ", ".join(pod.id for pod in pods[:_SHOWN]) + (", ..." if len(pods) > _SHOWN else "")
        printed = next((why for pod in pods if (why := self._refused_evictions.get(pod.id))), None)
        return f"{shown} did not leave within {seconds:g} s" + (f": {printed}" if printed is not None else "")

    def _evict(self, pods: Iterable[Pod]) -> None:
        if time.monotonic() < self._next_eviction:
            return
        due = list(pods)
        if not due:
            return
        self._next_eviction = time.monotonic() + EVICT_SECONDS
        policy = "policy/v1" if self._release() >= _EVICTION_V1 else "policy/v1beta1"
        for start in range(0, len(due), _PODS_PER_CALL):
            some = due[start : start + _PODS_PER_CALL]
            # one that is gone, or refused for now, fails alone; what is left is seen by the next look
            result = self._kubectl.ask(self._script(some, policy), seconds=20 * len(some) / _AT_ONCE + 60)
            for pod in some:
                self._refused_evictions.pop(pod.id, None)
            for line in result.stderr.splitlines():
                number, _, text = line.partition(" ")
                if number.isdigit() and int(number) < len(some) and text:
                    self._refused_evictions[some[int(number)].id] = printable(_plain(text), 200)

    def _script(self, pods: list[Pod], policy: str) -> str:
        """Evictions side by side; each line of an error begins with the pod's number."""
        lines = []
        for number, pod in enumerate(pods):
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
            item = {
                "apiVersion": policy,
                "kind": "Eviction",
                "metadata": {"name": pod.name, "namespace": pod.namespace},
            }
            call = self._kubectl.line(["create", f"--raw={path}", "-f", "-"])
            lines.append(f"echo '{json.dumps(item)}' | {call} 2>&1 >/dev/null | sed 's/^/{number} /' >&2 &")
            if (number + 1) % _AT_ONCE == 0:
                lines.append("wait")
        return "\n".join([*lines, "wait"])


def change(kubectl: Kubectl, nodes: list[str], patch: str) -> str:
    """Patch nodes; why kubectl did not, where it printed so. Whether it was done shows in the next look."""
    printed = ""
    for start in range(0, len(nodes), _NODES_PER_CALL):
        some = nodes[start : start + _NODES_PER_CALL]
        result = kubectl.ask(kubectl.line(patches.patch(some, patch)), seconds=60 + len(some))
        if result.exit_status != 0:
            printed = _plain(last_line(result.stdout, result.stderr))
    return printed


def _plain(text: str) -> str:
    """An error without kubectl's words before it."""
    return re.sub(r"^Error from server( \(\w+\))?: ", "", text)
