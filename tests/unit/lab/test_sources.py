"""The Debian mirror is read out of the machine's own apt configuration."""

from pathlib import Path

import pytest

from rackwright.lab import sources
from rackwright.lab.sources import Entry, Mirrors, choose, parse_deb822, parse_one_line

ONE_LINE = """\
# deb http://old.example/debian bookworm main
deb http://mirror.example/debian/ bookworm main contrib # ours
deb [arch=amd64 signed-by=/etc/keys/vendor.asc] https://vendor.example/apt bookworm main
deb-src http://mirror.example/debian bookworm main
deb [ signed-by=/usr/share/keyrings/debian-archive-keyring.gpg ] http://sec.example/s bookworm-security main
"""

DEB822 = """\
Types: deb
# a snapshot
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
 contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb-src
URIs: http://src.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://sec.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdA
 -----END PGP PUBLIC KEY BLOCK-----
"""


def test_one_line_format():
    assert list(parse_one_line(ONE_LINE)) == [
        Entry("http://mirror.example/debian", "bookworm", ("main", "contrib"), ""),
        Entry("https://vendor.example/apt", "bookworm", ("main",), "/etc/keys/vendor.asc"),
        Entry(
            "http://sec.example/s",
            "bookworm-security",
            ("main",),
            "/usr/share/keyrings/debian-archive-keyring.gpg",
        ),
    ]


def test_deb822_format():
    entries = list(parse_deb822(DEB822))
    assert [(entry.uri, entry.suite, entry.components) for entry in entries] == [
        ("http://mirror.example/debian", "bookworm", ("main", "contrib")),
        ("http://mirror.example/debian", "bookworm-updates", ("main", "contrib")),
        ("http://sec.example/debian-security", "bookworm-security", ("main",)),
    ]


def test_a_vendor_with_its_own_key_is_not_debian():
    entries = [
        Entry("https://vendor.example/apt", "bookworm", ("main",), "/etc/keys/vendor.asc"),
        Entry("http://mirror.example/debian", "trixie", ("main",), ""),
    ]
    assert choose(entries) == Mirrors("http://mirror.example/debian", None)


@pytest.mark.parametrize("suite", ["bookworm-security", "bullseye/updates", "stable-security"])
def test_security_suites(suite: str):
    assert choose([Entry("http://sec.example/s", suite, ("main",), "")]).security == "http://sec.example/s"


def test_another_distribution_names_no_mirror():
    entries = [Entry("http://archive.example/ubuntu", "noble", ("main", "universe"), "")]
    assert choose(entries) == Mirrors(None, None)


def test_lines_of_a_suite():
    mirrors = Mirrors("http://mirror.example/debian", "http://sec.example/s")
    options = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    components = "main contrib non-free non-free-firmware"
    assert mirrors.lines("trixie") == [
        f"deb {options} http://mirror.example/debian trixie {components}",
        f"deb {options} http://mirror.example/debian trixie-updates {components}",
        f"deb {options} http://sec.example/s trixie-security {components}",
    ]


def test_without_a_mirror_the_builder_uses_its_own():
    assert Mirrors(None, "http://sec.example/s").lines("trixie") == []


def test_the_environment_replaces_both_mirrors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RACKWRIGHT_LAB_MIRROR", "http://mine.example/debian")
    monkeypatch.delenv("RACKWRIGHT_LAB_SECURITY_MIRROR", raising=False)
    assert sources.machine_mirrors() == Mirrors("http://mine.example/debian", None)
    monkeypatch.setenv("RACKWRIGHT_LAB_SECURITY_MIRROR", "http://mine.example/security")
    assert sources.machine_mirrors().security == "http://mine.example/security"


def test_both_formats_are_found_on_disk(tmp_path: Path):
    (tmp_path / "sources.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "vendor.list.save").write_text(ONE_LINE)
    assert len(list(sources.read_entries(tmp_path))) == 6
