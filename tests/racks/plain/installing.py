"""An apply in the middle of an installation that takes as long as a test wants; and its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.racks.program import Running
from tests.racks.site import Site
from tests.racks.snapshot import USER_TABLES, Snapshot, assert_same, snapshots

BROKEN = "rm -f /etc/timezone /etc/apt/apt.conf.d/20auto-upgrades"
"""Something quick to be done before an installation, and after it."""
# A package cannot be purged while another process holds dpkg's lock; its record can be removed all the same.
WITHOUT_JQ = f"sed -i '/^Package: jq$/,/^$/s/^Status: .*/Status: purge ok not-installed/' /var/lib/dpkg/status; {BROKEN}"
INSTALL = {"event": "start", "role": "base", "name": "Install the base packages"}

# Holds the locks as apt does (fcntl, whole file) until its file is gone.
_HOLD = """\
cat >/run/hold.py <<'PYTHON'
import fcntl, os, time
open('/run/hold', 'w').close()
held = [open(path, 'w') for path in %r]
for one in held:
    fcntl.lockf(one, fcntl.LOCK_EX)
open('/run/held', 'w').close()
while os.path.exists('/run/hold'):
    time.sleep(0.1)
os.unlink('/run/held')
PYTHON
systemd-run -q --collect python3 /run/hold.py
until [ -e /run/held ]; do sleep 0.1; done"""
DPKG_LOCKS = ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"]
INDEX_LOCK = ["/var/lib/apt/lists/lock"]


@contextmanager
def installing(site: Site, *nodes: str, locks: list[str] = DPKG_LOCKS) -> Iterator[Running]:
    """An apply that is in the middle of installing jq on these nodes, where another process holds apt's lock."""
    for node in site.nodes:
        site.on(node, f"{_HOLD % (locks,)}; {WITHOUT_JQ}" if node in nodes else BROKEN)
    try:
        running = site.start("apply", str(site.file), "--yes")
        for node in nodes:
            site.wait_for_event(running, node=node, **INSTALL)
        yield running
    finally:
        for node in nodes:
            release(site, node)


def release(site: Site, node: str) -> None:
    site.on(node, "rm -f /run/hold; for try in $(seq 50); do [ -e /run/held ] || break; sleep 0.1; done")


def converges(site: Site, baseline: dict[str, Snapshot]) -> None:
    site.converge()
    assert_same(baseline, snapshots(site), touched=False, but=USER_TABLES)
