"""What checks of all stores claim: lines of every node arrive, and clients need a certificate."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.boundary import last_line
from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.roles.logs import paths
from rackwright.roles.logs.options import LogsOptions

LATE_MINUTES = 15
"""Every node writes a line each five minutes; `verify` itself logs in and so writes some."""
_CURL = (
    "curl --silent --show-error --output /dev/null --max-time 10 --cacert %s --data-binary @/dev/null "
    "--write-out '%%{http_code}' %s"
)
_REFUSED, _UNTRUSTED = 7, 60
_CLOSED = frozenset({35, 52, 55, 56})
"""curl(1): the handshake failed, the server closed the connection without an answer, sending or receiving failed."""


def arrive(cluster: Cluster, newest: Mapping[str, float | None], now: float, place: str) -> str:
    """When the newest line of each node was written, by the clock of the server where they are."""
    nodes = [node.name for node in cluster.nodes if "logs" in node.options]
    silent = [name for name in nodes if not newest.get(name)]
    ages = {name: now - (newest[name] or 0) for name in nodes if name not in silent}
    late = {name: age for name, age in ages.items() if age > LATE_MINUTES * 60}
    wrong = [f"{place} has no line of {fold(silent)}"] if silent else []
    if late:
        worst = max(late, key=lambda name: late[name])
        wrong.append(
            f"logs of {fold(late)} do not arrive: the newest line of {worst} is {minutes(late[worst])} old"
        )
    if wrong:
        fail("; ".join(wrong))
    return f"lines of {len(nodes)} nodes, the newest of each less than {LATE_MINUTES} min old"


def minutes(seconds: float) -> str:
    """`17 min`."""
    return f"{seconds / 60:.0f} min"


def refuses_strangers(context: CheckContext[LogsOptions], url: str) -> str:
    """Clients without a certificate get no answer."""
    result = context.host.run(_CURL, paths.CA, url)
    code = str(result.stdout).strip()
    if code not in ("", "000"):
        fail(f"{url} accepts clients without a certificate: it answers {code}")
    if result.rc == _REFUSED:
        fail(f"nothing answers at {url}")
    if result.rc == _UNTRUSTED:
        fail(f"{url} has a certificate that the site CA did not issue: no node sends to it")
    if result.rc not in _CLOSED:
        raise Undetermined(f"curl of {url} exited {result.rc}: {last_line(str(result.stderr))}")
    return f"{url} closes a connection without a certificate"
