"""Shim's MokManager driven over a serial console: a key that `mokutil --import` asked for is enrolled.

It answers the screens it knows, and types nothing at any other. Before it agrees, it has MokManager show the key and
compares its fingerprint: root on the node can put another key into the request, and the password does not cover it.
Screens and keys: shim, MokManager.c and lib/console.c (read 2026-11-27).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from rackwright.bmc.screen import Label, Screen
from rackwright.bmc.serial_console import Channel
from rackwright.errors import BmcError
from rackwright.secrets.secret import Secret

PRESS, MENU, KEYS, SURE, PASSWORD, SHOWN = (
    "Press any key to perform MOK management",
    "Perform MOK management",
    "[Enroll MOK]",
    "Enroll the key(s)?",
    "Password:",
    "[Fingerprint]",
)
_REFUSALS = (
    "Password doesn't match",
    "Invalid password length",
    "Unable to generate password hash",
    "Failed to enroll keys",
    "Failed to set variable",
    "Failed to get MokAuth",
    "Invalid key list",
    "No MOK keys found",
)
_UP, _DOWN, _ENTER, _ANY = b"\x1b[A", b"\x1b[B", b"\r", b" "
"""A space ends the countdown and a key's details, and chooses nothing in a menu."""
_LINUX = re.compile(r"Linux version \d")
_FINGERPRINT = re.compile(r"(?:[0-9a-f]{2} ?){10}", re.IGNORECASE)
_SHOWN_BYTES = 10
"""Of 20: a line. A long certificate leaves no room for the second one on a screen of 25 lines."""
_MOVES_MAX = 24


class UnknownScreen(BmcError):  # noqa: N818 - reads as the sentence it is
    """The console shows something else than what has to come next; nothing was typed at it."""


class NotEnrolled(BmcError):  # noqa: N818
    """MokManager did not enrol the key, or would enrol another one."""


@dataclass(frozen=True)
class Pace:
    """Seconds; every wait has an end."""

    step: float = 60.0
    """For the next screen."""
    quiet: float = 0.4
    """Without a byte, before a screen counts as drawn; the countdown draws each second."""
    between: float = 0.05
    """Between characters of the password: a BMC's serial line has no flow control."""


@dataclass
class MokManager:
    """One boot into MokManager, seen from the console."""

    node: str
    channel: Channel
    pace: Pace = field(default_factory=Pace)
    stopped: Callable[[], bool] = lambda: False
    """Whether to wait no longer."""
    notice: Callable[[str], None] = lambda text: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._screen = Screen()
        self._secret: Secret | None = None

    def forget(self) -> None:
        """Read what is left of the past: a BMC may show the last boot's text to a new session."""
        deadline = self.clock() + self.pace.step
        while self.channel.read(self.pace.quiet) and self.clock() < deadline:
            pass

    def enrol(self, sha1: bytes, password: Secret, appears: float) -> None:
        """Enrol the one key with this fingerprint, and have the machine boot again.

        UnknownScreen, NotEnrolled, or BmcError where the console ends. `appears`: seconds for MokManager to come.
        """
        self._secret = password
        self._await(f"`{PRESS}`", self._appeared, appears)
        self.notice("MokManager is on its console")
        if PRESS in self._texts():
            self.channel.write(_ANY)
        self._choose(MENU, "Enroll MOK")
        self._compare(sha1)
        self._choose(KEYS, "Continue")
        self._choose(SURE, "Yes")
        self._await(f"`{PASSWORD}`", lambda: PASSWORD in self._texts())
        self._type(password)
        self._choose(MENU, "Reboot")
        self._see_it_go()
        self.notice("the key is enrolled; it boots again")

    def _see_it_go(self) -> None:
        """Until the menu is gone: closed at once, the console may not have passed the last key on."""
        try:
            self._await("the machine's reset", lambda: "Reboot" not in self._texts())
        except UnknownScreen:
            raise
        except BmcError:
            return  # with some BMCs the console ends with the machine's reset; mokutil reports what came of it

    def _appeared(self) -> bool:
        texts = self._texts()
        if any(_LINUX.search(text) for text in texts):
            raise UnknownScreen(
                f"{self.node} booted Linux, and MokManager was not on its serial console.",
                hint="the firmware has to show its screens on the serial line (console redirection), and shim, with "
                "mmx64.efi beside it, has to boot the node",
            )
        return PRESS in texts or MENU in texts

    def _compare(self, sha1: bytes) -> None:
        """Have the key shown, and find it to be the one that was asked for, alone."""
        keys = [text for text in self._listed() if text.startswith("View key")]
        if keys != ["View key 0"]:
            raise NotEnrolled(
                f"MokManager of {self.node} lists {len(keys)} keys, not the one that was asked for; none was enrolled.",
                hint=_RESET,
            )
        self._choose(KEYS, "View key 0")
        self._await("the key's fingerprint", lambda: len(self._fingerprint()) >= _SHOWN_BYTES)
        found = self._fingerprint()
        if found != sha1[: len(found)]:
            raise NotEnrolled(
                f"MokManager of {self.node} would enrol another key, with the SHA-1 {found.hex(' ')} ...; it was not enrolled.",
                hint=f"has another user of the node changed the request? {_RESET}",
            )
        self.channel.write(_ANY)

    def _listed(self) -> list[str]:
        self._await(f"`{KEYS}`", lambda: self._menu(KEYS, "Continue") is not None)
        return self._texts()

    def _fingerprint(self) -> bytes:
        texts = self._texts()
        if SHOWN not in texts:
            return b""
        rows = texts[texts.index(SHOWN) + 1 :][:2]
        return bytes.fromhex("".join(row for row in rows if _FINGERPRINT.fullmatch(row)))

    def _choose(self, title: str, item: str) -> None:
        """Move to an item of the menu with this title, and press Enter once it alone is marked."""
        for _ in range(_MOVES_MAX):
            self._await(f"`{item}` below `{title}`", lambda: self._menu(title, item) is not None)
            menu = self._menu(title, item)
            assert menu is not None
            items, marked = menu
            if items[marked] == item:
                self.channel.write(_ENTER)
                return
            self.channel.write(_DOWN if items.index(item) > marked else _UP)
            self._await(
                f"another item than `{items[marked]}` marked", partial(self._moved, title, item, marked)
            )
        raise self._unknown(f"`{item}` marked")

    def _moved(self, title: str, item: str, before: int) -> bool:
        now = self._menu(title, item)
        return now is not None and now[1] != before

    def _menu(self, title: str, item: str) -> tuple[list[str], int] | None:
        """The items below the title and which of them is marked; None where that menu is not, or not wholly, there.

        The marked one has another background than the title.
        """
        labels = self._screen.labels()
        place = next((number for number, label in enumerate(labels) if label.text == title), None)
        if place is None:
            return None
        items = _box(labels[place + 1 :], item)
        background = labels[place].background
        marked = [number for number, label in enumerate(items) if label.background != background]
        return ([label.text for label in items], marked[0]) if len(marked) == 1 else None

    def _type(self, password: Secret) -> None:
        for character in password.reveal():
            self.channel.write(character.encode())
            self.sleep(self.pace.between)
        self.channel.write(_ENTER)

    def _await(self, what: str, there: Callable[[], bool], seconds: float | None = None) -> None:
        """Until the console has drawn it; nothing is typed meanwhile."""
        deadline = self.clock() + (self.pace.step if seconds is None else seconds)
        while True:
            if data := self.channel.read(self.pace.quiet):
                self._screen.feed(data)
            elif refusal := next((one for one in _REFUSALS if one in self._texts()), None):
                raise NotEnrolled(f"MokManager of {self.node} says: {refusal}.", hint=_RESET)
            elif there():
                return
            if self.stopped():
                raise BmcError("interrupted", hint=_RESET)
            if self.clock() >= deadline:
                raise self._unknown(what)

    def _texts(self) -> list[str]:
        return [label.text for label in self._screen.labels()]

    def _unknown(self, what: str) -> UnknownScreen:
        shown = "\n".join(f"    {line}" for line in self._screen.lines()) or "    (nothing)"
        if self._secret is not None:
            shown = shown.replace(self._secret.reveal(), "(the password)")
        return UnknownScreen(
            f"UNKNOWN: the serial console of {self.node} does not show {what}; nothing was typed at what it shows:\n{shown}",
            hint=_RESET,
        )


def _box(labels: Sequence[Label], item: str) -> list[Label]:
    """The label with this text and those in the rows that join it; nothing where it is not there."""
    at = next((number for number, label in enumerate(labels) if label.text == item), None)
    if at is None:
        return []
    first = last = at
    while first > 0 and labels[first].row - labels[first - 1].row == 1:
        first -= 1
    while last + 1 < len(labels) and labels[last + 1].row - labels[last].row == 1:
        last += 1
    return list(labels[first : last + 1])


_RESET = "`rackwright bmc console` shows it; `rackwright bmc power FILE reset` boots the node without the key"
