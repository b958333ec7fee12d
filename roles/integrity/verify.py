"""Checks of the integrity role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.facts import undeclared
from rackwright.facts.traces import NodeTraces, Traces
from rackwright.facts.undeclared import Declared
from rackwright.roles.integrity.declared import declared
from rackwright.roles.integrity.options import IntegrityOptions

_NAMED_MAX = 5
Context = CheckContext[IntegrityOptions]


def _read(context: Context, *parts: str) -> tuple[Traces, Declared]:
    """What is there and what is right; Undetermined where one of these parts could not be read."""
    right = declared(context.cluster, context.node, context.options)
    found = context.fact(
        NodeTraces,
        users=right.users,
        groups=tuple(right.root_groups),
        paths=right.paths,
        held=context.node.family.held,
    )
    for part in parts:
        if part in found.unknown:
            raise Undetermined(f"the node could not {found.unknown[part]}")
    return found, right


def _none_of(strange: list[str]) -> None:
    if strange:
        more = f"; and {len(strange) - _NAMED_MAX} more" if strange[_NAMED_MAX:] else ""
        fail(f"{'; '.join(strange[:_NAMED_MAX])}{more}")


def _keys(context: Context) -> str:
    found, right = _read(context, "accounts", "keys")
    strange = [
        f"{name} of {file.user} in {file.path}"
        for file, removed, _ in undeclared.keys(found, right)
        for name in removed
    ]
    strange += [f"{file.path} is a link" for file in undeclared.key_links(found, right)]
    _none_of(strange)
    if not right.judges_login_keys:
        raise Undetermined(
            f"the key with which rackwright logs in as {right.login} is unknown; name it under "
            f"`allowed_authorized_keys`"
        )
    return f"{len(found.keys)} files of keys"


def _accounts(context: Context) -> str:
    found, right = _read(context, "accounts")
    still_open, closed = undeclared.roots(found, right)
    strange = [f"{account.name} has uid 0" for account in still_open]
    strange += [
        f"{account.name} has {'no password' if account.password == 'empty' else 'a password'}"
        for account in undeclared.passwords(found, right)
    ]
    _none_of(strange)
    if closed:
        names = ", ".join(account.name for account in closed)
        raise Warned(f"{names} has uid 0 and is locked; remove its line from /etc/passwd by hand")
    return f"{len(found.accounts)} accounts"


def _members(context: Context) -> str:
    found, right = _read(context, "accounts")
    _none_of([f"{one.user} is in group {one.group}" for one in undeclared.members(found, right)])
    return f"{len(found.members)} members of {', '.join(right.root_groups)}"


def _sudo(context: Context) -> str:
    found, right = _read(context, "sudoers")
    _none_of([f"{one.path}: {rule}" for one in undeclared.sudo_rules(found, right) for rule in one.lines])
    return f"{len(found.sudoers)} files"


def _sshd(context: Context) -> str:
    found, right = _read(context, "sshd")
    if not found.settings:
        raise Undetermined("`sshd -T` printed no settings")
    wrong = undeclared.sshd_settings(found, right)
    strange = [f"{key} is {value}, not {_one_of(right, key)}" for key, value in wrong.items()]
    strange += [f"nothing declares {path}" for path in undeclared.sshd_files(found, right)]
    lines = undeclared.sshd_lines(found, right, wrong)
    strange += [f"{one.path}: {line}" for one in lines for line in one.lines]
    if right.sshd_files and undeclared.lost_include(found, lines):
        strange.append("/etc/ssh/sshd_config does not include its folder any more")
    _none_of(strange)
    return f"{len(found.settings)} settings, {len(found.configs)} files"


def _one_of(right: Declared, key: str) -> str:
    return " or ".join(sorted(right.sshd_settings[key]))


def _loose(context: Context) -> str:
    found, right = _read(context, "loose")
    _none_of([f"{one.path} has mode {one.mode}" for one in undeclared.loose(found, right)])
    return ", ".join(right.paths)


def _holds(context: Context) -> str:
    found, right = _read(context, "holds")
    _none_of([f"{name} is held" for name in undeclared.holds(found, right)])
    return f"{len(found.holds)} packages are held"


CHECKS: tuple[Check, ...] = (
    Check("every authorized key is declared", _keys),
    Check("only declared accounts have root's uid or a system password", _accounts),
    Check("groups that can become root have only declared members", _members),
    Check("every sudo rule is declared", _sudo),
    Check("sshd's effective settings are declared", _sshd),
    Check("nothing is setuid or writable by everyone in managed folders", _loose),
    Check("only declared packages are on hold", _holds),
)
