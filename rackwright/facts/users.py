"""Users and groups as the node resolves them."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question


@dataclass(frozen=True)
class UserState:
    """One line of passwd, with the names of all groups."""

    uid: int
    group: str
    home: str
    shell: str
    groups: frozenset[str]


class User(FactBase[UserState | None]):
    """A user, or None."""

    def command(self, user: str) -> Question:
        name = quote(user)
        return Question(f"getent passwd {name} && id -gn {name} && id -Gn {name}; :", "user", user=user)

    @staticmethod
    def default() -> UserState | None:
        return None

    def process(self, output: list[str]) -> UserState | None:
        if len(output) < 3:
            return None
        fields = output[0].split(":")
        return UserState(int(fields[2]), output[1], fields[5], fields[6], frozenset(output[2].split()))


class UnixGroup(FactBase[int | None]):
    """The gid of a group, or None."""

    def command(self, group: str) -> Question:
        return Question(f"getent group {quote(group)}; :", "group", group=group)

    @staticmethod
    def default() -> int | None:
        return None

    def process(self, output: list[str]) -> int | None:
        return int(output[0].split(":")[2]) if output and output[0] else None
