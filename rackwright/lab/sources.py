"""Where Debian packages come from: read out of this machine's own apt configuration."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab.process import run

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
MIRROR_VARIABLE = "RACKWRIGHT_LAB_MIRROR"
SECURITY_VARIABLE = "RACKWRIGHT_LAB_SECURITY_MIRROR"

_COMPONENTS = "main contrib non-free non-free-firmware"
_RELEASES = "bookworm|trixie|forky|sid|bullseye|buster|stable|oldstable|oldoldstable|testing|unstable"
_RELEASE = re.compile(f"({_RELEASES})(-updates)?")
_SECURITY = re.compile(f"({_RELEASES})(-security|/updates)")
_ONE_LINE = re.compile(
    r"deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>[^#]+)"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One suite of one archive, as apt knows it."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str


@dataclass(frozen=True, slots=True)
class Mirrors:
    """The Debian archive and its security archive; None where this machine names none."""

    archive: str | None
    security: str | None

    def lines(self, suite: str) -> list[str]:
        """apt source lines for a suite; none at all when no mirror is known: mmdebstrap then knows Debian's."""
        if self.archive is None:
            return []
        options = f"[signed-by={KEYRING}]"
        lines = [f"deb {options} {self.archive} {name} {_COMPONENTS}" for name in (suite, f"{suite}-updates")]
        if self.security is not None:
            lines.append(f"deb {options} {self.security} {suite}-security {_COMPONENTS}")
        return lines


def machine_mirrors() -> Mirrors:
    """The mirrors of this machine, or those which the environment names instead."""
    entries = list(read_entries(Path("/etc/apt")))
    archive = os.environ.get(MIRROR_VARIABLE)
    if archive is not None:
        # Another archive's packages would not fit this machine's security mirror.
        return Mirrors(archive, os.environ.get(SECURITY_VARIABLE))
    found = choose(entries)
    return Mirrors(found.archive, os.environ.get(SECURITY_VARIABLE, found.security))


def choose(entries: list[Entry]) -> Mirrors:
    """The first Debian archive and security archive among apt's sources."""
    debian = [entry for entry in entries if "main" in entry.components and _is_debian_signed(entry)]
    archive = next((e.uri for e in debian if _RELEASE.fullmatch(e.suite)), None)
    security = next((e.uri for e in debian if _SECURITY.fullmatch(e.suite)), None)
    return Mirrors(archive, security)


def parse_one_line(text: str) -> Iterator[Entry]:
    """Entries of a sources.list."""
    for line in text.splitlines():
        match = _ONE_LINE.match(line.strip())
        if match is not None:
            signed = re.search(r"signed-by=(\S+)", match["options"] or "", re.IGNORECASE)
            yield Entry(
                match["uri"].rstrip("/"),
                match["suite"],
                tuple(match["components"].split()),
                "" if signed is None else signed[1],
            )


def parse_deb822(text: str) -> Iterator[Entry]:
    """Entries of a *.sources file."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields[key] = fields.get(key, "") + " " + line.strip()
            elif ":" in line:
                name, _, value = line.partition(":")
                key = name.strip().lower()
                fields[key] = value.strip()
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Entry(uri.rstrip("/"), suite, components, fields.get("signed-by", ""))


def apt_setting(name: str) -> str | None:
    """One value of this machine's apt configuration, None where apt or the value is missing."""
    try:
        output = run(["apt-config", "dump", name], timeout=10).stdout
    except (LabError, OSError):
        return None
    match = re.search(rf'^{re.escape(name)} "(.*)";$', output, re.MULTILINE | re.IGNORECASE)
    return match[1] if match is not None and match[1] else None


def _is_debian_signed(entry: Entry) -> bool:
    # Other vendors name their suites after Debian's releases too; they bring their own key.
    return not entry.signed_by or "debian-archive" in entry.signed_by


def read_entries(folder: Path) -> Iterator[Entry]:
    """Every entry of an apt configuration folder, in the order apt reads them."""
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        if path.suffix == ".list":
            yield from parse_one_line(path.read_text(errors="replace"))
        elif path.suffix == ".sources":
            yield from parse_deb822(path.read_text(errors="replace"))
