"""Tasks of a BMC, e.g. for updates, from Redfish documents."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from rackwright.bmc.documents import Document, last_part, link, listed, number, sub, text
from rackwright.bmc.redfish_http import Answer
from rackwright.bmc.redfish_tree import Tree
from rackwright.bmc.target import ResourceBroken, ResourceMissing
from rackwright.bmc.updates import TaskState, UpdateTask
from rackwright.boundary import printable
from rackwright.errors import BmcError

_RUNNING = {"new", "starting", "running", "stopping", "cancelling", "service"}
_WAITING = {"pending", "suspended"}
_FAILED = {"exception", "killed", "cancelled", "interrupted"}
_SCHEDULED = re.compile(r"(?i)\bscheduled\b|\.JCP001$")
"""An iDRAC job that waits for a boot is `Starting`; its message contains that it is scheduled."""
_BAD_HEALTH = {"critical"}
_TASKS_MAX = 64
_MESSAGES_MAX = 5
_TRIES = 150
_PAUSE_SECONDS = 2.0
_ILO = {
    "idle": TaskState.NOT_KNOWN,
    "complete": TaskState.DONE,
    "error": TaskState.FAILED,
    **dict.fromkeys(("uploading", "verifying", "writing", "updating"), TaskState.RUNNING),
}


def is_task(doc: Document) -> bool:
    """Whether a document is a task, not the remains of a finished one."""
    return text(doc, "TaskState") is not None


def task_of(doc: Document) -> UpdateTask:
    """The state in a task's document."""
    state = (text(doc, "TaskState") or "").lower()
    percent = number(doc, "PercentComplete")
    messages = messages_of(doc)
    health = (text(doc, "TaskStatus") or "").lower()
    job = (text(sub(doc, "Oem", "Dell"), "JobState") or "").lower()
    if state == "completed":
        found = TaskState.FAILED if health in _BAD_HEALTH else TaskState.DONE
    elif state in _FAILED:
        found = TaskState.FAILED
    elif state in _WAITING or (state == "starting" and (job == "scheduled" or _scheduled(doc))):
        found = TaskState.WAITING
    else:
        found = TaskState.RUNNING if state in _RUNNING else TaskState.NOT_KNOWN
    name = text(doc, "@odata.id")
    return UpdateTask(found, name, None if percent is None else int(percent), messages)


def messages_of(doc: Document) -> tuple[str, ...]:
    """A task's messages; without text, the id and its arguments."""
    found = []
    for one in listed(doc, "Messages"):
        words = text(one, "Message")
        if words is None and (identity := text(one, "MessageId")) is not None:
            given = one.get("MessageArgs")
            arguments = [str(value) for value in given] if isinstance(given, list) else []
            words = f"{identity}({', '.join(arguments)})"
        if words is not None:
            found.append(words.rstrip(". "))
    return tuple(found[-_MESSAGES_MAX:])


def _scheduled(doc: Document) -> bool:
    last = list(listed(doc, "Messages"))[-1:]
    return any(_SCHEDULED.search(text(one, name) or "") for one in last for name in ("Message", "MessageId"))


def begun(answer: Answer) -> str | None:
    """The task in the answer to an update request; None if there is none."""
    location = (
        urlsplit(answer.header("Location")).path or None
    )  # some put another address of themselves there
    if not answer.content.strip():
        return location
    try:
        doc = answer.json()
    except BmcError:
        return location
    if isinstance(doc, dict) and is_task(doc) and text(doc, "@odata.id") is not None:
        return text(doc, "@odata.id")
    return location if location is not None else _task_named_in(doc)


def _task_named_in(doc: object) -> str | None:
    """Supermicro and others put the task's path into a message."""
    if not isinstance(doc, dict):
        return None
    infos = [*listed(doc, "@Message.ExtendedInfo"), *listed(sub(doc, "error"), "@Message.ExtendedInfo")]
    for one in infos:
        given = one.get("MessageArgs")
        for value in given if isinstance(given, list) else ():
            if isinstance(value, str) and "/TaskService/Tasks/" in value:
                return value
    return None


def read_task(tree: Tree, name: str) -> UpdateTask:
    """A task, or what its monitor answers."""
    try:
        answer = tree.session.exchange("GET", name, judged=False)
    except ResourceMissing:
        return UpdateTask(TaskState.NOT_KNOWN, name)
    doc = answer.json() if answer.content.strip() else {}
    doc = doc if isinstance(doc, dict) else {}
    if is_task(doc):
        return task_of({"@odata.id": name, **doc})
    if answer.status_code == 202:
        return UpdateTask(TaskState.RUNNING, name)
    if answer.status_code >= 400:
        words = text(sub(doc, "error"), "message") or f"HTTP status {answer.status_code}"
        infos = (text(one, "Message") for one in listed(sub(doc, "error"), "@Message.ExtendedInfo"))
        return UpdateTask(TaskState.FAILED, name, None, (next(filter(None, infos), words),))
    return UpdateTask(TaskState.DONE, name, 100)


def await_task(tree: Tree, name: str | None, what: str) -> None:
    """Return once a task has ended or is unknown; BmcError if it failed, or has not ended within some minutes.

    + name: None if the BMC did not create a task
    + what: purpose of the task, e.g. `insert virtual media`
    """
    if name is None:
        return
    state: str = TaskState.NOT_KNOWN
    for _ in range(_TRIES):
        try:
            found = read_task(tree, name)
        except ResourceBroken:
            state = "not readable"
        else:
            state = found.state
            if found.state is TaskState.FAILED:
                why = "; ".join(found.messages) or "no reason given"
                raise tree.session.target.cannot(f"{what}: its task {printable(name, 120)} failed: {why}")
            if found.state in (TaskState.DONE, TaskState.NOT_KNOWN):
                return
        if not tree.session.pause(_PAUSE_SECONDS):
            break
    raise tree.session.target.cannot(
        f"{what}: its task {printable(name, 120)} is {state} and does not end",
        hint="reset the BMC itself, e.g. in its web interface, and run again",
    )


def read_without_task(service: Document) -> UpdateTask:
    """An update without a task: HPE's iLO reports its progress in the update service."""
    own = sub(service, "Oem", "Hpe")
    state = (text(own, "State") or "").lower()
    percent = number(own, "FlashProgressPercent")
    identity = text(sub(own, "Result"), "MessageId")
    return UpdateTask(
        _ILO.get(state, TaskState.NOT_KNOWN),
        None,
        None if percent is None else int(percent),
        () if identity is None else (identity,),
    )


def tasks_under_way(tree: Tree) -> list[UpdateTask]:
    """Tasks that are running or waiting for a boot."""
    service = tree.optional(link(tree.session.root(), "Tasks"))
    found = [
        task_of(doc)
        for doc in tree.members(link(service, "Tasks"), _TASKS_MAX)
        if last_part(text(doc, "@odata.id") or "")
    ]
    return [one for one in found if one.state in (TaskState.RUNNING, TaskState.WAITING)]
