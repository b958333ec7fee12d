"""Removes an intruder's means to come back; the plan shows everything that is undeclared."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.data import site_of
from rackwright.facts import undeclared
from rackwright.facts.lines import lines_of
from rackwright.facts.traces import SSHD_CONFIG, SSHD_FOLDER, SUDOERS, NodeTraces, Traces
from rackwright.facts.undeclared import Declared, Lines
from rackwright.operations.quarantine import rewrite, take_away, take_bits
from rackwright.plan.changes import Change, pending, record, text_diff

_NOLOGIN = "/usr/sbin/nologin"
_NO_GROUP = 65534
"""The group nogroup or nobody of the OS families: the primary group of a user whose group is removed."""
_AT_ONCE = 25
"""Files in one command: a path has 4096 bytes at most, and an argument 128 KiB (execve(2), read 2026-11-23)."""


def _traces(declared: Declared, *parts: str) -> Traces:
    """What is on the node; OperationError where one of these parts could not be read."""
    found: Traces = host.get_fact(
        NodeTraces,
        users=declared.users,
        groups=tuple(declared.root_groups),
        paths=declared.paths,
        held=site_of().node.family.held,
    )
    for part in parts:
        if part in found.unknown:
            raise OperationError(f"the node could not {found.unknown[part]}")
    return found


@operation()
def authorized_keys(declared: Declared) -> Generator[StringCommand, None, None]:
    """Accounts that may become root, and those of the system, have only declared keys."""
    found = _traces(declared, "accounts", "keys")
    strange, links = undeclared.keys(found, declared), undeclared.key_links(found, declared)
    if not strange and not links:
        host.noop("every authorized key is declared")
        return
    homes = {account.name: account.home for account in found.accounts if account.uid}
    for file, removed, _ in strange:
        record(*(Change("file", file.path, f"{name} of {file.user}", None) for name in removed))
    for file in links:
        record(Change("file", file.path, f"link in place of the keys of {file.user}", None))
    for file, _, rest in strange:
        at_home = file.path.startswith(f"{homes.get(file.user, '/')}/")
        yield rewrite(file.path, rest, mode="600", user=file.user if at_home else "root")
    if links:
        yield take_away(*(file.path for file in links))


@operation()
def accounts(declared: Declared) -> Generator[StringCommand, None, None]:
    """Only root has uid 0, and neither it nor an account of the system has a password; accounts are closed, never deleted."""
    found = _traces(declared, "accounts")
    roots, passwords = undeclared.roots(found, declared)[0], undeclared.passwords(found, declared)
    if not roots and not passwords:
        host.noop("no undeclared account can become root or has a password")
        return
    for account in roots:
        record(Change("user", account.name, f"uid 0, password {account.password}", "uid 0, closed"))
    for account in passwords:
        record(Change("user", account.name, f"password {account.password}", "password locked"))
    for account in roots:
        yield StringCommand(f"usermod --lock --expiredate 1 --shell {_NOLOGIN} {quote(account.name)}")
    for account in passwords:
        if account not in roots:
            # a locked account cannot log in with a key either where sshd runs without PAM (sshd(8), read 2026-11-23)
            how = "--password '*'" if account.name == declared.login else "--lock"
            yield StringCommand(f"usermod {how} {quote(account.name)}")


@operation()
def group_members(declared: Declared) -> Generator[StringCommand, None, None]:
    """Groups whose members can become root have only declared members."""
    strange = undeclared.members(_traces(declared, "accounts"), declared)
    if not strange:
        host.noop("every member of a group that can become root is declared")
        return
    for one in strange:
        record(Change("user", one.user, f"member of group {one.group}", f"not in group {one.group}"))
    for one in strange:
        if one.through:
            yield StringCommand(f"gpasswd --delete {quote(one.user)} {quote(one.through)}")
        else:
            yield StringCommand(f"usermod --gid {_NO_GROUP} {quote(one.user)}")


@operation()
def sudo_rules(declared: Declared) -> Generator[StringCommand, None, None]:
    """sudo has only declared rules, the distribution's own, and those of the login user where no role declares it."""
    found = _traces(declared, "sudoers")
    strange = undeclared.sudo_rules(found, declared)
    if not strange:
        host.noop("every rule of sudo is declared")
        return
    written = pending(host, tuple(declared.sudoers)) and not state.is_executing
    if not written and undeclared.login_would_lose_sudo(found, declared):
        raise OperationError(
            f"{declared.login}, as which rackwright logs in, has its right to become root from a rule that nothing "
            f"declares ({strange[0].path}: {strange[0].lines[0]}); declare the user in the role access with "
            f"`sudo: true`, or name the file under `allowed_sudoers`"
        )
    yield from _without(strange, f"{SUDOERS}.d", mode="440", validate="visudo -cqf %s")


def _without(
    strange: list[Lines], folder: str, *, mode: str, validate: str
) -> Generator[StringCommand, None, None]:
    """Files below the folder of which nothing but comments is left go; the others are written without the lines."""
    gone = [one for one in strange if one.path.startswith(f"{folder}/") and _is_empty(one.rest)]
    for one in strange:
        before = f"{one.path}: {'; '.join(one.lines)}"
        record(Change("file", one.path, before, None if one in gone else "without these lines"))
    for one in strange:
        yield (
            take_away(one.path) if one in gone else rewrite(one.path, one.rest, mode=mode, validate=validate)
        )


def _is_empty(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in lines_of(text))


@operation()
def sshd_settings(declared: Declared, unit: str) -> Generator[StringCommand, None, None]:
    """sshd reads only declared files, and its effective settings are the declared ones."""
    found = _traces(declared, "sshd")
    # until an operation of this run has written sshd's settings, the effective ones are not ours
    early = bool(pending(host, tuple(declared.sshd_files)))
    wrong = {} if early else undeclared.sshd_settings(found, declared)
    files = undeclared.sshd_files(found, declared)
    lines = undeclared.sshd_lines(found, declared, wrong)
    include = bool(declared.sshd_files) and undeclared.lost_include(found, lines)
    if not (files or lines or include or wrong):
        host.noop("sshd's effective settings are as declared")
        return
    if not (files or lines or include):
        key, value = next(iter(wrong.items()))
        raise OperationError(
            f"sshd's {key} is {value}, but no line of its files sets it; see `sshd -T` on the node"
        )
    only = undeclared.lost_port(found, declared, files, lines)
    if only is not None:
        raise OperationError(
            f"without {only}, which nothing declares, sshd no longer listens on port {declared.port}, where rackwright "
            f"logs in; name the file under `allowed_sshd_includes`, or set the port in {SSHD_CONFIG}"
        )
    for path in files:
        diff = text_diff(path, found.configs[path], None)
        record(Change("file", path, "settings of sshd that nothing declares", None, diff=diff))
    for key, value in wrong.items():
        record(Change("setting", f"sshd's {key}", value, " or ".join(sorted(declared.sshd_settings[key]))))
    main = next((one.rest for one in lines if one.path == SSHD_CONFIG), found.configs.get(SSHD_CONFIG, ""))
    if include:
        record(Change("file", SSHD_CONFIG, "without its Include", f"Include {SSHD_FOLDER}/*.conf"))
        yield rewrite(
            SSHD_CONFIG, f"Include {SSHD_FOLDER}/*.conf\n{main}", mode="644", validate="sshd -t -f %s"
        )
        lines = [one for one in lines if one.path != SSHD_CONFIG]
    if files:
        yield take_away(*files)
    yield from _without(lines, SSHD_FOLDER, mode="644", validate="sshd -t -f %s")
    yield StringCommand(f"sshd -t && systemctl try-reload-or-restart {quote(unit)}")


@operation()
def loose_files(declared: Declared) -> Generator[StringCommand, None, None]:
    """Below the declared paths, only declared files are setuid or setgid, and nothing may be written by everyone."""
    strange = undeclared.loose(_traces(declared, "loose"), declared)
    if not strange:
        host.noop("no undeclared file is setuid or writable by everyone")
        return
    bits = {"d": "o-w", "f": "ug-s,o-w"}
    for one in strange:
        record(
            Change("file" if one.kind == "f" else "directory", one.path, f"mode {one.mode}", bits[one.kind])
        )
    # folders first: in one that everyone may write, a user could exchange what is in it
    order = sorted(strange, key=lambda one: one.kind)
    for start in range(0, len(order), _AT_ONCE):
        yield take_bits(*((one.kind, one.path, bits[one.kind]) for one in order[start : start + _AT_ONCE]))


@operation()
def holds(declared: Declared) -> Generator[StringCommand, None, None]:
    """Only declared packages are on hold."""
    strange = undeclared.holds(_traces(declared, "holds"), declared)
    if not strange:
        host.noop("every package on hold is declared")
        return
    record(*(Change("package", name, "held", "not held") for name in strange))
    yield StringCommand(site_of().node.family.unhold(strange))
