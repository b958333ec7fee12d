"""Changes nodes one after the other or in parallel: drain, change, boot if needed, read back, resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Protocol

from rackwright.bmc.interface import Power
from rackwright.bmc.open import Open
from rackwright.boundary import printable
from rackwright.engine.boots import NotBooted
from rackwright.errors import ExitCode, FirmwareError, RackwrightError
from rackwright.firmware.asking import Asking, Tempo
from rackwright.firmware.service import Service
from rackwright.model.cluster import Node
from rackwright.model.types import NodeRole
from rackwright.ssh.side_by_side import side_by_side

INTERRUPTED = "interrupted"
_LOOK_SECONDS = 0.2
_END_SECONDS = 60.0


@dataclass(frozen=True)
class Hands:
    """What a change of one node works with."""

    asking: Asking
    boot: Callable[[], None]
    notice: Callable[[str], None]
    url_of: Callable[[Path], str] | None = None


class Change(Protocol):
    """What is done to a node that is out of service; returns what is as declared now and was not."""

    def __call__(self, node: Node, hands: Hands) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Outcome:
    """What became of one node."""

    node: str
    ok: bool
    changed: tuple[str, ...] = ()
    error: str | None = None
    hint: str | None = None
    begun: bool = True
    resume: str | None = None
    """What puts it back into service; None: it is not left drained by this run."""


@dataclass
class Maintenance:
    """One run over many nodes, which stops at the first that fails."""

    service: Service
    change: Change
    open: Open
    boot: Callable[[Node, Asking, bool], None]
    """Boots a node; True: it was on."""
    notice: Callable[[str, str], None] = lambda node, text: None
    record: Callable[[str, dict[str, object]], None] = lambda event, data: None
    """Writes to the journal, on the disk when it returns."""
    broken_off: Callable[[], str | None] = lambda: None
    """Why nothing more may be begun."""
    around: Callable[[Iterable[str]], AbstractContextManager[None]] = lambda nodes: nullcontext()
    url_of: Callable[[Path], str] | None = None
    tempo: Tempo = field(default_factory=Tempo)
    stop: Event = field(default_factory=Event)
    give_up: Callable[[], None] = lambda: None
    """Has boots that are waited for in other threads end their wait."""

    def run(self, nodes: Sequence[Node], at_once: int) -> tuple[Outcome, ...]:
        """Every node's outcome, in the order in which they were to be done."""
        outcomes: list[Outcome] = []
        for wave in waves(nodes, at_once):
            why = self._why_not(outcomes)
            if why is not None:
                outcomes += [
                    Outcome(node.name, False, error=f"not started: {why}", begun=False) for node in wave
                ]
                continue
            with self.around([node.name for node in wave]):
                outcomes += self._wave(wave)
        return tuple(outcomes)

    def _why_not(self, outcomes: Sequence[Outcome]) -> str | None:
        if self.stop.is_set():
            return "the run was interrupted"
        failed = next((one.node for one in outcomes if not one.ok), None)
        return f"{failed} failed" if failed is not None else self.broken_off()

    def _wave(self, wave: Sequence[Node]) -> list[Outcome]:
        if len(wave) == 1:
            return [self._one(wave[0])]
        with side_by_side(len(wave)) as threads:
            futures = [threads.submit(self._one, node) for node in wave]
            try:
                while not all(future.done() for future in futures):
                    time.sleep(_LOOK_SECONDS)
            except KeyboardInterrupt:
                self._interrupted(futures)
            return [
                future.result() if future.done() else self._failed(node, INTERRUPTED, None)
                for node, future in zip(wave, futures, strict=True)
            ]

    def _interrupted(self, futures: Sequence[Future[Outcome]]) -> None:
        self.stop.set()
        self.give_up()
        end = time.monotonic() + _END_SECONDS
        while not all(future.done() for future in futures) and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)

    def _one(self, node: Node) -> Outcome:
        asking = Asking(node, self.open, self.tempo, self.stop)
        try:
            changed = self._done(node, asking)
        except KeyboardInterrupt:
            self.stop.set()
            again = "its BMC finishes what it has started; run the same command again"
            return self._failed(node, INTERRUPTED, again)
        except RackwrightError as error:
            return self._failed(node, error.message, error.hint)
        except NotBooted as error:
            return self._failed(node, f"{error}.", "see its console with `rackwright bmc console FILE NODE`")
        except Exception as error:  # noqa: BLE001 - it ends this node alone
            return self._failed(node, printable(f"{type(error).__name__}: {error}", 300), None)
        finally:
            asking.close()
        self.record("node", {"node": node.name, "ok": True, "changed": len(changed), "error": None})
        return Outcome(node.name, True, changed, resume=self.service.resume_command(node.name))

    def _done(self, node: Node, asking: Asking) -> tuple[str, ...]:
        power = asking.ask(lambda client: client.power())
        if power not in (Power.ON, Power.OFF):
            raise FirmwareError(
                f"its power is {power.value}; it was not changed.", hint="run again in a minute"
            )
        on = power is Power.ON
        self.notice(node.name, "waiting for its jobs to end" if on else "is off")
        self.service.take(node, on=on)
        self.record("firmware", {"nodes": [node.name]})
        hands = Hands(
            asking,
            lambda: self.boot(node, asking, on),
            lambda text: self.notice(node.name, text),
            self.url_of,
        )
        changed = self.change(node, hands)
        self.service.give_back(node, on=on)
        return changed

    def _failed(self, node: Node, error: str, hint: str | None) -> Outcome:
        self.record("node", {"node": node.name, "ok": False, "changed": 0, "error": error})
        return Outcome(node.name, False, (), error, hint, resume=self.service.resume_command(node.name))


def waves(nodes: Sequence[Node], at_once: int) -> Iterator[tuple[Node, ...]]:
    """This number of nodes at once; each head alone, after the others."""
    others = [node for node in nodes if not node.holds(NodeRole.HEAD)]
    for start in range(0, len(others), at_once):
        yield tuple(others[start : start + at_once])
    yield from ((node,) for node in nodes if node.holds(NodeRole.HEAD))


def was_interrupted(outcomes: Iterable[Outcome]) -> bool:
    """Whether Ctrl-C ended the run."""
    return any((one.error or "").startswith(INTERRUPTED) for one in outcomes)


def exit_code(outcomes: Iterable[Outcome]) -> ExitCode:
    """1 where a node failed or was not begun."""
    return ExitCode.CLEAN if all(one.ok for one in outcomes) else ExitCode.ERROR
