"""Which packages are installed, and which version would be."""

from __future__ import annotations

from dataclasses import dataclass, field
from shlex import quote

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question
from rackwright.model.types import Family

MARK = "# placed by rackwright for the length of one installation"
"""A line of the two files that keep packages from doing more than to install themselves."""
POLICY = "/usr/sbin/policy-rc.d"
"""deb-systemd-invoke asks it before it starts a daemon."""
NO_MODULES = "/etc/dkms/no-autoinstall"
"""While it is there, DKMS packages and kernel packages build no modules."""
VERSIONLOCK = "/etc/dnf/plugins/versionlock.list"
"""What dnf's versionlock plugin keeps: one `name-epoch:version-release.*` a line."""
LOCK = "/run/rackwright-packages.lock"
"""Held on the node by an installation of ours: one whose program was killed goes on to its end."""

_DEBIAN = """\
dpkg-query -W -f '${{binary:Package}} ${{Version}} ${{db:Status-Abbrev}}\\n' {names} 2>/dev/null |
  sed 's/^\\([^: ]*\\):[^ ]*/\\1/; s/^/have /; s/ *$//'
for n in {names}; do
  dpkg-query -W -f '${{db:Status-Abbrev}}' "$n" 2>/dev/null | grep -q '^.i' || missing="${{missing-}} $n"
done
[ -z "${{missing-}}" ] || LC_ALL=C apt-cache policy $missing | awk '
  /^[^ ]/ {{ sub(/:$/, ""); name = $0 }} /Candidate:/ {{ print "candidate", name, $2 }}'
for f in {placed}; do
  ! grep -qs {mark} "$f" || {{ [ -e {lock} ] && ! flock -n {lock} true; }} || echo "stale $f"
done
: """

_EL = """\
rpm -q --qf 'have %{{NAME}} %|EPOCH?{{%{{EPOCH}}:}}|%{{VERSION}}-%{{RELEASE}} ii\\n' {names} 2>/dev/null |
  grep '^have '
sed -n '/^[^#!]/s/^/lock /p' {versionlock} 2>/dev/null
: """


@dataclass
class PackageState:
    """Versions by name; `candidates` only for those that are missing, where the index knows them."""

    installed: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    """Half-installed ones, with dpkg's status letters."""
    candidates: dict[str, str] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Those that no upgrade moves: apt-mark's hold, or dnf's versionlock at the installed version."""
    stale: set[str] = field(default_factory=set)
    """Files that an interrupted installation left behind."""


def parse_packages(lines: list[str]) -> PackageState:
    """Read what the fact's command printed."""
    state = PackageState()
    locks = set()
    for line in lines:
        words = line.split()
        if words[:1] == ["have"] and len(words) == 4:
            _, name, version, status = words
            if status.endswith("i") or status == "ii":
                state.installed[name] = version
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
    state.held |= {name for name, version in state.installed.items() if locks & _locks_of(name, version)}
    return state


def _locks_of(name: str, version: str) -> set[str]:
    """How versionlock.list may say that a package stays at this version; no epoch is epoch 0."""
    whole = version if ":" in version else f"0:{version}"
    return {f"{name}-{text}{end}" for text in (version, whole) for end in ("", ".*")}


class Packages(FactBase[PackageState]):
    """State of these packages, versions included, in one command."""

    def command(self, family: str, packages: tuple[str, ...]) -> Question:
        template = _DEBIAN if Family(family) is Family.DEBIAN else _EL
        quoted = " ".join(quote(name) for name in packages)
        placed = (POLICY, NO_MODULES)
        command = template.format(
            names=quoted, mark=quote(MARK), placed=" ".join(placed), lock=LOCK, versionlock=VERSIONLOCK
        )
        return Question(
            command, "packages", family=family, packages=list(packages), mark=MARK, placed=list(placed)
        )

    @staticmethod
    def default() -> PackageState:
        return PackageState()

    def process(self, output: list[str]) -> PackageState:
        return parse_packages(output)
