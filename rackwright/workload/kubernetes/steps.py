"""Runs steps as pods: makes them, waits for them to start, follows the log of the first, and removes them."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rackwright.boundary import last_line, printable
from rackwright.command import CommandResult
from rackwright.errors import WorkloadError
from rackwright.kubernetes.objects import Object
from rackwright.model.cluster import Cluster
from rackwright.workload.kubernetes.kubectl import Kubectl, options_of
from rackwright.workload.kubernetes.output import NodeRow, Pod, by_node
from rackwright.workload.kubernetes.step_objects import (
    EXIT,
    INDEX,
    NAMESPACE,
    STEP_LABEL,
    Placed,
    namespace,
    objects,
)
from rackwright.workload.protocol import JobStep, Output

START_SECONDS = 300
"""Until all pods run, images included."""
PLACE_SECONDS = 60
"""Until the scheduler has placed each pod: on nodes that are free, it does so at once."""
LEAVE_SECONDS = 60
"""Until pods of an earlier step are gone; their grace period is 5 s."""
POLL_SECONDS = 2.0
_TRIES = 5
_FIRST_PORT, _PORTS = 20_000, 9_000
"""Below the ports of Services (30000) and of outgoing connections (32768)."""
_STUCK = ("ErrImage", "ImagePull", "InvalidImage", "CreateContainer", "RunContainerError")
_OUT_OF_TIME = 124
_STEP_CELLS = (
    "{.metadata.name}",
    f"{{.metadata.annotations.{INDEX.replace('.', chr(92) + '.')}}}",
    "{.status.phase}",
    '{.status.conditions[?(@.type=="PodScheduled")].status}',
    "{.status.containerStatuses[0].state.waiting.reason}",
    "{.status.reason}",
    '{.status.conditions[?(@.type=="PodScheduled")].message}',
    "{.status.containerStatuses[0].state.waiting.message}{.status.message}",
)


@dataclass(frozen=True)
class StepPod:
    """One pod of a step."""

    name: str
    index: str
    phase: str
    placed: bool
    waiting: str
    reason: str
    message: str


class Steps:
    """The steps of one manager."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl, release: Callable[[], tuple[int, int]]) -> None:
        self._cluster, self._kubectl, self._release = cluster, kubectl, release
        self._running: set[str] = set()

    def run(self, step: JobStep) -> Output:
        """See rackwright.workload.protocol.Manager."""
        image = options_of(self._cluster).burnin_image
        if image is None:
            raise WorkloadError(
                "Kubernetes runs jobs in an image, and none is declared.",
                hint="set `roles.kubernetes.images.burnin` to an image with Open MPI, sshd and python3",
            )
        rows, pods = self._free_of_earlier(step)
        if (why := _not_free(step, rows, by_node(pods))) is not None:
            return Output(f"error: {why}\n", 1, "the step")
        name = f"rackwright-{step.purpose}-{secrets.token_hex(4)}"
        placed = _placed(name, image, [rows[node] for node in step.nodes])
        self._running.add(name)
        try:
            self._create(objects(self._cluster, step, placed, self._release()), name)
            return self._followed(step, name)
        finally:
            self._remove(name)

    def cancel(self) -> None:
        """By label."""
        for name in sorted(self._running):
            self._remove(name)

    def _free_of_earlier(self, step: JobStep) -> tuple[dict[str, NodeRow], list[Pod]]:
        """The nodes and pods, once pods of earlier steps have ended, which takes their kubelets seconds."""
        end = time.monotonic() + LEAVE_SECONDS
        while True:
            rows, pods = self._kubectl.look()
            leaving = [
                pod for pod in pods if pod.namespace == NAMESPACE and pod.deleted and pod.node in step.nodes
            ]
            if not leaving or time.monotonic() >= end:
                return rows, pods
            time.sleep(POLL_SECONDS)

    def _create(self, items: Sequence[Object], name: str) -> None:
        made = self._kubectl.ask(
            self._kubectl.line(["apply", "-f", "-"]), stdin=json.dumps(namespace()), seconds=60
        )
        if "AlreadyExists" not in made.stderr:  # by another step of this moment
            self._kubectl.checked(made)
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
        for last in (*(False for _ in range(_TRIES - 1)), True):
            result = self._kubectl.ask(self._kubectl.line(["create", "-f", "-"]), stdin=text, seconds=120)
            if result.exit_status == 0:
                return
            if last or "serviceaccount" not in result.stderr:
                self._kubectl.checked(result)
            self._delete(name)  # a new namespace has its service account a moment later
            time.sleep(POLL_SECONDS)

    def _followed(self, step: JobStep, name: str) -> Output:
        """Until the first pod's log has its last line."""
        why = self._started(name, len(step.nodes))
        if why is not None:
            return Output(f"error: {why}\n", 1, "the step")
        end = time.monotonic() + step.timeout_seconds + START_SECONDS
        while True:
            first = next((pod for pod in self._pods(name) if pod.index == "0"), None)
            if first is None:
                return Output("error: the step's first pod was deleted\n", 1, "the step")
            left = end - time.monotonic()
            words = ["logs", "-f", "-n", NAMESPACE, first.name]
            result = self._kubectl.ask(self._kubectl.line(words, seconds=None), seconds=max(left, 1) + 60)
            if (output := _output(result)) is not None:
                return output
            if first.phase in ("Succeeded", "Failed") or left <= 0:
                late = left <= 0 or first.reason == "DeadlineExceeded"
                printed = (
                    f"error: the first pod ended: {first.reason or first.phase} {first.message}".rstrip()
                )
                return Output(f"{result.stdout}{printed}\n", _OUT_OF_TIME if late else None, "the step")
            time.sleep(POLL_SECONDS)

    def _started(self, name: str, count: int) -> str | None:
        """Why the pods do not run, or None."""
        begun = time.monotonic()
        while True:
            pods = self._pods(name)
            waited = time.monotonic() - begun
            bad = next((pod for pod in pods if pod.phase == "Failed" and pod.index != "0"), None)
            if bad is not None:
                return f"{bad.name} failed: {bad.reason} {bad.message}".rstrip()
            if any(pod.index == "0" and pod.phase in ("Succeeded", "Failed") for pod in pods):
                return None
            late = [pod for pod in pods if pod.phase != "Running"]
            if len(pods) == count and not late:
                return None
            stuck = next((pod for pod in late if pod.waiting.startswith(_STUCK)), None)
            if waited > PLACE_SECONDS and stuck is not None:
                return f"{stuck.name} does not start: {stuck.waiting} {stuck.message}".rstrip()
            homeless = next((pod for pod in late if not pod.placed), None)
            if waited > PLACE_SECONDS and homeless is not None:
                return f"{homeless.name} has no place: {homeless.message}"
            if waited > START_SECONDS:
                return f"{len(pods) - len(late)} of {count} pods run after {START_SECONDS} s"
            time.sleep(POLL_SECONDS)

    def _pods(self, name: str) -> list[StepPod]:
        mark = secrets.token_hex(8)
        row = '{"|"}'.join(_STEP_CELLS)
        table = f'{{range .items[*]}}{{"{mark}|"}}{row}{{"\\n"}}{{end}}'
        words = ["get", "pods", "-n", NAMESPACE, "-l", f"{STEP_LABEL}={name}", "-o", f"jsonpath={table}"]
        found = []
        for line in self._kubectl.answer(words).split("\n"):
            cells = line.split("|", len(_STEP_CELLS))
            if cells[0] == mark and len(cells) >= 7:
                cells = [printable(cell, 300) for cell in cells]
                message = " ".join(filter(None, cells[7:]))
                _, name, index, phase, placed, waiting, reason = cells[:7]
                found.append(StepPod(name, index, phase, placed == "True", waiting, reason, message))
        return found

    def _remove(self, name: str) -> None:
        # the first error is the one to report, and the pods' own time limit ends them in any case
        with contextlib.suppress(Exception):
            self._delete(name)
        self._running.discard(name)

    def _delete(self, name: str) -> None:
        words = ["delete", "jobs,pods,secrets", "-n", NAMESPACE, "-l", f"{STEP_LABEL}={name}"]
        self._kubectl.answer([*words, "--wait=false", "--ignore-not-found"])


def _placed(name: str, image: str, rows: Sequence[NodeRow]) -> Placed:
    return Placed(
        name=name,
        image=image,
        port=_FIRST_PORT + secrets.randbelow(_PORTS),
        start_seconds=START_SECONDS,
        cpus=min(_cpus(row.cpus) for row in rows),
        taints=tuple(sorted({key for row in rows for key, _ in row.taints})),
    )


def _cpus(text: str) -> float:
    """Of a quantity such as `2` or `1930m`; 1 where it is not known."""
    found = re.fullmatch(r"([0-9]{1,9})(m?)", text)
    if found is None:
        return 1.0
    return int(found[1]) / 1000 if found[2] else float(found[1])


def _not_free(step: JobStep, rows: Mapping[str, NodeRow], pods: Mapping[str, Sequence[Pod]]) -> str | None:
    """Why a step cannot have its nodes for itself now, or None."""
    for node in step.nodes:
        row = rows.get(node)
        if row is None:
            return f"Kubernetes does not know {node}"
        state = row.state(pods.get(node, ()))
        if not state.in_service:
            return f"{node} is {state.text}: {state.reason or 'no reason given'}"
        if state.busy:
            return f"{node} is busy with other jobs"
    return None


def _output(result: CommandResult) -> Output | None:
    """The log without its last line; None where that is missing."""
    ended = EXIT.status(result.stdout)
    if ended is None:
        return None
    extra = "" if result.exit_status == 0 else f"error: {last_line('', result.stderr)}\n"
    return Output(EXIT.rest(result.stdout) + extra, ended, EXIT.launcher)
