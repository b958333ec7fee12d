"""The head's answers to agents: identifies an agent, and decides whether and with what its machine may be written.

Every answer follows from the node's record, which is on disk before the answer is sent.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.boundary import Refused, printable
from rackwright.errors import RackwrightError
from rackwright.install import erasure, erasure_certificate, steady
from rackwright.install.erasure import Erasure
from rackwright.install.image import RootImage
from rackwright.install.inventory import Inventory, read_inventory
from rackwright.install.record import Journal, Record
from rackwright.install.states import UNDER_WAY, WRITING, State
from rackwright.install.tokens import digest, matches
from rackwright.install.verdict import Verdict, judge
from rackwright.model.cluster import Node

POLL_SECONDS = 5
_BEFORE_WRITING = (State.DISCOVERED, State.INVENTORIED, State.HELD, State.APPROVED, *WRITING)
"""States in which an agent may send its inventory; an approved one that asks again never received the answer."""
Answer = tuple[int, dict[str, Any]]
_LATER: Answer = (503, {"error": "another run is handling its node: run the same command for it again"})
_NO_TURN: Answer = (
    200,
    {"action": "wait", "reasons": ["waiting for other nodes"], "seconds": POLL_SECONDS},
)
_SESSION = re.compile(r"[0-9a-f]{48}")
_HOST_KEY_MAX = 1000
_ED25519 = "ssh-ed25519"
_ED25519_BLOB = b"\0\0\0\x0b" + _ED25519.encode() + b"\0\0\0\x20"
"""Bytes before the 32 bytes of a public key (RFC 8709)."""


@dataclass(frozen=True)
class Case:
    """One node of a run: its journal, its order, and its image."""

    node: Node
    journal: Journal
    orders: Callable[[Verdict], dict[str, Any]]
    """The `install` object of the protocol."""
    image: RootImage | None
    media: dict[str, Path] = field(default_factory=dict)
    """Server path to file: what its BMC downloads."""
    hand_over: Callable[[Verdict], list[dict[str, Any]]] | None = None
    """If the distribution's installer follows the agent: the approved disks, as in the journal."""
    mode: str = "install"
    """Id of the run. Nodes that another command is installing are left to it."""
    waits: Callable[[], None] = lambda: None
    """Called when the node goes on hold: another node may take its turn."""
    may_go_on: Callable[[], bool] = lambda: True
    """Whether a node that was on hold has a turn again."""


class Desk:
    """Answers agents; one instance for all nodes of a run, thread-safe."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}
        self._heard: dict[str, float] = {}
        self.of_other_runs: frozenset[str] = frozenset()
        """Digests of tokens and sessions of active nodes outside this run: their agents must wait."""

    def open(self, case: Case) -> None:
        """Answer the agent of one more node."""
        self._cases[case.node.name] = case

    def close(self, node: str) -> None:
        """Stop answering it."""
        self._cases.pop(node, None)

    def heard(self, node: str) -> float:
        """When the node's agent last called, in seconds of time.monotonic(); 0: never."""
        return self._heard.get(node, 0.0)

    def media(self, path: str) -> Path | None:
        """The file for a random path."""
        for case in list(self._cases.values()):
            if path in case.media:
                return case.media[path]
        return None

    def image_of(self, session: str) -> RootImage | None:
        """The image for the holder of a session, while its node is being installed."""
        case = self._holder(session)
        record = None if case is None else case.journal.record
        if case is None or record is None or record.state is not State.INSTALLING or record.mode != case.mode:
            return None
        self._heard[case.node.name] = time.monotonic()
        same = case.image is not None and case.image.sha256 == record.image
        return case.image if same else None  # not one built after the agent got its order

    def answer(self, path: str, token: str, body: Mapping[str, Any]) -> Answer:
        """The answer to one call."""
        if digest(token) in self.of_other_runs:
            return _LATER
        if path == "/v1/hello":
            return self._hello(token, body)
        case = self._holder(token)
        if case is None:
            return 403, {"error": "no session of this run"}
        if case.journal.record.mode != case.mode:
            return _LATER
        self._heard[case.node.name] = time.monotonic()
        call = {
            "/v1/inventory": self._inventory,
            "/v1/progress": self._progress,
            "/v1/done": self._done,
            "/v1/failed": self._failed,
        }.get(path)
        return (404, {"error": "unknown call in this version"}) if call is None else call(case, body)

    def _holder(self, session: str) -> Case | None:
        return next(
            (case for case in list(self._cases.values()) if matches(session, case.journal.record.session)),
            None,
        )

    def _hello(self, token: str, body: Mapping[str, Any]) -> Answer:
        session = body.get("session")
        if not isinstance(session, str) or not _SESSION.fullmatch(session):
            return 400, {"error": "a session must be 48 hexadecimal digits"}
        for case in list(self._cases.values()):
            with case.journal.changing() as record:
                known = record.state is State.DISCOVERED and matches(session, record.session)
                if not known and not matches(token, record.token):
                    continue
                if record.mode != case.mode:
                    return _LATER
                self._heard[case.node.name] = time.monotonic()
                if known:
                    return 200, {"clock": time.time()}  # the first answer was lost
                if record.state is not State.ARMED or record.token_until <= steady.now():
                    break
                serial = printable(str(body.get("serial") or "no serial number"), 64)
                # spent in the same journal line that admits the agent
                case.journal.move(State.DISCOVERED, f"machine {serial}", token="", session=digest(session))
                return 200, {"clock": time.time()}
        return 403, {"error": "the token is unknown, already used or expired"}

    def _inventory(self, case: Case, body: Mapping[str, Any]) -> Answer:
        try:
            found = read_inventory(body)
        except Refused as refused:
            return self._stop(case, str(refused))
        with case.journal.changing() as record:
            if record.state is State.HANDED_OVER:  # the agent never received the answer
                return _handed_over()
            # `answers`: the session belongs to the installer, which sends no inventory
            if record.state not in _BEFORE_WRITING or record.answers:
                return 409, {"error": f"the node is {record.state}"}
            seen = found.model_dump(mode="json", by_alias=True, exclude={"clock"})
            if record.state is State.HELD and seen == record.inventory:
                verdict = _verdict(case.node, found, record)
                if not verdict.approved:
                    return _wait(verdict)
                if not case.may_go_on():
                    return _NO_TURN
            count = f"{len(found.disks)} disks, {len(found.nics)} ports"
            case.journal.move(State.INVENTORIED, count, inventory=seen)
            if record.mode == "discover":
                case.journal.move(State.SURVEYED, "the inventory is in the state folder", session="")
                return 200, {"action": "off", "reasons": ["discovered"]}
            return self._judged(case, found)

    def _judged(self, case: Case, found: Inventory) -> Answer:
        record = case.journal.record
        verdict = _verdict(case.node, found, record)
        if verdict.approved:
            if not case.may_go_on():
                return _NO_TURN
            case.journal.move(State.APPROVED, held={})
            if isinstance(verdict, Erasure):
                listed = ", ".join(disk.serial or disk.path for disk in verdict.disks)
                case.journal.move(State.ERASING, f"disks {listed}", phase="erase", percent=0)
                return 200, {"action": "erase", "erase": erasure.order(verdict, record.run)}
            disks = ", ".join(one.serial for one in verdict.chosen) or "memory"
            try:
                if case.hand_over is not None:
                    approved = case.hand_over(verdict)
                    case.journal.move(State.HANDED_OVER, f"for disks {disks}", disks=approved)
                    return _handed_over()
                orders = case.orders(verdict)
            except RackwrightError as error:
                return self._stop(case, error.message)
            image = "" if case.image is None else case.image.sha256
            case.journal.move(State.INSTALLING, f"on {disks}", phase="partition", percent=0, image=image)
            diskless = case.node.install is not None and case.node.install.diskless
            return 200, {"action": "ramdisk" if diskless else "install", "install": orders}
        waiting = {serial: list(signs) for serial, signs in verdict.unconfirmed.items()}
        case.journal.move(State.HELD, "; ".join(verdict.reasons), held=waiting)
        case.waits()
        return _wait(verdict)

    def _progress(self, case: Case, body: Mapping[str, Any]) -> Answer:
        percent, phase = body.get("percent"), printable(str(body.get("phase") or ""), 40)
        if type(percent) is not int or not 0 <= percent <= 100:
            return 400, {"error": "percent must be a whole number from 0 to 100"}
        with case.journal.changing() as record:
            if record.state not in WRITING:
                return 409, {"error": f"the node is {record.state}"}
            if (record.phase, record.percent) != (phase, percent):
                case.journal.note(phase=phase, percent=percent)
        return 200, {}

    def _done(self, case: Case, body: Mapping[str, Any]) -> Answer:
        with case.journal.changing() as record:
            if record.state not in WRITING or body.get("run") != record.run:
                return 409, {"error": f"the node is {record.state}, in run {record.run}"}
            if record.state is State.ERASING:
                return self._erased(case, record, body)
            host_key = _host_key(body.get("host_keys"))
            if host_key is None:
                return self._stop(case, "its new host key is not an ed25519 key")
            case.journal.move(State.INSTALLED, "", host_key=host_key, session="", confirmed={}, percent=100)
            return 200, {}

    def _erased(self, case: Case, record: Record, body: Mapping[str, Any]) -> Answer:
        found = Inventory.model_validate(record.inventory)
        verdict = erasure.judge(case.node, found, record)
        try:
            reports = erasure.read_report(body)
        except Refused as refused:
            return self._stop(case, str(refused))
        made = erasure_certificate.make(verdict, found, record, reports)
        path = erasure_certificate.write(case.journal.folder, made)  # before the state that implies it exists
        if wrong := erasure_certificate.problems(made):
            return self._stop(case, f"not erased: {'; '.join(wrong)}; see {path}")
        count = f"{len(made['disks'])} disks erased and verified"
        case.journal.move(State.ERASED, count, session="", confirmed={}, percent=100)
        return 200, {}

    def _failed(self, case: Case, body: Mapping[str, Any]) -> Answer:
        phase = printable(str(body.get("phase") or ""), 40)
        reason = printable(str(body.get("error") or "no reason given"), 600)
        return self._stop(case, f"{phase}: {reason}" if phase else reason)

    def _stop(self, case: Case, reason: str) -> Answer:
        with case.journal.changing() as record:
            if record.state not in UNDER_WAY:
                return 409, {"error": f"the node is {record.state}"}
            case.journal.move(State.FAILED, reason)
        return 200, {"action": "off", "reasons": [reason]}


def _verdict(node: Node, found: Inventory, record: Record) -> Verdict | Erasure:
    if record.mode == erasure.MODE:
        return erasure.judge(node, found, record)
    return judge(node, found, record.serial, record.confirmed, record.uuid)


def _handed_over() -> Answer:
    return 200, {"action": "off", "reasons": ["approved: the distribution's installer boots next"]}


def _wait(verdict: Verdict | Erasure) -> Answer:
    return 200, {"action": "wait", "reasons": verdict.reasons, "seconds": POLL_SECONDS}


def _host_key(keys: Any) -> str | None:  # noqa: ANN401 - JSON data
    """The public key in known_hosts form, without its comment; None unless it is an ed25519 key."""
    given = keys.get("ed25519") if isinstance(keys, dict) else None
    words = given[:_HOST_KEY_MAX].split() if isinstance(given, str) else []
    try:
        blob = base64.b64decode(words[1] if len(words) > 1 else "", validate=True)
    except ValueError:
        return None
    good = words[:1] == [_ED25519] and len(blob) == len(_ED25519_BLOB) + 32 and blob.startswith(_ED25519_BLOB)
    return f"{_ED25519} {words[1]}" if good else None
