"""What kubectl and Slurm's tools print, as types. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.claims.check import Undetermined
from rackwright.roles.slurm_on_kubernetes.texts import LABEL, TEMPLATE


@dataclass(frozen=True)
class Container:
    """How often it was started again, and when last, as the API has times; empty while it does not run."""

    restarts: int
    started: str


@dataclass(frozen=True)
class Pod:
    """One pod of the namespace."""

    name: str
    daemon: str
    node: str
    template: str
    ready: bool
    containers: Mapping[str, Container]
    waits: str
    """Why a container is not running, e.g. ImagePullBackOff; empty if all run."""


def pods(document: Any) -> tuple[Pod, ...]:  # noqa: ANN401 - JSON
    """`kubectl get pods -o json`; Undetermined where it lacks what a check compares."""
    try:
        return tuple(sorted((_pod(item) for item in document["items"]), key=lambda pod: pod.name))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Undetermined(f"`kubectl get pods` printed unreadable JSON: {error!r}") from error


def _pod(item: Mapping[str, Any]) -> Pod:
    metadata, status = item["metadata"], item["status"]
    states = status.get("containerStatuses", [])
    conditions = {one["type"]: one["status"] for one in status.get("conditions", [])}
    return Pod(
        name=str(metadata["name"]),
        daemon=str(metadata["labels"][LABEL]),
        node=str(item["spec"].get("nodeName", "")),
        template=str((metadata.get("annotations") or {}).get(TEMPLATE, "")),
        ready=conditions.get("Ready") == "True" and "deletionTimestamp" not in metadata,
        containers={
            str(one["name"]): Container(
                int(one["restartCount"]), str(one["state"].get("running", {}).get("startedAt", ""))
            )
            for one in states
        },
        waits=_waits(states),
    )


def _waits(states: Sequence[Mapping[str, Any]]) -> str:
    reasons = [one["state"]["waiting"].get("reason", "") for one in states if "waiting" in one["state"]]
    return ", ".join(dict.fromkeys(filter(None, reasons)))


def greetings(output: str) -> dict[str, str]:
    """Lines `rackwright-job JOBID NODE` of a job's tasks: job by node."""
    found = re.findall(r"^rackwright-job (\d+) (\S+)$", output, re.MULTILINE)
    return {node: job for job, node in found}


def accounted(output: str) -> dict[str, tuple[str, str, str]]:
    """`sacct -X -P -n --format=JobID,State,ExitCode,NodeList`: state, exit code and nodes by job."""
    rows = (line.split("|") for line in output.splitlines())
    return {cells[0]: (cells[1], cells[2], cells[3]) for cells in rows if len(cells) == 4}


def digests(output: str) -> dict[str, str]:
    """`sha256sum FILES`: digest by path."""
    return {path: digest for digest, path in re.findall(r"^([0-9a-f]{64})  (\S+)$", output, re.MULTILINE)}
