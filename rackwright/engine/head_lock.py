"""The lock of a run on a head, so that operators on different machines do not change a cluster at the same time.

A process on the head (rackwright.engine.lock_holder) holds it while our connection lasts and sends signs of
life; the run's journal goes to the head over the same connection. A run that was disconnected, stopped or suspended for
too long takes the lock again, unless another run has had it in the meantime: then it stops.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from rackwright.boundary import Refused, printable, read_json
from rackwright.engine.lock_holder import uptime
from rackwright.errors import ConnectionFailed, RunLocked
from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import NodeRole
from rackwright.node_programs import LOCK_HOLDER, python_command

if TYPE_CHECKING:
    import paramiko

LOCKS = "/run/rackwright"
"""On heads: `<cluster>.lock`, and world-readable `<cluster>.run` with the run that holds it."""
JOURNALS = "/var/lib/rackwright/runs"
SILENT_SECONDS = 30.0
"""A run that is silent for this long loses the lock."""
BEAT_SECONDS = SILENT_SECONDS / 3
_ANSWER_SECONDS = 20.0
_END_SECONDS = 5.0
_ANSWER_MAX_BYTES = 1 << 16


class _NotHere(Exception):  # noqa: N818
    """No lock can be held on a head; the text is the reason."""


def _dial(cluster: Cluster, node: Node, command: str) -> tuple[paramiko.SSHClient, Any]:
    """A connection to a node, and the channel of a command line that its login shell runs."""
    from rackwright.ssh.connection import connect, transport_of  # loads paramiko: not for `plan`
    from rackwright.ssh.transport import start

    client = connect(cluster, node)
    try:
        channel = transport_of(client).open_session(timeout=_ANSWER_SECONDS)
        channel.settimeout(_ANSWER_SECONDS)
        start(channel, command, _ANSWER_SECONDS)
    except BaseException:
        client.close()
        raise
    return client, channel


class _Held:
    """The process on the head, and the connection to it."""

    def __init__(self, cluster: Cluster, node: Node, by: dict[str, Any]) -> None:
        from rackwright.ssh.login_shell import MARK, command_line

        command, program = python_command(LOCK_HOLDER)
        begin = {
            "by": by,
            "cluster": cluster.name,
            "silent_seconds": SILENT_SECONDS,
            "locks": LOCKS,
            "journals": JOURNALS,
        }
        self._unread = b""
        line = command_line(f"exec {command}", sudo=cluster.ssh.become == "sudo")
        self._client, self._channel = _dial(cluster, node, line)
        try:
            self._channel.sendall(program + json.dumps(begin).encode() + b"\n")
            self._read_past(f"{MARK}\n".encode())  # the login shell's greeting
            self.first = self.answer()
        except BaseException:
            self.close()
            raise

    def ask(self, lines: list[str]) -> dict[str, Any]:
        """Send these journal lines and wait until the head has them."""
        self._channel.sendall("".join(f"{line}\n" for line in [*lines, ""]).encode())
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next answer; EOFError if there is none, Refused if it is invalid."""
        found = read_json(self._read_past(b"\n"), _ANSWER_MAX_BYTES)
        if not isinstance(found, dict):
            raise Refused("its answer is not an object")
        return found

    def _read_past(self, end: bytes) -> bytes:
        """Output before `end`; EOFError if `end` does not come, or the output is too long."""
        while end not in self._unread:
            more = self._channel.recv(_ANSWER_MAX_BYTES)
            if not more or len(self._unread) > _ANSWER_MAX_BYTES:
                raise EOFError(self._why())
            self._unread += more
        before, _, self._unread = self._unread.partition(end)
        return before

    def _why(self) -> str:
        holder = b""
        with contextlib.suppress(Exception):
            time.sleep(0.1)  # its last message may arrive after the end of its output
            holder = self._channel.recv_stderr(4096) if self._channel.recv_stderr_ready() else b""
        lines = holder.decode(errors="replace").strip().splitlines()
        return printable(lines[-1], 200) if lines else "the process there exited"

    def close(self) -> None:
        """End the process, by closing its input."""
        self._client.close()


class HeadLock:
    """Held while this is open; a context manager. `node` is None if no head was reachable."""

    def __init__(
        self,
        cluster: Cluster,
        by: dict[str, Any],
        *,
        lost: Callable[[str], None],
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`by`: run, user, host, since and command; `lost` is called, by a thread, if another run has the lock."""
        self._cluster = cluster
        self._by = by
        self._lost = lost
        self._notice = notice
        self.node: str | None = None
        self._held: _Held | None = None
        self._heard = 0.0
        """When the head last answered, on a clock that includes suspends of this machine."""
        self._known = False
        """Whether the head, once it answers, still knows who holds the lock."""
        self._previous: dict[str, Any] | None = None
        self._waiting: list[str] = []
        self._changed = threading.Condition()
        self._ending = False
        self._problem_noted = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Take it on the primary head, or on the first other head that answers; RunLocked if another run has it."""
        heads = sorted(self._cluster.holding(NodeRole.HEAD), key=lambda node: not node.primary)
        reasons = []
        for node in heads:
            try:
                self._take(node)
                break
            except _NotHere as error:
                reasons.append(f"{node.name}: {error}")
        if self.node is None:
            self._notice(
                f"The run holds no lock on a head ({'; '.join(reasons)}); it is protected only by the lock on this machine."
            )
            return self
        if reasons:
            self._notice(f"The run's lock is held on {self.node} ({'; '.join(reasons)}).")
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ending = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        if self._held is not None:
            self._held.close()

    def another_ran_within(self, seconds: float) -> bool:
        """Whether another run may have held the lock in the seconds before it was taken."""
        if self._previous is None or self._previous.get("run") == self._by["run"]:
            return False
        idle = self._previous.get("idle_seconds")
        return isinstance(idle, (int, float)) and idle < seconds + BEAT_SECONDS

    def send(self, run: str, line: str) -> None:
        """Queue a line for a run's journal on the head; returns immediately."""
        if self.node is None:
            return
        with self._changed:
            self._waiting.append(f"{run}\t{line}")
            self._changed.notify()

    def confirm(self, *, now: bool = False) -> None:
        """After a pause that may have cost the lock (e.g. a suspend), wait until that is known.

        Does not wait for an unreachable head: the run continues without it. `now`: ask even if its last answer is recent.
        """
        oldest, deadline = uptime() - (0 if now else SILENT_SECONDS), time.monotonic() + _ANSWER_SECONDS
        if now:
            with self._changed:
                self._changed.notify()
        while self._known and self._heard < oldest and time.monotonic() < deadline:
            time.sleep(0.02)

    def _take(self, node: Node) -> None:
        try:
            held = _Held(self._cluster, node, self._by)
        except ConnectionFailed as error:
            raise _NotHere(error.message.rstrip(".")) from error
        except Exception as error:  # paramiko's, the socket's, or an answer that was refused
            raise _NotHere(printable(str(error) or type(error).__name__, 200)) from error
        if held.first.get("held") is not True:
            held.close()
            if held.first.get("held") is False:
                raise self._locked(node, held.first.get("by"))
            raise _NotHere(printable(str(held.first.get("why")), 200))
        previous = held.first.get("previous")
        self._previous = previous if isinstance(previous, dict) else None
        self._held, self.node = held, node.name
        self._heard, self._known = uptime(), True
        self._report(held.first)

    def _locked(self, node: Node, by: Any) -> RunLocked:  # noqa: ANN401 - what the head answered
        found = by if isinstance(by, dict) else {}
        holder = {
            key: printable(str(found.get(key, "?")), 200)
            for key in ("user", "host", "since", "command", "run")
        }
        return RunLocked(
            f"Cluster {self._cluster.name} is locked on {node.name} by {holder['user']}@{holder['host']} "
            f"(`{holder['command']}`, run {holder['run']}) since {holder['since']}.",
            hint=f"wait for that run to end; see: rackwright runs {self._cluster.path}",
        )

    def _keep(self) -> None:
        """Send queued lines, or a sign of life, until the end."""
        pending: list[str] = []
        while True:
            with self._changed:
                if not self._waiting and not self._ending and (not pending or self._held is None):
                    self._changed.wait(BEAT_SECONDS)
                pending += self._waiting
                self._waiting = []
                ending = self._ending
            if self._sent(pending):
                pending = []
            elif self._held is None and not ending and not self._take_again():
                return
            elif self._held is None and not ending:
                time.sleep(1)
            if ending:
                return

    def _sent(self, lines: list[str]) -> bool:
        if self._held is None:
            return False
        try:
            answer = self._held.ask(lines)
        except Exception:  # noqa: BLE001 - after any error the connection is useless
            self._held.close()
            self._held = None
            return False
        self._heard = uptime()
        self._report(answer)
        return True

    def _take_again(self) -> bool:
        """Reconnect after a lost connection; False if another run has or had the lock."""
        node = self._cluster.by_name[self.node or ""]
        try:
            self._take(node)
        except RunLocked as error:
            self._give_up(error.message)
            return False
        except _NotHere:
            self._known = False
            return True  # the head is unreachable for now: the run continues, and tries again
        if self._previous is not None and self._previous.get("run") != self._by["run"]:
            self._give_up(
                f"run {printable(str(self._previous.get('run')), 60)} had the lock on {node.name} meanwhile"
            )
            return False
        return True

    def _give_up(self, why: str) -> None:
        self._lost(why)
        self._known = False

    def _report(self, answer: dict[str, Any]) -> None:
        problem = answer.get("problem")
        if problem and not self._problem_noted:
            self._problem_noted = True
            self._notice(f"The journal cannot be kept on {self.node}: {printable(str(problem), 200)}.")
