"""Where the pods of a job leave lines in the journals of nodes, from what the API server knows of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rackwright.boundary import printable
from rackwright.errors import WorkloadError
from rackwright.workload.protocol import JobTrace

UNITS = ("kubelet.service", "containerd.service")
"""Those that write about pods; what containers print is in files of the kubelet's, not in the journal."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENDED = ("Succeeded", "Failed")


class Unreadable(Exception):  # noqa: N818 - becomes the reason of an error
    """Not a list of pods."""


@dataclass(frozen=True)
class JobName:
    """A pod, or a Job."""

    namespace: str
    name: str


def parsed(job: str) -> JobName:
    """WorkloadError for anything but `namespace/name`."""
    namespace, slash, name = job.partition("/")
    if not slash and job.isdigit():  # how other managers name theirs
        raise WorkloadError(f"Kubernetes does not know job {job}.", hint="e.g. --job team-a/train-7")
    if not slash or not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
        raise WorkloadError(
            f"{printable(job, 60)} is not a pod or Job of Kubernetes.", hint="e.g. team-a/train-7"
        )
    return JobName(namespace, name)


def questions(job: JobName) -> Iterable[list[str]]:
    """Arguments of kubectl: the pod of this name, then the pods of the Job; lists, which may be empty."""
    for selector in (f"--field-selector=metadata.name={job.name}", f"-ljob-name={job.name}"):
        yield ["get", "pods", "-n", job.namespace, selector, "-o", "json"]


def trace(job: str, answer: Any, known: Collection[str], servers: Sequence[str]) -> JobTrace | None:  # noqa: ANN401
    """Of the pods in the answer; None where there are none, Unreadable for anything but a list of pods."""
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Unreadable("it is not a list of pods")
    if not items:
        return None
    metadata = [_mapping(item, "metadata") for item in items]
    status = [_mapping(item, "status") for item in items]
    uids = [str(one.get("uid")) for one in metadata]
    names = [(str(one.get("namespace")), str(one.get("name"))) for one in metadata]
    if not all(map(_UID.fullmatch, uids)) or not all(
        _NAME.fullmatch(part) for name in names for part in name
    ):
        raise Unreadable("a pod has no name or uid")
    nodes = {str(node) for item in items if (node := _mapping(item, "spec").get("nodeName"))}
    started = [at for one in status if (at := _time(one.get("startTime"))) is not None]
    ended = [_ended(one) for one in status]
    created = [at for one in metadata if (at := _time(one.get("creationTimestamp"))) is not None]
    if not created:
        raise Unreadable("a pod has no time of its creation")
    return JobTrace(
        id=job,
        nodes=tuple(name for name in known if name in nodes),
        strangers=tuple(printable(name, 100) for name in sorted(nodes) if name not in known),
        servers=tuple(servers),
        submitted=min(created),
        started=min(started, default=None),
        ended=max(at for at in ended if at is not None) if all(at is not None for at in ended) else None,
        units=UNITS,
        cgroup=_cgroup(uids),
        named=_named(names, uids),
    )


def _cgroup(uids: Sequence[str]) -> str:
    """`kubepods-burstable-pod<uid>.slice` with systemd's driver, where dashes become underscores; else `pod<uid>`."""
    either = "|".join(form for uid in uids for form in (re.escape(uid), re.escape(uid.replace("-", "_"))))
    return rf"pod(?:{either})(?:\.slice)?(?:[/:]|$)"


def _named(names: Sequence[tuple[str, str]], uids: Sequence[str]) -> str:
    """`pod="team-a/train-7"`, `"train-7_team-a(uid)"`, and its uid."""
    forms = [re.escape(f"{space}/{name}") for space, name in names]
    forms += [re.escape(f"{name}_{space}") for space, name in names]
    return rf"(?<![a-z0-9.-])(?:{'|'.join(forms)})(?![a-z0-9-])|{'|'.join(map(re.escape, uids))}"


def _ended(status: dict[str, Any]) -> float | None:
    if status.get("phase") not in _ENDED:
        return None
    found: list[float] = []
    for container in status.get("containerStatuses") or ():
        state = _mapping(_mapping(container, "state"), "terminated") if isinstance(container, dict) else {}
        if (at := _time(state.get("finishedAt"))) is not None:
            found.append(at)
    return max(found, default=_time(status.get("startTime")))


def _mapping(item: dict[str, Any], key: str) -> dict[str, Any]:
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def _time(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None
