"""Logins from node to node, tried: those that must succeed and those that must be refused."""

from __future__ import annotations

from rackwright.claims.check import CheckContext, NotInScope, Undetermined, fail
from rackwright.model.cluster import Node
from rackwright.roles.access import trust
from rackwright.roles.access.options import AccessOptions

NOT_RUN = (126, 127)
CONNECT_SECONDS = 10
"""ssh's limit, for the connection and for sshd's first line."""
_LOGIN = (
    "-o BatchMode=yes -o ConnectTimeout=%s -o ConnectionAttempts=1 -o PreferredAuthentications=hostbased "
    "-o UserKnownHostsFile=none -p %s %s uname -n"
)
_CLOSED = ("Connection closed by", "not available")
"""After the login was accepted: by PAM's account rules (no job on this node), or by the shell of a system account."""
_TOO_EARLY = ("kex_exchange_identification", "banner exchange")
_REFUSED = ("Permission denied", "verification failed", "does not exist")


def _login(context: CheckContext[AccessOptions], user: str, target: str) -> tuple[bool, str | None]:
    """Log in from this node as a user: whether sshd accepted it, and the node's name or ssh's refusal.

    The name is None where the account's rules or its shell ended the session.
    """
    port = str(context.cluster.ssh.port)
    limit = str(CONNECT_SECONDS * context.cluster.ssh.time_factor)
    result = context.host.run(f"runuser -u %s -- ssh {_LOGIN}", user, limit, port, target)
    if result.rc in NOT_RUN:
        raise Undetermined(f"cannot run `runuser`: {result.stderr.strip()}")
    output = f"{result.stdout}\n{result.stderr}"
    printed = last_line(result.stderr) or last_line(result.stdout) or f"ssh exited {result.rc}"
    if result.rc == 0:
        return True, str(result.stdout).strip()
    if any(words in output for words in _REFUSED):
        return False, printed
    if any(words in output for words in _CLOSED) and not any(words in output for words in _TOO_EARLY):
        return True, None
    raise Undetermined(f"{user} could not try to log in to {target}: {printed}")


def users_log_in(context: CheckContext[AccessOptions]) -> str:
    """An ordinary user, to the next node that trusts this one; its host key proves which node answers."""
    target = trust.reachable(context.cluster, context.node)
    if target is None:
        raise NotInScope("no node accepts host-based logins from this one")
    user = trust.UNPRIVILEGED
    for name in (target.name, target.fqdn, str(context.cluster.management_address(target))):
        accepted, printed = _login(context, user, name)
        if not accepted:
            fail(f"{user} cannot log in to {name} without a prompt: {printed}")
        if printed not in (target.name, None):
            fail(f"{user} logged in to {name} but reached {printed or 'a node without a name'}")
    return f"{target.name} accepts {user} by short name, full name and address"


def privileged_do_not(context: CheckContext[AccessOptions]) -> str:
    """root and ssh.user, to the next node and to the primary head."""
    following = trust.reachable(context.cluster, context.node)
    head = next((node for node in context.cluster.running("access") if node.primary), None)
    targets = {node.name: node for node in (following, head) if node is not None}
    users = sorted({"root", context.cluster.ssh.user})
    for target in targets.values():
        for user in users:
            _refused(context, user, target)
    return f"{', '.join(targets)} refuse{'s' if len(targets) == 1 else ''} {', '.join(users)} of this node"


def no_way_up(context: CheckContext[AccessOptions]) -> str:
    """Root of this node must not become an ordinary user of a head."""
    target = trust.closed_head(context.cluster, context.node)
    if target is None:
        raise NotInScope("no head runs the access role")
    _refused(context, trust.UNPRIVILEGED, target)
    return f"{target.name} refuses {trust.UNPRIVILEGED} of this node"


def _refused(context: CheckContext[AccessOptions], user: str, target: Node) -> None:
    accepted, printed = _login(context, user, target.name)
    if accepted:
        fail(f"{user} logs in to {target.name} by a host-based login from this node")
    if "Permission denied" not in (printed or ""):
        raise Undetermined(f"the login of {user} to {target.name} failed for another reason: {printed}")


def last_line(text: str) -> str:
    """The last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
