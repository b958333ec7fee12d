"""Drives shim's MokManager over a serial console, to enrol a key that `mokutil --import` requested.

It answers known screens, and types nothing on any other. Before it confirms, it makes MokManager show the key and
compares its fingerprint: root on the node can replace the key in the request, and the password does not protect it.
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
"""A space stops the countdown and closes a key's details, and selects nothing in a menu."""
_LINUX = re.compile(r"Linux version \d")
_FINGERPRINT = re.compile(r"(?:[0-9a-f]{2} ?){10}", re.IGNORECASE)
_SHOWN_BYTES = 10
"""First of the 20 bytes, one line: a long certificate leaves no room for the second line on a 25-line screen."""
_MOVES_MAX = 24


class UnknownScreen(BmcError):  # noqa: N818 - reads as a sentence
    """The console does not show the expected screen; nothing was typed."""


class NotEnrolled(BmcError):  # noqa: N818
    """MokManager did not enrol the key, or would enrol another one."""


@dataclass(frozen=True)
class Timing:
    """Wait limits in seconds."""

    step: float = 60.0
    """For the next screen."""
    quiet: float = 0.4
    """Silence after which a screen counts as drawn; the countdown redraws each second."""
    between: float = 0.05
    """Between characters of the password: a BMC's serial line has no flow control."""


@dataclass
class MokManager:
    """One boot into MokManager, seen from the console."""

    node: str
    channel: Channel
    timing: Timing = field(default_factory=Timing)
    stopped: Callable[[], bool] = lambda: False
    """Whether to stop waiting."""
    notice: Callable[[str], None] = lambda text: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._screen = Screen()
        self._secret: Secret | None = None

    def forget(self) -> None:
        """Discard old output: a BMC may replay the last boot's text to a new session."""
        deadline = self.clock() + self.timing.step
        while self.channel.read(self.timing.quiet) and self.clock() < deadline:
            pass

    def enrol(self, sha1: bytes, password: Secret, appears: float) -> None:
        """Enrol the one key with this fingerprint, and reboot the machine.

        UnknownScreen, NotEnrolled, or BmcError if the console ends. `appears`: seconds to wait for MokManager.
        """
        self._secret = password
        self._await(f"`{PRESS}`", self._appeared, appears)
        self.notice("MokManager is on the console")
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
        self.notice("the key is enrolled; the node is rebooting")

    def _see_it_go(self) -> None:
        """Wait until the menu is gone: if closed at once, the console may not have forwarded the last key."""
        try:
            self._await("the machine's reset", lambda: "Reboot" not in self._texts())
        except UnknownScreen:
            raise
        except BmcError:
            return  # on some BMCs the console ends when the machine resets; mokutil reports the result

    def _appeared(self) -> bool:
        texts = self._texts()
        if any(_LINUX.search(text) for text in texts):
            raise UnknownScreen(
                f"{self.node} booted Linux without showing MokManager on its serial console.",
                hint="enable console redirection in the firmware, and make sure that shim boots the node, with "
                "mmx64.efi next to it",
            )
        return PRESS in texts or MENU in texts

    def _compare(self, sha1: bytes) -> None:
        """Display the key, and check that it is the requested one and the only one."""
        keys = [text for text in self._listed() if text.startswith("View key")]
        if keys != ["View key 0"]:
            raise NotEnrolled(
                f"MokManager of {self.node} lists {len(keys)} keys instead of the requested one; none was enrolled.",
                hint=_RESET,
            )
        self._choose(KEYS, "View key 0")
        self._await("the key's fingerprint", lambda: len(self._fingerprint()) >= _SHOWN_BYTES)
        found = self._fingerprint()
        if found != sha1[: len(found)]:
            raise NotEnrolled(
                f"MokManager of {self.node} would enrol another key, with SHA-1 {found.hex(' ')} ...; it was not enrolled.",
                hint=f"did another user of the node change the request? {_RESET}",
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
        """Move to the menu item with this title, and press Enter once it is the only highlighted one."""
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
        """The items below the title, and which one is highlighted; None if the menu is missing or incomplete.

        The highlighted item has another background than the title.
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
            self.sleep(self.timing.between)
        self.channel.write(_ENTER)

    def _await(self, what: str, there: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait until the console has drawn it; type nothing in the meantime."""
        deadline = self.clock() + (self.timing.step if seconds is None else seconds)
        while True:
            if data := self.channel.read(self.timing.quiet):
                self._screen.feed(data)
            elif refusal := next((one for one in _REFUSALS if one in self._texts()), None):
                raise NotEnrolled(f"MokManager of {self.node} reports: {refusal}.", hint=_RESET)
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
            f"UNKNOWN: the serial console of {self.node} does not show {what}; nothing was typed. It shows:\n{shown}",
            hint=_RESET,
        )


def _box(labels: Sequence[Label], item: str) -> list[Label]:
    """The label with this text and those in the adjoining rows; empty if it is missing."""
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
