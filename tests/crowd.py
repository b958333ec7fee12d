"""How many are at work at the same time, on however slow a machine."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable


class Crowd:
    """Everyone who enters stays until the expected number is in, and a moment longer to catch one too many."""

    def __init__(self, enough: Callable[[Crowd], bool]) -> None:
        self.most: Counter[str] = Counter()
        """The most there were at once, by name."""
        self.most_of_all = 0
        self._enough = enough
        self._inside: Counter[str] = Counter()
        self._changed = threading.Condition()

    def enter(self, name: str) -> None:
        with self._changed:
            self._inside[name] += 1
            self.most[name] = max(self.most[name], self._inside[name])
            self.most_of_all = max(self.most_of_all, self._inside.total())
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._enough(self), timeout=120)
        time.sleep(0.02)
        with self._changed:
            self._inside[name] -= 1
