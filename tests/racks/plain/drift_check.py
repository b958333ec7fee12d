"""What the tests of the scheduled drift check share: calling it, what it may leave on a node, its head."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.racks.program import Ran
from tests.racks.site import REPO, Site

NODES = ("head1", "worker1")
HEAD = "/opt/rackwright/bin/python3"
"""Where the head has rackwright, once it was shipped there."""
_DEVELOPERS = ("mypy", "*mypyc*", "ruff*", "pip", "virtualenv", "setuptools", "*.pth", "pre_commit")
_TRACES = """
find /etc /usr/local /var/lib /opt /home /root -xdev \\
  \\( -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd/catalog \\) -prune -o -print
systemctl list-unit-files --no-legend --no-pager 'rackwright*' || :
systemctl list-units --all --no-legend --no-pager 'rackwright*'
cut -d: -f1 /etc/passwd /etc/group
"""
_NOT_OURS = re.compile(
    r"(^|/)(\.pwd\.lock|[KS]\d\dchrony)$"  # what the tests themselves do to the node
    r"|^/var/lib/rackwright(/runs(/.*)?)?$"  # journals of runs, and what they are in
    r"|^/opt/rackwright|^/var/lib/chrony|^/var/lib/systemd/(?!timers)"
)


@dataclass
class DriftCheck:
    """One way of installing it: put there for the first test that needs it, gone after the last."""

    site: Site
    install: Callable[[], None]
    before: dict[str, set[str]]
    """What there was on the nodes without it."""
    installed: bool = False

    def needed(self) -> None:
        """Install it, if it is not installed."""
        if not self.installed:
            self.install()
            self.installed = True

    def uninstall(self) -> None:
        drift(self.site, "uninstall", "--yes")
        self.installed = False

    def left(self, node: str) -> set[str]:
        """What it left on a node."""
        return {line for line in traces(self.site, node) - self.before[node] if not _NOT_OURS.search(line)}


def drift(site: Site, word: str, *arguments: str, expect: int | None = 0) -> Ran:
    """`rackwright drift WORD FILE ...`."""
    return site.cli("drift", word, str(site.file), *arguments, expect=expect)


def traces(site: Site, node: str) -> set[str]:
    """Files, units, users and groups of a node."""
    return set(site.on(node, _TRACES).splitlines())


def ship(site: Site) -> None:
    """Give the head this program, as an administrator would with pip; the rack has no internet."""
    if "here" in site.on("head1", f"[ -x {HEAD} ] && echo here || :"):
        return
    site.on("head1", "python3 -m venv --without-pip /opt/rackwright")
    packages = "/opt/rackwright/lib/python3.11/site-packages"
    without = ["--exclude=__pycache__", "--anchored", *(f"--exclude=./{name}" for name in _DEVELOPERS)]
    site.send("head1", Path(sysconfig.get_path("purelib")), *without, ".", to=packages)
    site.send("head1", REPO, "--exclude=__pycache__", "rackwright", to=packages)
