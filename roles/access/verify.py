"""Checks of the access role."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from rackwright.claims.accounts import account, entry
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.extra_lines import in_place
from rackwright.claims.files import as_rendered, at_path
from rackwright.claims.units import software_runs
from rackwright.model.types import NodeRole
from rackwright.render import render
from rackwright.roles.access import known_hosts, logins, trust
from rackwright.roles.access.logins import CONNECT_SECONDS, NOT_RUN, last_line
from rackwright.roles.access.options import SSHD_CONF, AccessOptions

_SOME_MISSING = 2
_WEAK = {"ciphers": r"cbc|arcfour|3des", "macs": r"md5|sha1|umac-64|-96", "kexalgorithms": r"sha1$"}
"""Parts of names: MACs of SHA-1 and of 64 bits, ciphers in CBC mode, key exchange with SHA-1."""


def parse_sshd_settings(output: str) -> dict[str, str]:
    """`sshd -T`: value by key, keys in lower case as it prints them; of a key with several lines, all values."""
    found: dict[str, str] = {}
    for line in output.splitlines():
        key, _, value = line.partition(" ")
        if key:
            found[key.lower()] = f"{found.get(key.lower(), '')} {value}".strip()
    return found


def parse_offered_methods(stderr: str) -> frozenset[str] | None:
    """Login methods from ssh's "Permission denied (a,b)."; None when it prints something else."""
    match = re.search(r"Permission denied \(([a-z0-9,@.-]+)\)", stderr)
    return None if match is None else frozenset(match.group(1).split(","))


def parse_sudo_rights(output: str) -> bool:
    """Whether `sudo -l -U user` shows that the user may run everything without a password."""
    return re.search(r"^\s+\((ALL|root)( : ALL)?\) NOPASSWD: ALL$", output, re.MULTILINE) is not None


def _sshd_settings(context: CheckContext[AccessOptions], user: str) -> dict[str, str]:
    """What sshd would do with this user's login from another node."""
    return parse_sshd_settings(context.output("sshd -T -C user=%s,host=localhost,addr=127.0.0.1", user))


def _sshd_setting(context: CheckContext[AccessOptions], key: str, expected: str) -> str:
    found = _sshd_settings(context, "root")
    if key.lower() not in found:
        raise Undetermined(f"`sshd -T` does not mention {key}")
    if found[key.lower()] != expected:
        fail(f"{key} is {found[key.lower()]}, not {expected}")
    return f"{key} {expected}"


def _sshd_limits(context: CheckContext[AccessOptions]) -> str:
    options = context.options
    first = _sshd_setting(context, "MaxStartups", options.max_startups)
    return f"{first}, {_sshd_setting(context, 'MaxSessions', str(options.max_sessions))}"


def _offered(context: CheckContext[AccessOptions]) -> str:
    """Of the running sshd: it may not have read its files yet."""
    hostbased = frozenset({"hostbased"} if context.options.node_to_node else ())
    login = _offers(context, context.cluster.ssh.user, frozenset({"publickey"}))
    ordinary = _offers(context, trust.UNPRIVILEGED, frozenset({"publickey"}) | hostbased)
    return f"sshd offers {login} to {context.cluster.ssh.user}, {ordinary} to ordinary users"


def _offers(context: CheckContext[AccessOptions], user: str, wanted: frozenset[str]) -> str:
    result = context.host.run(
        "ssh -F none -o BatchMode=yes -o ConnectTimeout=%s -o PreferredAuthentications=none "
        "-o UserKnownHostsFile=/etc/ssh/ssh_known_hosts -p %s -l %s %s true",
        str(CONNECT_SECONDS * context.cluster.ssh.time_factor),
        str(context.cluster.ssh.port),
        user,
        str(context.cluster.management_address(context.node)),
    )
    if result.rc == 0:
        fail(f"{user} logs in without any credential")
    offered = parse_offered_methods(result.stderr)
    if offered is None:
        raise Undetermined(f"ssh did not print the login methods of sshd: {last_line(result.stderr)}")
    if more := offered - wanted:
        fail(f"sshd offers {', '.join(sorted(more))} to {user}")
    if missing := wanted - offered:
        fail(f"sshd does not offer {', '.join(sorted(missing))} to {user}")
    return ", ".join(sorted(offered))


def _weak(context: CheckContext[AccessOptions]) -> str:
    found = _sshd_settings(context, "root")
    count = 0
    for key, pattern in _WEAK.items():
        if not found.get(key):
            raise Undetermined(f"`sshd -T` does not mention {key}")
        names = found[key].split(",")
        if weak := [name for name in names if re.search(pattern, name)]:
            fail(f"sshd accepts {', '.join(weak)} ({key})")
        count += len(names)
    return f"none of {count} algorithms"


def _privileged(context: CheckContext[AccessOptions]) -> str:
    """By sshd's own evaluation of its Match blocks; members of groups as the node resolves them."""
    groups = context.options.privileged_groups
    members = context.host.run("getent group %s" + " %s" * (len(groups) - 1), *groups)
    if members.rc not in (0, _SOME_MISSING):
        raise Undetermined(
            f"`getent group` cannot be read: {last_line(members.stderr) or f'status {members.rc}'}"
        )
    named = {
        user for line in str(members.stdout).splitlines() for user in line.split(":")[-1].split(",") if user
    }
    users = sorted(named | set(trust.privileged_users(context.cluster, context.options)))
    for user in users:
        value = _sshd_settings(context, user).get("hostbasedauthentication")
        if value is None:
            raise Undetermined("`sshd -T` does not mention HostbasedAuthentication")
        if value != "no":
            fail(
                f"sshd accepts host-based logins of {user}, who may become root here: root of another node could log in as {user}"
            )
    return f"refused: {', '.join(users)}"


def _private_keys(context: CheckContext[AccessOptions]) -> str:
    """EL 9 and older let the group ssh_keys read them, for ssh-keysign."""
    found = _sshd_settings(context, "root")
    paths = found.get("hostkey", "").split()
    if not paths:
        raise Undetermined("`sshd -T` does not mention HostKey")
    for path in paths:
        state = at_path(context, path, digest_only=True)
        if state.kind == "absent":
            continue  # sshd names types of key that this node may not have
        access = f"{state.mode} {state.owner}:{state.group}"
        if state.kind != "file" or access not in ("600 root:root", "640 root:ssh_keys", "600 root:ssh_keys"):
            fail(
                f"{path} is a {state.kind} with {access}, not a file that only root can read (600 root:root)"
            )
    return ", ".join(paths)


def _users(context: CheckContext[AccessOptions]) -> str:
    for user in context.options.users:
        found = account(context, user.name)
        if found is None:
            fail(f"the user {user.name} does not exist")
        if (found.uid, found.shell) != (user.uid, user.shell):
            fail(f"{user.name} has uid {found.uid} and shell {found.shell}, not {user.uid} and {user.shell}")
        shadow = entry(context, "shadow", user.name)
        if shadow is None or shadow[7:8] != [""]:
            fail(f"the account of {user.name} is locked")
        missing = set(user.groups) - found.groups
        if missing:
            fail(f"{user.name} is not in {', '.join(sorted(missing))}")
    return ", ".join(user.name for user in context.options.users)


def _keys(context: CheckContext[AccessOptions]) -> str:
    users = context.options.users
    declared = {
        _keys_path(user.name): render("access/authorized_keys.j2", keys=user.authorized_keys)
        for user in users
    }
    as_rendered(context, declared)
    return f"{sum(len(user.authorized_keys) for user in users)} keys of {len(users)} users"


def _keys_path(user: str) -> str:
    return f"/etc/ssh/authorized_keys.d/{user}"


def _sudo_valid(context: CheckContext[AccessOptions]) -> str:
    result = context.host.run("visudo -c")
    if result.rc in NOT_RUN:
        raise Undetermined(f"cannot run `visudo`: {result.stderr.strip()}")
    if result.rc == 0 and "parsed OK" not in result.stdout:
        raise Undetermined("visudo did not name the files it checked")
    if result.rc != 0:
        fail(f"visudo reports an error: {last_line(result.stderr) or last_line(result.stdout)}")
    return "visudo reports no error"


def _sudo_rights(context: CheckContext[AccessOptions]) -> str:
    options = context.options
    login = context.cluster.ssh.user
    may = {user.name for user in options.users if user.sudo}
    may_not = {user.name for user in options.users} - may
    if context.cluster.ssh.become == "sudo":
        may.add(login)
    for user in sorted(may | may_not):
        has = parse_sudo_rights(context.output("env LC_ALL=C sudo -l -U %s", user))
        if has and user in may_not:
            fail(f"{user} may become root, but is declared without sudo")
        if not has and user in may:
            fail(f"{user} may not become root without a password")
    return f"root: {', '.join(sorted(may)) or 'none'}; not root: {', '.join(sorted(may_not)) or 'none'}"


def _removed_users(context: CheckContext[AccessOptions]) -> str:
    for name in context.options.removed_users:
        fields = entry(context, "shadow", name)
        if fields is not None and fields[7:8] != ["1"]:
            fail(f"the account of {name} is not locked")
        if at_path(context, _keys_path(name), digest_only=True).kind != "absent":
            fail(f"the keys of {name} are still there")
    return ", ".join(context.options.removed_users)


def _known_hosts(context: CheckContext[AccessOptions]) -> str:
    unknown = known_hosts.without_key(context.cluster)
    if unknown:
        fail(f"{context.cluster.ssh.known_hosts} has no host key of {', '.join(unknown)}")
    as_rendered(context, {"/etc/ssh/ssh_known_hosts": known_hosts.ssh_known_hosts(context.cluster)})
    return f"host keys of {len(context.cluster.nodes)} nodes"


def _trusted(context: CheckContext[AccessOptions]) -> str:
    declared = (
        known_hosts.shosts_equiv(context.cluster, context.node) if context.options.node_to_node else None
    )
    as_rendered(context, {"/etc/ssh/shosts.equiv": declared})
    return f"{len(trust.trusted(context.cluster, context.node))} nodes" if declared else "none"


def _sshd(key: str, expected: str) -> Callable[[CheckContext[AccessOptions]], str]:
    return partial(_sshd_setting, key=key, expected=expected)


def _extra(context: CheckContext[AccessOptions]) -> str:
    return in_place(context, SSHD_CONF, context.options.extra.sshd_conf)


CHECKS: tuple[Check, ...] = (
    Check("sshd is configured to refuse root", _sshd("PermitRootLogin", "no")),
    Check("sshd is configured to refuse passwords", _sshd("PasswordAuthentication", "no")),
    Check("sshd is configured to refuse empty passwords", _sshd("PermitEmptyPasswords", "no")),
    Check(
        "sshd is configured to refuse keyboard-interactive logins",
        _sshd("KbdInteractiveAuthentication", "no"),
    ),
    Check("sshd is configured not to forward X11", _sshd("X11Forwarding", "no")),
    Check("sshd accepts many logins at once", _sshd_limits),
    Check(
        "sshd's file has the declared extra lines",
        _extra,
        applies=lambda node, options: bool(options.extra.sshd_conf),
    ),
    Check("the running sshd offers only the declared login methods", _offered, settle_seconds=10),
    Check(
        "sshd is running and enabled at boot", partial(software_runs, software="openssh"), settle_seconds=10
    ),
    Check("admin users exist as declared", _users, applies=lambda node, options: bool(options.users)),
    Check("admin users' keys are in place", _keys, applies=lambda node, options: bool(options.users)),
    Check(
        "removed users are locked out",
        _removed_users,
        applies=lambda node, options: bool(options.removed_users),
    ),
    Check("sudo's configuration is valid", _sudo_valid),
    Check("sudo rights are exactly those declared", _sudo_rights),
    Check("every node's host key is known", _known_hosts),
    Check("nodes trusted for host-based logins are as declared", _trusted),
    Check("sshd offers no weak algorithm", _weak),
    Check("only root can read sshd's private keys", _private_keys),
    Check(
        "sshd refuses host-based logins of users who may become root",
        _privileged,
        applies=lambda node, options: options.node_to_node,
    ),
    Check(
        "users log in from node to node without prompts",
        logins.users_log_in,
        settle_seconds=10,
        applies=lambda node, options: options.node_to_node,
        live=True,
    ),
    Check(
        "users who may become root do not log in from node to node without a key",
        logins.privileged_do_not,
        live=True,
    ),
    Check(
        "heads refuse host-based logins from this node",
        logins.no_way_up,
        applies=lambda node, options: not node.holds(NodeRole.HEAD),
        live=True,
    ),
)
