"""One rack for the set: booted once, applied once, taken down in the end whatever happened."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from rackwright.lab.rack import Rack
from tests.racks.lab_drift.site import NODES, Site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, as declared."""
    site = Site(tmp_path_factory.mktemp("drift"))
    try:
        site.cli("lab", "up", str(site.file))
        site.cli("apply", str(site.file), "--yes")
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()


_TRACES = """
find /etc /usr/local /var/lib /opt /home /root -xdev \\
  \\( -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd/catalog \\) -prune -o -print
systemctl list-unit-files --no-legend --no-pager 'rackwright*' || :
systemctl list-units --all --no-legend --no-pager 'rackwright*'
cut -d: -f1 /etc/passwd /etc/group
"""


@pytest.fixture(scope="session")
def traces(site: Site) -> dict[str, set[str]]:
    """What there is on the nodes before any drift check is installed."""
    return {node: traces_on(site, node) for node in NODES}


def traces_on(site: Site, node: str) -> set[str]:
    """Files, units, users and groups of a node."""
    return set(site.on(node, _TRACES).splitlines())


_NOT_OURS = re.compile(
    r"(^|/)(bob|\.pwd\.lock|[KS]\d\dchrony)$"  # what the tests themselves do to the node
    r"|^/home/bob|^/opt/rackwright|^/var/lib/chrony|^/var/lib/systemd/(?!timers)"
)


def left_on(site: Site, node: str, before: set[str]) -> set[str]:
    """What a drift check left on a node."""
    return {line for line in traces_on(site, node) - before if not _NOT_OURS.search(line)}
