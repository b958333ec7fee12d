"""Which packages are installed, and which version would be."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question
from rackwright.osfamily.apt import MARK, NO_MODULES, POLICY
from rackwright.osfamily.known import os_family


@dataclass
class PackageState:
    """Versions by name; `candidates` only for those that are missing, where the index knows them."""

    installed: dict[str, str] = field(default_factory=dict)
    beside: dict[str, set[str]] = field(default_factory=dict)
    """Further installed versions by name: dnf keeps several kernels."""
    broken: dict[str, str] = field(default_factory=dict)
    """Half-installed ones, with dpkg's status letters."""
    candidates: dict[str, str] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Those that no upgrade moves: apt-mark's hold, or dnf's versionlock at an installed version."""
    locks: set[str] = field(default_factory=set)
    """dnf's version locks as they are written."""
    stale: set[str] = field(default_factory=set)
    """Files that an interrupted installation left behind."""

    def at(self, name: str, wanted: str | None) -> str | None:
        """The installed version that is the wanted one, or the only one there is; None where it is not installed."""
        there = [version for version in (self.installed.get(name), *self.beside.get(name, ())) if version]
        return next(
            (version for version in there if is_version(wanted, version)), there[0] if there else None
        )

    def holds(self, name: str, wanted: str | None) -> bool:
        """Whether no upgrade moves it; of several installed versions the wanted one has to be locked."""
        there = self.at(name, wanted)
        if name not in self.beside or there is None:
            return name in self.held
        return bool(self.locks & _locks_of(name, there))


def parse_packages(lines: list[str]) -> PackageState:
    """Read what the fact's command printed."""
    state = PackageState()
    locks = state.locks
    for line in lines:
        words = line.split()
        if words[:1] == ["have"] and len(words) == 4:
            _, name, version, status = words
            if status.endswith("i") or status == "ii":
                if state.installed.setdefault(name, version) != version:
                    state.beside.setdefault(name, set()).add(version)
            elif status[1:2] not in ("n", "c"):
                state.broken[name] = status
            if status.startswith("h"):
                state.held.add(name)
        elif words[:1] == ["candidate"] and len(words) == 3 and words[2] != "(none)":
            state.candidates[words[1]] = words[2]
        elif words[:1] == ["lock"] and len(words) == 2:
            locks.add(words[1])
        elif words[:1] == ["stale"] and len(words) == 2:
            state.stale.add(words[1])
    every = {name: {version, *state.beside.get(name, ())} for name, version in state.installed.items()}
    state.held |= {
        name
        for name, versions in every.items()
        if any(locks & _locks_of(name, version) for version in versions)
    }
    return state


def is_version(wanted: str | None, there: str) -> bool:
    """Whether an installed version is the wanted one, which may have no epoch, and end in `*`."""
    return wanted is None or any(fnmatchcase(text, wanted) for text in (there, there.partition(":")[2]))


def _locks_of(name: str, version: str) -> set[str]:
    """Forms in versionlock.list that hold a package at this version; no epoch is epoch 0."""
    whole = version if ":" in version else f"0:{version}"
    return {f"{name}-{text}{end}" for text in (version, whole) for end in ("", ".*")}


class Packages(FactBase[PackageState]):
    """State of these packages, versions included, in one command."""

    def command(self, family: str, packages: tuple[str, ...]) -> Question:
        return Question(
            os_family(family).package_query(packages),
            "packages",
            family=family,
            packages=list(packages),
            mark=MARK,
            placed=[POLICY, NO_MODULES],
        )

    @staticmethod
    def default() -> PackageState:
        return PackageState()

    def process(self, output: list[str]) -> PackageState:
        return parse_packages(output)
