"""Checks of the proxy role."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, each, fail
from rackwright.claims.files import as_rendered
from rackwright.model.cluster import Node
from rackwright.model.services import FetchesFromOutside
from rackwright.roles.proxy import texts
from rackwright.roles.proxy.options import ProxyOptions

SECONDS = 5
"""How long the proxy may take to answer. A proxy on the same site answers within milliseconds, its connection to the probe within seconds."""
LOGIN_SHELL = "env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -lc env"
ENVIRON = "tr '\\0' '\\n' </proc/$(systemctl show -p MainPID --value {unit})/environ"
PROGRAM = """\
import socket, sys
host, port, target, seconds = sys.argv[1:]
try:
    with socket.create_connection((host, int(port)), float(seconds)) as s:
        s.settimeout(float(seconds))
        s.sendall(f"CONNECT {target}:443 HTTP/1.1\\r\\nHost: {target}:443\\r\\n\\r\\n".encode())
        print(s.recv(200).split(b"\\r\\n")[0].decode("ascii", "replace"))
except OSError as error:
    print("! " + (error.strerror or str(error) or type(error).__name__))
"""
"""Host and port of a proxy, a name, seconds. Prints the first line of the proxy's answer, or `!` and an error."""
_STATUS = re.compile(r"HTTP/1\.[01] ([0-9]{3})\b.*")


def parse_environment(printed: str) -> dict[str, str]:
    """`env`: value by name."""
    return {
        name: value for name, sign, value in (line.partition("=") for line in printed.splitlines()) if sign
    }


def _login_shells(context: CheckContext[ProxyOptions]) -> str:
    as_rendered(context, {texts.PROFILE: texts.profile(context.cluster, context.node, context.options)})
    found = parse_environment(context.output(LOGIN_SHELL))
    if not found:
        raise Undetermined("a login shell printed no environment")
    wanted = context.options.proxy_environment(context.cluster, context.node)
    both = {spelling: value for name, value in wanted.items() for spelling in (name, name.lower())}
    _has(found, both, "a login shell")
    return f"{context.options.http}, and {wanted['NO_PROXY'].count(',') + 1} names and networks directly"


def _has(found: Mapping[str, str], wanted: Mapping[str, str], what: str) -> None:
    for name, value in wanted.items():
        if found.get(name) != value:
            fail(f"{what} has {name}={found.get(name, '')}, not {value}")


def fetching_units(node: Node) -> tuple[str, ...]:
    """Units whose daemons fetch from outside, of all roles on the node."""
    options = (given for given in node.options.values() if isinstance(given, FetchesFromOutside))
    return tuple(unit for given in options for unit in given.fetching_units(node))


def _daemons(context: CheckContext[ProxyOptions]) -> str:
    wanted = context.options.proxy_environment(context.cluster, context.node)
    found = fetching_units(context.node)
    for unit in found:
        _has(parse_environment(context.output("sh -c %s", ENVIRON.format(unit=unit))), wanted, unit)
    return f"{', '.join(found)} use it"


def _dnf(context: CheckContext[ProxyOptions]) -> str:
    found = context.output("sh -c %s", texts.DNF_READ).strip()
    wanted = texts.dnf_proxy(context.cluster, context.options)
    if not found:
        raise Undetermined(f"{texts.DNF} cannot be read")
    if found != wanted:
        fail(f"dnf's proxy is {found}, not {wanted}")
    return f"dnf's proxy is {found}"


def _answers(context: CheckContext[ProxyOptions]) -> str:
    return "; ".join(each(lambda url: _probe(context, url), context.options.urls))


def _probe(context: CheckContext[ProxyOptions], url: str) -> str:
    parts, target = urlsplit(url), context.options.probe
    arguments = (PROGRAM, parts.hostname or "", str(parts.port or 80), target, str(SECONDS))
    status_line = context.output(f"python3 -IS -c{' %s' * len(arguments)}", *arguments).strip()
    if status_line.startswith("! "):
        fail(f"{url} does not answer: {status_line[2:]}")
    status = _STATUS.fullmatch(status_line)
    if status is None:
        if status_line:
            fail(f"{url} does not speak HTTP: it answers {status_line[:80]!r}")
        fail(f"{url} closed the connection without an answer")
    if status[1] == "407":
        fail(f"{url} requires a login (407), which rackwright does not support")
    if not status[1].startswith("2"):
        raise Warned(f"{url} answers but does not connect to {target}:443: {status_line[:80]}")
    return f"{url} connects to {target}:443"


CHECKS: tuple[Check, ...] = (
    Check("login shells have the declared proxy", _login_shells),
    Check(
        "daemons that fetch from outside use the proxy",
        _daemons,
        applies=lambda node, options: bool(fetching_units(node)),
        settle_seconds=10,
    ),
    Check(
        "dnf has the declared proxy", _dnf, applies=lambda node, options: node.family.package_tool == "dnf"
    ),
    Check("the proxy answers", _answers, live=True),
)
