"""What the Alertmanager of an OS release can do.

Read 2026-11-27 in prometheus/alertmanager at the tags v0.23.0 to v0.28.1: config/notifiers.go, config/config.go, CHANGELOG.md.
"""

from __future__ import annotations

from rackwright.osfamily.known import OsRelease

OLDEST = (0, 25)
"""E-mail passwords and PagerDuty keys in files, time zones of mute times; 0.24: amtool with a password, encrypted gossip."""
WEBHOOK_URL_FILE = (0, 28)
"""0.26 has `url_file` of webhooks, and crashes on it until 0.28 (#3800)."""
GOSSIP_NAMES = (0, 28)
"""`client_allowed_sans` of exporter-toolkit, with which only the other one of a pair is let in."""


def text(version: tuple[int, int]) -> str:
    """`0.25`."""
    return f"{version[0]}.{version[1]}"


def has(os: OsRelease, since: tuple[int, int]) -> bool:
    """Whether it is known to have what came with a release of Alertmanager."""
    return os.alertmanager is not None and os.alertmanager >= since


def lacks(os: OsRelease, since: tuple[int, int]) -> bool:
    """Whether it is known to lack it; a version that the site supplies is checked by amtool when the settings are written."""
    return os.alertmanager is not None and os.alertmanager < since
