"""Silences the alerts of some nodes while they are being changed.

Each silence ends by itself soon after it is no longer renewed: a run that is killed leaves none behind for long.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from rackwright.boundary import last_line
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster
from rackwright.model.monitoring import RoutesAlerts
from rackwright.silences.matchers import Matchers, of_boots, of_wave
from rackwright.ssh import RootShell

MINUTES = 15
"""A silence lasts no longer unless it is renewed."""
RENEW_SECONDS = 300.0
_ANSWER_SECONDS = 20.0
_END_SECONDS, _PAUSE_SECONDS = 20.0, 2.0
"""How long it is asked to end a silence: the run itself may have started it just now."""
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_SUCH_COMMAND = (126, 127)


class NotSilencedError(Exception):
    """Why Alertmanager did not do it."""


class NotInstalledError(NotSilencedError):
    """The run is what installs it; until then nothing can alert."""


class Silencer:
    """What a run needs of Alertmanager; without one, nothing is done and no request is made."""

    def __init__(
        self,
        cluster: Cluster,
        shell: RootShell,
        comment: str,
        notice: Callable[[str], None],
        *,
        renew_seconds: float = RENEW_SECONDS,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        """`comment`: whose silence it is, for everyone who sees it; `notice` is given a sentence where it fails."""
        found = [(node, one) for node in cluster.nodes if (one := node.offers(RoutesAlerts)) is not None]
        self._cluster = cluster
        self._routers = sorted(found, key=lambda pair: not pair[0].primary)
        self._shell = shell
        self._comment = comment
        self._notice = notice
        self._renew_seconds = renew_seconds
        self._pause_seconds = pause_seconds
        self._failed_before = False

    @contextmanager
    def around(self, nodes: Iterable[str]) -> Iterator[None]:
        """Silence these nodes, and racks and leaves without any other node, until the end of the block, also after an error."""
        names = tuple(nodes)
        if not self._routers or not names:
            yield
            return
        wanted = tuple(of_wave(self._cluster, names))
        held = self._begin(wanted)
        over = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(wanted, held, over), daemon=True)
        renewing.start()
        try:
            yield
        finally:
            over.set()
            renewing.join()
            self._end(held)

    def expect_boots(self, nodes: Iterable[str]) -> None:
        """These nodes have just been rebooted: that alone is silenced for longer, and the end of a run does not end it."""
        names = tuple(nodes)
        if not self._routers or not names:
            return
        with suppress(NotSilencedError):  # then an alert reports that a node has booted, which is true
            self._add(of_boots(names))

    def _begin(self, wanted: Sequence[Matchers]) -> list[tuple[str, str]]:
        """(node, silence) of each; empty where there is no Alertmanager yet, or where it failed, then once with a notice."""
        try:
            return self._add(wanted)
        except NotInstalledError:
            return []
        except NotSilencedError as error:
            if not self._failed_before:
                self._notice(f"Alerts of the nodes of this run are not silenced: {error}.")
            self._failed_before = True
            return []

    def _add(self, wanted: Iterable[Matchers]) -> list[tuple[str, str]]:
        """On the first node whose Alertmanager answers; a pair shares its silences."""
        wanted = tuple(wanted)
        why: list[NotSilencedError] = []
        for node, router in self._routers:
            added: list[tuple[str, str]] = []
            try:
                for matchers in wanted:
                    text = self._run(node.name, router.silence_command(matchers, MINUTES, self._comment))
                    if (found := _ID.search(text)) is None:
                        raise NotSilencedError(f"{node.name}: Alertmanager returned no silence")
                    added.append((node.name, found[0]))
                return added
            except NotSilencedError as error:
                why.append(error)
                self._expire(added)
        sentence = "; ".join(map(str, why))
        installed = not all(isinstance(error, NotInstalledError) for error in why)
        raise NotSilencedError(sentence) if installed else NotInstalledError(sentence)

    def _renew(self, wanted: Sequence[Matchers], held: list[tuple[str, str]], over: threading.Event) -> None:
        """A silence ends only once its successor is there."""
        while not over.wait(self._renew_seconds):
            try:
                new = self._add(wanted)
            except NotSilencedError:
                continue  # e.g. the head reboots; what is held lasts until the second next try
            old = held[:]
            held[:] = new
            self._expire(old)

    def _end(self, held: Iterable[tuple[str, str]]) -> None:
        deadline = time.monotonic() + _END_SECONDS
        left = self._expire(held)
        while left and time.monotonic() < deadline:
            time.sleep(self._pause_seconds)
            left = self._expire(left)
        if left:
            where = ", ".join(dict.fromkeys(node for node, _ in left))
            self._notice(f"Cannot end this run's silences on {where}: they expire within {MINUTES} minutes.")

    def _expire(self, silences: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those that could not be ended."""
        routers = {node.name: router for node, router in self._routers}
        left = []
        for node, silence in silences:
            try:
                self._run(node, routers[node].unsilence_command(silence))
            except NotSilencedError:
                left.append((node, silence))
        return left

    def _run(self, node: str, command: str) -> str:
        try:
            result = self._shell.run(node, command, timeout=_ANSWER_SECONDS)
        except ConnectionFailed as error:
            raise NotSilencedError(error.message.rstrip(".")) from error
        if result.exit_status in _NO_SUCH_COMMAND:
            raise NotInstalledError(f"{node} has no Alertmanager yet")
        if result.exit_status != 0:
            raise NotSilencedError(f"{node}: {last_line(result.stdout, result.stderr).rstrip('.')}")
        return result.stdout
