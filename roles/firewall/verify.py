"""Checks of the firewall role."""

from __future__ import annotations

from functools import partial

from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.packages import installed
from rackwright.claims.units import is_masked, runs
from rackwright.model.listening import declared_listeners
from rackwright.osfamily.names import names
from rackwright.roles.firewall import rules
from rackwright.roles.firewall.options import UNIT, FirewallOptions
from rackwright.roles.firewall.sockets import ASK, UnreadableSocketsError, judge, parse_sockets

_NAMED_MAX = 8
_SETTLE_SECONDS = 20
_ASK_UFW = "if [ -e /etc/ufw/ufw.conf ]; then cat /etc/ufw/ufw.conf; else echo none; fi"


def _installed(context: CheckContext[FirewallOptions]) -> str:
    return installed(context, names(context.node.family, "nftables").packages)


def _files(context: CheckContext[FirewallOptions]) -> str:
    return as_rendered(context, rules.files(context.cluster, context.node, context.options))


def _in_force(context: CheckContext[FirewallOptions]) -> str:
    found = context.output("sh -c %s", rules.LIVE).strip()
    if not found:
        raise Undetermined("nft did not print the kernel's rules")
    if found != rules.IN_FORCE:
        fail(printable(found, 300))
    zones = (
        f"{area.name} {area.zone}" for area in rules.areas(context.cluster, context.node, context.options)
    )
    return f"table {rules.TABLE}: {', '.join(zones)}"


def _no_ufw(context: CheckContext[FirewallOptions]) -> str:
    printed = context.output("sh -c %s", _ASK_UFW)
    settings = dict(line.partition("=")[::2] for line in printed.split())
    if settings.get("ENABLED", "no").strip('"').lower() == "yes":
        raise Warned("ufw is active too: a packet needs both filters to accept it")
    if "ENABLED" not in settings and printed.strip() != "none":
        raise Undetermined("/etc/ufw/ufw.conf does not set whether ufw is enabled")
    return "ufw is not installed" if printed.strip() == "none" else "ufw is disabled"


def _declared_sockets(context: CheckContext[FirewallOptions]) -> str:
    try:
        sockets = parse_sockets(context.output(ASK))
    except UnreadableSocketsError as error:
        raise Undetermined(str(error)) from error
    if not sockets:
        raise Undetermined("ss lists no socket at all, not even sshd's")
    verdict = judge(sockets, declared_listeners(context.cluster, context.node), context.cluster, context.node)
    if verdict.wrong:
        more = f"; and {len(verdict.wrong) - _NAMED_MAX} more" if verdict.wrong[_NAMED_MAX:] else ""
        fail(printable(f"{'; '.join(verdict.wrong[:_NAMED_MAX])}{more}", 2000))
    if verdict.unseen:
        first = verdict.unseen[0]
        raise Undetermined(
            f"ss shows no process of {len(verdict.unseen)} sockets, e.g. of {first.protocol} port {first.port}"
        )
    return (
        f"{verdict.declared} sockets, all declared; {verdict.local} more on loopback, "
        f"{verdict.of_users} of users and jobs"
    )


CHECKS: tuple[Check, ...] = (
    Check("nftables is installed", _installed),
    Check("the firewall rules on disk are as declared", _files),
    Check("the firewall rules are loaded at boot", partial(runs, unit=UNIT)),
    Check("the loaded firewall rules are as declared", _in_force),
    Check(
        "firewalld filters nothing",
        partial(is_masked, unit="firewalld.service", why="a packet needs both filters to accept it"),
        applies=lambda node, options: node.family.has_firewalld,
    ),
    Check(
        "ufw filters nothing",
        _no_ufw,
        applies=lambda node, options: node.family.package_tool == "apt",
    ),
    # a daemon that starts, or asks something by UDP, may have a socket for a moment
    Check("only declared services listen", _declared_sockets, settle_seconds=_SETTLE_SECONDS),
)
