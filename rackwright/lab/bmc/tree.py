"""The Redfish tree of one BMC: the document at each path, and what each method does there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from rackwright.lab.bmc import actions, baseboard, chassis, services, sessions, system
from rackwright.lab.bmc.actions import Body, Controller
from rackwright.lab.bmc.refusal import Refusal, bad_request, changed, not_allowed, not_found, unauthorized
from rackwright.lab.bmc.view import CD, CHASSIS, LOG, MANAGER, ROOT, SESSIONS, SYSTEM, Document, View, etag

_ENTRIES = f"{LOG}/Entries"
_FIRMWARE = f"{ROOT}/UpdateService/FirmwareInventory"
_LARGEST = 1 << 20

DOCUMENTS: dict[str, Callable[[View], Document]] = {
    ROOT: services.root,
    f"{ROOT}/Systems": system.systems,
    SYSTEM: system.system,
    f"{SYSTEM}/EthernetInterfaces": system.interfaces,
    f"{SYSTEM}/Storage": system.storages,
    f"{SYSTEM}/Storage/1": system.storage,
    f"{SYSTEM}/Bios": system.bios,
    f"{SYSTEM}/Bios/Settings": system.bios_settings,
    f"{SYSTEM}/SecureBoot": system.secure_boot,
    f"{ROOT}/Managers": baseboard.managers,
    MANAGER: baseboard.manager,
    f"{MANAGER}/EthernetInterfaces": baseboard.interfaces,
    f"{MANAGER}/EthernetInterfaces/1": baseboard.interface,
    f"{MANAGER}/NetworkProtocol": baseboard.network_protocol,
    f"{MANAGER}/VirtualMedia": baseboard.all_media,
    CD: baseboard.cd,
    f"{CD}/Certificates": baseboard.certificates,
    f"{MANAGER}/LogServices": baseboard.log_services,
    LOG: baseboard.log_service,
    f"{ROOT}/Chassis": chassis.all_chassis,
    CHASSIS: chassis.chassis,
    f"{CHASSIS}/Power": chassis.power,
    f"{CHASSIS}/Thermal": chassis.thermal,
    f"{ROOT}/SessionService": services.session_service,
    f"{ROOT}/UpdateService": services.update_service,
    _FIRMWARE: services.inventory,
    f"{ROOT}/TaskService": services.task_service,
    f"{ROOT}/TaskService/Tasks": services.tasks,
    f"{ROOT}/Registries": services.registries,
}
MEMBERS: dict[str, Callable[[View, str], Document | None]] = {
    f"{SYSTEM}/EthernetInterfaces": system.interface,
    system.DRIVES: system.drive,
    f"{CD}/Certificates": baseboard.certificate,
    _ENTRIES: baseboard.entry,
    _FIRMWARE: services.firmware,
}
POSTS: dict[str, Callable[[Controller, Body], None]] = {
    f"{SYSTEM}/Actions/ComputerSystem.Reset": actions.reset,
    f"{SYSTEM}/Bios/Actions/Bios.ResetBios": actions.reset_bios,
    f"{MANAGER}/Actions/Manager.Reset": actions.restart,
    f"{CD}/Actions/VirtualMedia.InsertMedia": actions.insert,
    f"{CD}/Actions/VirtualMedia.EjectMedia": actions.eject,
    f"{LOG}/Actions/LogService.ClearLog": actions.clear_log,
}
PATCHES: dict[str, Callable[[Controller, Body], None]] = {
    SYSTEM: actions.change_system,
    f"{SYSTEM}/Bios/Settings": actions.change_bios,
    f"{SYSTEM}/SecureBoot": actions.change_secure_boot,
    CD: actions.change_medium,
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request; the path is without a slash at its end."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in lower case."""
    body: Body = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """Its answer."""

    status: int
    body: Document | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(bmc: Controller, look: Callable[[], View], account: tuple[str, str], request: Request) -> Answer:
    """Do what a request asks. A mistake is an answer too.

    + look: the machine and its BMC as they are now
    + account: user and password
    """
    try:
        open_to_all = _open_to_all(look, request)
        if open_to_all is not None:
            return open_to_all
        if request.path == SESSIONS and request.method == "POST":
            return _log_in(bmc, account, request.body)
        _check_account(bmc, account, request.headers)
        return _answer(bmc, look, request)
    except Refusal as refusal:
        return Answer(refusal.status, refusal.body, refusal.headers)


def _open_to_all(look: Callable[[], View], request: Request) -> Answer | None:
    """What needs no password."""
    if request.method not in ("GET", "HEAD"):
        return None
    if request.path == "/redfish":
        return Answer(200, services.versions())
    if request.path == ROOT:
        return Answer(200, services.root(look()))
    return Answer(200, services.odata()) if request.path == f"{ROOT}/odata" else None


def _log_in(bmc: Controller, account: tuple[str, str], body: Body) -> Answer:
    given = body.get("UserName"), body.get("Password")
    if not (isinstance(given[0], str) and isinstance(given[1], str)):
        raise bad_request("UserName and Password are missing.", "PropertyMissing")
    if not sessions.same((given[0], given[1]), account):
        raise unauthorized()
    try:
        number, token = bmc.sessions.open(account[0])
    except sessions.TooManySessionsError:
        raise Refusal(503, "SessionLimitExceeded", "All sessions are taken.") from None
    one = bmc.sessions.get(number)
    document = None if one is None else services.session(number, one)
    return Answer(201, document, {"X-Auth-Token": token, "Location": f"{SESSIONS}/{number}"})


def _check_account(bmc: Controller, account: tuple[str, str], headers: Mapping[str, str]) -> None:
    token = headers.get("x-auth-token")
    if token is not None:
        if not bmc.sessions.accepts(token):
            raise unauthorized()
        return
    given = sessions.basic(headers.get("authorization", ""))
    if given is None or not sessions.same(given, account):
        raise unauthorized()


def _answer(bmc: Controller, look: Callable[[], View], request: Request) -> Answer:
    path, parent, name = request.path, *request.path.rpartition("/")[::2]
    reads = _reader(bmc, request)
    allowed = _allowed(path, parent, readable=reads is not None and reads(look()) is not None)
    if not allowed:
        raise not_found(path)
    if request.method not in allowed:
        raise not_allowed(request.method, path, ", ".join(allowed))
    if request.method in ("GET", "HEAD") or (path in PATCHES and request.method == "PATCH"):
        document = reads(look()) if reads is not None else None
        if document is None:
            raise not_found(path)
        if request.method != "PATCH":
            return _read(document, request)
        if request.headers.get("if-match", "*") not in ("*", etag(document)):
            raise changed(path)
        PATCHES[path](bmc, request.body)
        return _read(reads(look()) or document, Request("GET", path)) if reads is not None else Answer(204)
    if request.method == "DELETE":
        return _delete(bmc, parent, name)
    if path == f"{CD}/Certificates":
        number = actions.trust(bmc, request.body)
        return Answer(201, baseboard.certificate(look(), number), {"Location": f"{path}/{number}"})
    POSTS[path](bmc, request.body)
    return Answer(204)


def _read(document: Document, request: Request) -> Answer:
    tag = etag(document)
    if request.headers.get("if-none-match") == tag:
        return Answer(304, None, {"ETag": tag})
    return Answer(200, document | {"@odata.etag": tag}, {"ETag": tag})


def _delete(bmc: Controller, parent: str, name: str) -> Answer:
    if parent == SESSIONS:
        if not bmc.sessions.close(name):
            raise not_found(f"{parent}/{name}")
    else:
        actions.distrust(bmc, name)
    return Answer(204)


def _reader(bmc: Controller, request: Request) -> Callable[[View], Document | None] | None:
    """What makes the document at a path."""
    path, parent, name = request.path, *request.path.rpartition("/")[::2]
    if path in DOCUMENTS:
        return DOCUMENTS[path]
    if path == _ENTRIES:
        skip, top = (_number(request.query, f"${key}", default) for key, default in _PAGES)
        return partial(baseboard.entries, skip=skip, top=top)
    if path == SESSIONS:
        return lambda _: services.sessions(bmc.sessions.numbers())
    if parent == SESSIONS:
        one = bmc.sessions.get(name)
        return None if one is None else lambda _: services.session(name, one)
    member = MEMBERS.get(parent)
    return None if member is None else lambda view: member(view, name)


_PAGES = (("skip", 0), ("top", _LARGEST))


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,6}", text) and text != str(default):
        raise bad_request(f"{name} is a number.", "QueryParameterValueTypeError")
    return int(text)


def _allowed(path: str, parent: str, *, readable: bool) -> tuple[str, ...]:
    """The methods of a path; none where there is nothing."""
    methods = ["GET", "HEAD"] if readable else []
    if path in PATCHES:
        methods.append("PATCH")
    if path in POSTS or path in (SESSIONS, f"{CD}/Certificates"):
        methods.append("POST")
    if readable and parent in (SESSIONS, f"{CD}/Certificates"):
        methods.append("DELETE")
    return tuple(methods)
