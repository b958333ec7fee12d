"""The patterns of text options in words: what is expected, and a value that fits. No message shows a pattern itself."""

from __future__ import annotations

_LABEL_RULE = "letters, digits, `_` and `-`, a letter first, at most 40 characters"
_FILE_RULE = "letters, digits, `.`, `_` and `-` between slashes"

PATTERNS: dict[str, tuple[str, str]] = {
    r"^[a-z][a-z0-9_.-]{0,39}$": (
        "Not a valid name: lower-case letters, digits, `_`, `.` and `-`, a letter first, at most 40 characters.",
        "physics",
    ),
    r"^[A-Za-z][A-Za-z0-9_-]{0,39}$": (f"Not a valid name: {_LABEL_RULE}.", "train"),
    r"^[a-z][a-z0-9_]{0,31}$": (
        "Not a valid name: lower-case letters, digits and `_`, a letter first, at most 32 characters.",
        "slurm_acct_db",
    ),
    r"^[a-z0-9_-]+$": ("Not a valid name: lower-case letters, digits, `_` and `-`.", "h100"),
    r"^[A-Za-z0-9@._-]+$": ("Not a valid user name.", "robot@example.com"),
    r'^[^|"\\\n]*$': (
        'The text must not contain `|`, `"`, a backslash or a line break.',
        "Physics department",
    ),
    r"^\d{1,3}(hour|day|month)s?$": ("Not a valid age: a number with hours, days or months.", "12months"),
    r"^[a-z]+(/[A-Za-z0-9:_.-]+)?$": ("Not a valid resource of Slurm.", "gres/gpu"),
    r"^\d{4,5}-\d{4,5}$": ("Not a valid range of ports.", "60001-63000"),
    r"^(/[A-Za-z0-9._%-]+)+$": (
        f"Not a valid absolute path: {_FILE_RULE}; `%` is allowed.",
        "/var/spool/slurmctld",
    ),
    r"^(/[A-Za-z0-9._-]+)+$": (f"Not a valid absolute path: {_FILE_RULE}.", "/var/lib/node-exporter"),
    r"^/": ("Not an absolute path.", "/scratch"),
    r"^https?://\S+$": ("Not a valid http or https URL.", "https://mirror.example.com/cuda"),
    r"^https?://[A-Za-z0-9./:_-]+$": ("Not a valid http or https URL.", "https://mirror.example.com/docker"),
    r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$": (
        "Not a valid http or https URL of a host.",
        "https://registry.example.com:5000",
    ),
    r"^[a-z0-9][A-Za-z0-9./:@_-]*$": ("Not a valid image name.", "registry.example.com:5000/pause:3.10"),
    r"^[0-9]+\.[0-9]+\.[0-9]+$": ("Not a valid release: three numbers.", "1.4.2"),
    r"^[0-9]+(\.[0-9]+)+$": ("Not a valid version.", "580.65.06"),
    r"^[0-9][0-9A-Za-z.+~-]*$": ("Not a valid package version.", "2.5.1-1"),
    r"^[0-9][A-Za-z0-9.+~:-]*$": ("Not a valid package version.", "24.11.5-1"),
    r"^[0-9A-F]{40}$": (
        "Not a valid fingerprint: 40 upper-case hexadecimal digits without spaces.",
        "0123456789ABCDEF0123456789ABCDEF01234567",
    ),
    r"^[A-Za-z0-9 -]+$": ("Not valid options: letters, digits, spaces and `-`.", "-noI -noD"),
    r"^[0-9a-f]{4}:[0-9a-f]{4}$": (
        "Not a valid PCI ID: vendor and device as lspci -n prints them.",
        "10de:2330",
    ),
}
"""Pattern of a field to (what is wrong, an example)."""


def in_words(pattern: str) -> tuple[str, str | None]:
    """What is wrong with a text that does not match, and a hint with an example."""
    if pattern not in PATTERNS:
        return "The text is not of the form that is expected here.", None
    message, example = PATTERNS[pattern]
    return message, f"e.g. `{example}`"
