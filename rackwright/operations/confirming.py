"""Control side of a guarded change: a new connection that works confirms it; otherwise the node rolls back."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from pyinfra import logger

from rackwright.boundary import printable
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.ssh import TIMED_OUT

ECHO_BYTES = 128 * 1024
"""Sent to the node and back: more than one packet of any MTU, and more than a window."""
_AGAIN_SECONDS = 1.0
_CONFIRMING_SECONDS = 3.0
"""Kept back for the confirmation itself: a probe is not repeated any more when less time is left."""
_LINES_TEXT_MAX = 600
_PROBE_FAILED = "the probe failed: "


class Connection(Protocol):
    """A connection that was opened for one purpose."""

    def run(self, command: str, stdin: str, timeout: float) -> CommandResult:
        """Run a command as root; ConnectionFailed when the connection is lost."""

    def close(self) -> None:
        """Close it."""


class Reaches(Protocol):
    """What a connector of rackwright offers beside pyinfra's interface."""

    failure: str | None

    def another(self, timeout: float) -> Connection:
        """A new connection to the node; ConnectionFailed where none is open within `timeout` seconds."""

    def go_on_with(self, connection: Connection) -> None:
        """Use it from now on: the one before may be dead without anyone having noticed."""


@dataclass(frozen=True)
class Armed:
    """A change that a node is making, and undoes in `seconds`."""

    key: str
    seconds: int
    paths: tuple[str, ...]
    program: str
    probe: str | None
    grace: int = 60
    """Seconds that a node may take longer than armed to be back."""


@dataclass(frozen=True)
class Outcome:
    """`rackwright-rollback state`."""

    phase: str = ""
    result: str = ""
    why: str = ""
    """What made the node restore itself: `unconfirmed`, `failed`, `boot`."""
    seconds: str = ""
    """From the change to its end, of one boot."""
    restored: str = ""
    failed: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    restoring: tuple[str, ...] = ()


def parse_state(text: str) -> Outcome:
    """Read what the node's program printed; unknown lines are left out."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        found.setdefault(name, []).append(printable(rest, _LINES_TEXT_MAX))

    def last(name: str) -> str:
        return found.get(name, [""])[-1]

    return Outcome(
        phase=last("phase"),
        result=last("result"),
        why=last("why"),
        seconds=last("seconds"),
        restored=last("restored"),
        failed=tuple(found.get("failed", ())),
        output=tuple(found.get("output", ())),
        restoring=tuple(found.get("restoring", ())),
    )


class _OverError(Exception):
    """The change is over on the node, or has to be: the rest of the time would change nothing."""


@dataclass
class _Confirmation:
    """One attempt to confirm a change within its time."""

    armed: Armed
    reaches: Reaches
    deadline: float
    reason: str = "no new connection could be opened in time"
    confirmed: bool = False
    """The node has it on record, although its answer may have been lost."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = field(default=time.sleep)

    @property
    def left(self) -> float:
        return self.deadline - self.clock()

    def run(self) -> bool:
        """Whether the change was confirmed; `reason` is why not."""
        while self.left > 0:
            try:
                self._await_result()
                if self.confirmed:
                    self.reaches.go_on_with(self.reaches.another(max(self.left, 1)))
                    return True
                if self._prove():
                    return True
            except _OverError:
                return False
            except ConnectionFailed as error:
                self.reason = error.message
            self.sleep(min(_AGAIN_SECONDS, max(self.left, 0)))
        return False

    def _await_result(self) -> None:
        """Return when the change is in force; a connection opened before that would prove nothing."""
        connection = self.reaches.another(self.left)
        try:
            seconds = max(1, int(self.left))
            command = f"{self.armed.program} await {self.armed.key} {seconds}"
            state = parse_state(connection.run(command, "", self.left + 1).stdout)
            if state.phase == "confirmed":
                self.confirmed = True
                return
            if state.phase != "armed":  # put back already: why is known from the attempts before
                raise _OverError
            if state.result not in ("", "0"):
                self.reason = f"activating it failed with status {state.result}: {_last_lines(state.output)}"
                self._restore_now(connection, "failed")
                raise _OverError
            if not state.result:
                self.reason = "activating it took too long"
                raise ConnectionFailed(self.reason)
        finally:
            connection.close()

    def _restore_now(self, connection: Connection, why: str) -> None:
        """Under systemd, since this connection may end by it."""
        command = (
            f"systemd-run --quiet --collect --no-block {self.armed.program} restore {self.armed.key} {why}"
        )
        connection.run(command, "", min(30.0, max(self.left, 5.0)))

    def _prove(self) -> bool:
        connection = self.reaches.another(self.left)
        kept = False
        try:
            sent = random.randbytes(ECHO_BYTES // 2).hex()
            echoed = connection.run("cat", sent, max(self.left, 1))
            if echoed.stdout != sent:
                self.reason = f"a new connection opened, but {ECHO_BYTES // 1024} KiB did not get through and back: check the MTU"
                return False
            if not self._probed(connection):
                return False
            done = connection.run(f"{self.armed.program} confirm {self.armed.key}", "", max(self.left, 5))
            if done.exit_status != 0:
                self.reason = (
                    f"the node refused the confirmation: {printable(done.stderr.strip(), _LINES_TEXT_MAX)}"
                )
                return False
            self.reaches.go_on_with(connection)
            kept = True
            return True
        finally:
            if not kept:
                connection.close()

    def _probed(self, connection: Connection) -> bool:
        """Probe repeatedly: neighbours, switch ports and daemons need their time."""
        if self.armed.probe is None:
            return True
        while True:
            done = connection.run(self.armed.probe, "", max(self.left, 1))
            if done.exit_status == 0:
                return True
            if done.exit_status != TIMED_OUT or not self.reason.startswith(_PROBE_FAILED):
                answer = done.stdout.strip() or done.stderr.strip()
                self.reason = f"{_PROBE_FAILED}{_last_lines(tuple(answer.splitlines()))}"
            if self.left <= _CONFIRMING_SECONDS:
                self._restore_now(connection, "unconfirmed")
                raise _OverError
            self.sleep(_AGAIN_SECONDS)


def confirm(state: object, host: Any, armed: Armed) -> bool:  # noqa: ANN401 - pyinfra's Host, of the driver's side
    """Confirm a change over a new connection; False if the node has rolled back, after reporting it.

    pyinfra takes False as this host's failure, and an exception for a mistake in the program.
    """
    reaches = cast(Reaches, host.connector)
    began = time.monotonic()
    attempt = _Confirmation(armed, reaches, began + armed.seconds)
    if attempt.run():
        return True
    after = _after(armed, reaches, began + armed.seconds + armed.grace)
    reaches.failure = outcome(armed, attempt.reason, after)
    logger.error(f"{host.print_prefix}{reaches.failure}")
    return False


def _after(armed: Armed, reaches: Reaches, deadline: float) -> Outcome | None:
    """What became of the change, once the node is back; None where it does not come back."""
    while (left := deadline - time.monotonic()) > 0:
        try:
            connection = reaches.another(left)
            try:
                found = connection.run(f"{armed.program} state {armed.key}", "", max(left, 1))
            finally:
                connection.close()
            state = parse_state(found.stdout)
            if state.phase in ("restored", "confirmed"):
                return state
        except ConnectionFailed:
            pass
        time.sleep(_AGAIN_SECONDS)
    return None


def outcome(armed: Armed, reason: str, after: Outcome | None) -> str:
    """The operator's sentence about a change that was not confirmed."""
    what = f"the change of {armed.key} was not confirmed ({reason})"
    paths = ", ".join(armed.paths) or "no files"
    if after is None:
        return (
            f"{what}, and the node is unreachable, so the result is unknown. It should have restored {paths} "
            f"{armed.seconds} s after the change began; on its console run: {armed.program} state {armed.key}"
        )
    if after.phase == "confirmed":
        return f"{what}, but the node has recorded the confirmation: run again to see what is left to do"
    when = "when it booted" if after.why == "boot" else f"after {after.seconds} s"
    text = f"{what}; the node restored itself {when}: {paths}"
    if after.failed:
        text += f". Not restored: {'; '.join(after.failed)}"
    if after.restored not in ("", "0"):
        text += (
            f". Activating the old files failed with status {after.restored}: {_last_lines(after.restoring)}"
        )
    return text


def _last_lines(lines: tuple[str, ...]) -> str:
    return printable(" / ".join(lines[-5:]), _LINES_TEXT_MAX) or "no output"
