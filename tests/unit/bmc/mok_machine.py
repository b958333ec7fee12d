"""A machine whose shim starts MokManager: its menus as shim draws them (MokManager.c, lib/console.c), for one console.

Written after the source; tests/unit/bmc/mok_recorded holds what a real one printed.
"""

from __future__ import annotations

SHA1 = bytes(range(0x10, 0x24))
_WIDTH, _HEIGHT = 80, 24
_BLUE, _BLACK = b"\x1b[0m\x1b[37m\x1b[44m", b"\x1b[0m\x1b[37m\x1b[40m"


class Machine:
    """A channel to it; what it is typed moves it on."""

    def __init__(self, password="secret12", *, keys=(SHA1,), first="countdown", silent_after=None):
        self.password, self.keys = password, keys
        self.typed, self.rebooted, self.closed = b"", False, False
        self._silent_after = silent_after
        self._out, self._entered, self._marked = b"", "", 0
        self._show(first)

    # The channel

    def read(self, seconds):
        out, self._out = self._out, b""
        return out

    def write(self, keys):
        self.typed += keys
        for key in (keys,) if keys.startswith(b"\x1b") else [keys[at : at + 1] for at in range(len(keys))]:
            self._key(key)

    def close(self):
        self.closed = True

    # Its screens

    @property
    def items(self):
        return {
            "menu": ("Continue boot", "Enroll MOK", "Enroll key from disk", "Enroll hash from disk"),
            "done": ("Reboot", "Enroll key from disk", "Enroll hash from disk"),
            "keys": (*(f"View key {number}" for number in range(len(self.keys))), "Continue"),
            "sure": ("No", "Yes"),
        }.get(self.at, ())

    def say(self, text):
        """Something that is not MokManager."""
        self._out += f"\x1b[0m\x1b[2J\x1b[01;01H{text}".encode()

    def _show(self, at):
        self.at, self._marked = at, 0
        if at in (self._silent_after, "off"):
            return
        if at == "countdown":
            self._box(["Shim UEFI key management"], 0, 0, _WIDTH, _HEIGHT, top=True)
            self._out += (
                b"\x1b[13;21HPress any key to perform MOK management\x1b[23;03HBooting in 120 seconds  "
            )
        elif at == "view":
            rows = ["[Serial Number]", "0a:", "", "[Subject]", "CN=site", "", "[Fingerprint]"]
            shown = self.keys[0].hex(" ")
            self._box([*rows, shown[:30], shown[30:], ""], 0, 0, _WIDTH, _HEIGHT)
        elif at == "password":
            self._box(["Password:            "], 28, 19, 25, 3)
        elif at == "mismatch":
            self._box(["ERROR", "", "Password doesn't match"], 26, 8, 28, 7)
        else:
            titles = {"keys": "[Enroll MOK]", "sure": "Enroll the key(s)?"}
            self._box([titles.get(at, "Perform MOK management")], 0, 0, _WIDTH, _HEIGHT, top=True)
            self._menu()

    def _menu(self):
        width = max(map(len, self.items)) + 4
        self._box(self.items, (_WIDTH - width) // 2, 9, width, len(self.items) + 2, marked=self._marked)

    def _box(self, lines, column, row, width, height, *, top=False, marked=None):
        first = row + (1 if top else (height - len(lines)) // 2)
        self._out += (
            _BLUE + self._place(row, column) + "┌".encode() + "─".encode() * (width - 2) + "┐".encode()
        )
        for at in range(row + 1, row + height - 1):
            line = lines[at - first] if 0 <= at - first < len(lines) else ""
            colour = _BLACK if marked is not None and at - first == marked else b""
            text = f"│{line.center(width - 2)}│".encode()
            self._out += colour + self._place(at, column) + text + (_BLUE if colour else b"")
        self._out += self._place(row + height - 1, column) + ("└" + "─" * (width - 2) + "┘").encode()

    @staticmethod
    def _place(row, column):
        return f"\x1b[{row + 1:02};{column + 1:02}H".encode()

    # Its keyboard

    def _key(self, key):
        if self.at == "countdown":
            self._show("menu")
        elif self.at == "view":
            self._show("keys")
        elif self.at == "password":
            self._password(key)
        elif self.items and key in (b"\x1b[A", b"\x1b[B"):
            step = 1 if key == b"\x1b[B" else -1
            self._marked = min(max(self._marked + step, 0), len(self.items) - 1)
            self._menu()
        elif self.items and key == b"\r":
            self._chosen(self.items[self._marked])

    def _password(self, key):
        if key != b"\r":
            self._entered += key.decode()
            return
        right, self._entered = self._entered == self.password, ""
        self._show("done" if right else "mismatch")

    def _chosen(self, item):
        if item == "Reboot":
            self.rebooted = True
            self.say("BdsDxe: starting Boot0004")
            self.at = "off"
            return
        self._show(
            {"Enroll MOK": "keys", "Continue": "sure", "Yes": "password", "No": "menu"}.get(item, "view")
        )
