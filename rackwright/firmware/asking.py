"""Queries one BMC that may be restarting: reads are retried for a while, changes are never sent twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from rackwright.bmc.interface import BmcClient
from rackwright.bmc.open import Open
from rackwright.bmc.target import NoAnswer, ResourceBroken, ResourceMissing
from rackwright.errors import BmcError, FirmwareError
from rackwright.model.cluster import Node

T = TypeVar("T")


@dataclass(frozen=True)
class Tempo:
    """Seconds; every wait has an end."""

    poll: float = 10.0
    task: float = 7200.0
    """For one image, from the request to the end of its task. A GPU baseboard takes an hour."""
    away: float = 900.0
    """For a BMC that restarts."""
    settle: float = 900.0
    """Until a BMC reports what an update, or a boot, has changed."""
    shutdown: float = 900.0
    """From the power button to the power being off."""
    between: float = 10.0
    """Between off and on: power supplies discharge."""


@dataclass
class Asking:
    """The BMC of one node; for one thread. Close it."""

    node: Node
    open: Open
    tempo: Tempo = field(default_factory=Tempo)
    stop: Event = field(default_factory=Event)
    _client: BmcClient | None = None

    def change(self, act: Callable[[BmcClient], T]) -> T:
        """Have it do something, once. BmcError where it refuses; NoAnswer: it may have done it."""
        return act(self._opened())

    def ask(self, question: Callable[[BmcClient], T], seconds: float | None = None) -> T:
        """An answer; asked again while the BMC restarts."""
        deadline = time.monotonic() + (self.tempo.away if seconds is None else seconds)
        while True:
            try:
                return question(self._opened())
            except (NoAnswer, ResourceBroken, ResourceMissing) as error:
                self.close()
                if time.monotonic() >= deadline:
                    raise
                silent: BmcError = error
            self.pause(silent.message)

    def until(self, true: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is true; False where it is not so in time."""
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() >= deadline:
                return False
            self.pause()
        return True

    def pause(self, waiting_for: str = "") -> None:
        """Wait a moment; FirmwareError once the run is to end."""
        if self.stop.wait(self.tempo.poll):
            raise FirmwareError(
                "interrupted" + (f"; {waiting_for}" if waiting_for else ""),
                hint="its BMC finishes what it has started; run the same command again",
            )

    def close(self) -> None:
        """Log out."""
        if self._client is not None:
            client, self._client = self._client, None
            client.close()

    def _opened(self) -> BmcClient:
        if self._client is None:
            self._client = self.open(self.node)
        return self._client
