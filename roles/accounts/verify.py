"""Checks of the accounts role."""

from __future__ import annotations

from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, each, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text, text_of
from rackwright.claims.units import software_runs
from rackwright.facts.settings import Answer
from rackwright.model.cluster import Node
from rackwright.model.interfaces import NamesJobUsers
from rackwright.roles.accounts import pam, servers, texts
from rackwright.roles.accounts.options import FIRST_PERSON, SSHD_CONF, SUDOERS, AccountsOptions
from rackwright.roles.accounts.reading import (
    OVERFLOW_UID,
    Entry,
    asks_sssd,
    local_in_range,
    makes_homes,
    may_become_root,
    members_of,
    parse_passwd,
)
from rackwright.secrets.store import store_of

Context = CheckContext[AccountsOptions]
_SOME_MISSING = 2
_NAMED_MAX = 5


def _settings(context: Context) -> str:
    options = context.options
    password = (
        None if options.bind is None else store_of(context.cluster).get(options.bind.stored_as).reveal()
    )
    wanted = texts.sssd_conf(context.cluster, context.node, options, password)
    holds_secret_text(context, texts.CONF, wanted)
    mode, group = context.node.os.sssd_conf
    has_access(context, texts.CONF, mode, "root", group)
    as_rendered(context, {texts.CA_FILE: texts.ca_text(context.cluster, options)})
    more = context.output("find %s -name %s", texts.SNIPPETS, "*.conf").split()
    if more:
        fail(f"{', '.join(sorted(more))} changes SSSD's settings but is not declared")
    return f"{texts.CONF}, and no other file"


def _order(context: Context) -> str:
    found = context.fact(Answer, texts.NSSWITCH_READ)
    if found != texts.NSSWITCH_RIGHT:
        right = texts.NSSWITCH_RIGHT.splitlines()
        wrong = [line for line in (found or "").splitlines() if line not in right]
        fail(
            f"{texts.NSSWITCH} has {'; '.join(wrong) or 'no line of passwd or group'}, not files and then sss"
        )
    return "users and groups: files, then sss"


def _pam(context: Context) -> str:
    """Without it, every user with a key in the directory gets in, member of an allowed group or not."""
    family = context.node.family
    account, session = pam.account_file(family), pam.session_file(family)
    if not asks_sssd(text_of(context, account)):
        fail(f"{account} does not ask SSSD: every user of the directory with a key may log in")
    makes = makes_homes(text_of(context, session))
    if makes is not context.options.make_home:
        fail(f"{session} {'makes' if makes else 'does not make'} missing homes at login")
    return f"{account} asks SSSD who may log in" + ("; homes are made at login" if makes else "")


def _servers(context: Context) -> str:
    answers = servers.ask(context)
    bad = [str(one) for one in answers if not one.ok]
    if bad:
        good = [one.uri for one in answers if one.ok]
        fail("; ".join(bad) + (f" ({', '.join(good)} answers)" if good else ""))
    return "; ".join(map(str, answers))


def _probe(context: Context) -> str:
    """Without a question to the node's files, which may have a user of this name."""
    options, name = context.options, context.options.probe_user or ""
    found = _directory_users(context, (name,)).get(name)
    answers = servers.ask(context)
    silent = "; ".join(map(str, answers)) if not any(one.ok for one in answers) else None
    if found is None:
        fail(f"the directory's user {name} does not exist here" + (f": {silent}" if silent else ""))
    if not options.min_id <= found.uid <= options.max_id:
        fail(f"{name} has uid {found.uid}, outside of {options.min_id} to {options.max_id}")
    if silent is not None:
        raise Warned(f"{name} has uid {found.uid} from the cache; no server answers: {silent}")
    return f"{name} has uid {found.uid}, home {found.home}"


def _keys(context: Context) -> str:
    """By sshd's own evaluation of its Match blocks, for a user of the directory and for those of the node."""
    options = context.options
    program = texts.keys_program(options)
    as_rendered(
        context,
        {
            SSHD_CONF: texts.sshd_conf(context.cluster, context.node, options),
            texts.KEYS_PROGRAM: program,
        },
        {texts.KEYS_PROGRAM: "755"},
    )
    wanted = texts.KEYS_PROGRAM if program is not None else "none"
    user = options.probe_user or "rackwright-directory-user"
    for name, right in ((user, wanted), ("root", "none"), (context.cluster.ssh.user, "none")):
        found = _sshd_setting(context, name, "authorizedkeyscommand")
        if found != right:
            fail(f"sshd's authorizedkeyscommand of {name} is {found}, not {right}")
    if options.probe_user is None or wanted == "none":
        return f"authorizedkeyscommand is {wanted}"
    keys = context.output("timeout %s %s %s", "30", texts.KEYS_PROGRAM, user).splitlines()
    if not keys:
        raise Warned(f"{user} has no key in the attribute {options.ssh_key_attribute}")
    return f"{len(keys)} key{'s' if len(keys) > 1 else ''} of {user}"


def _sshd_setting(context: Context, user: str, key: str) -> str:
    output = context.output("sshd -T -C user=%s,host=localhost,addr=127.0.0.1", user)
    for line in output.splitlines():
        name, _, value = line.partition(" ")
        if name.lower() == key:
            return value
    raise Undetermined(f"`sshd -T` does not mention {key}")


def _no_overlap(context: Context) -> str:
    options = context.options
    local = parse_passwd(context.output("getent -s files passwd"))
    if "root" not in local:
        raise Undetermined("`getent -s files passwd` does not print root")
    if wrong := local_in_range(local, options.min_id, options.max_id):
        named = ", ".join(f"{one.name} ({one.uid})" for one in wrong[:_NAMED_MAX])
        fail(f"local users have numbers of the directory: {named}")
    persons = [one.name for one in local.values() if one.uid >= FIRST_PERSON and one.uid != OVERFLOW_UID]
    both = sorted(_directory_users(context, persons)) if persons else []
    if both:
        raise Warned(
            f"the node and the directory both have {', '.join(both[:_NAMED_MAX])}: the local ones take precedence"
        )
    return f"{len(local)} local users"


def _directory_users(context: Context, names: tuple[str, ...] | list[str]) -> dict[str, Entry]:
    """What SSSD answers about these names; those it does not have are left out."""
    result = context.host.run("timeout 45 getent -s sss passwd" + " %s" * len(names), *names)
    if result.rc not in (0, _SOME_MISSING):
        raise Undetermined(
            f"`getent -s sss passwd` cannot be read: {result.stderr.strip() or f'status {result.rc}'}"
        )
    return parse_passwd(str(result.stdout))


def _sudo(context: Context) -> str:
    options = context.options
    as_rendered(context, {SUDOERS: texts.sudoers(options)}, {SUDOERS: "440"})
    found_groups = []
    for group in options.sudo_groups:
        result = context.host.run("timeout 45 getent -s sss group %s", group)
        if result.rc == _SOME_MISSING:
            fail(f"the directory has no group {group}, whose members should become root")
        if result.rc != 0:
            raise Undetermined(f"`getent group {group}`: {result.stderr.strip() or f'status {result.rc}'}")
        for member in members_of(str(result.stdout))[:_NAMED_MAX]:
            if not may_become_root(context.output("env LC_ALL=C sudo -l -U %s", member)):
                fail(f"{member} of {group} may not become root without a password")
        found_groups.append(f"{group}: {', '.join(members_of(str(result.stdout))) or 'no members'}")
    return "; ".join(found_groups) or "none"


def _job_users(node: Node) -> tuple[str, ...]:
    named = node.offers(NamesJobUsers)
    return tuple(named.users) if named is not None else ()


def _jobs(context: Context) -> str:
    names = _job_users(context.node)
    found = _passwd(context, names)
    if missing := [name for name in names if name not in found]:
        fail(f"neither the node nor the directory has {', '.join(missing[:_NAMED_MAX])}")
    return f"{len(names)} users"


def _passwd(context: Context, names: tuple[str, ...], node: Node | None = None) -> dict[str, Entry]:
    host = context.host if node is None else context.on(node.name)
    of = "" if node is None else f"{node.name}: "
    result = host.run("timeout 45 getent passwd" + " %s" * len(names), *names)
    if result.rc not in (0, _SOME_MISSING):
        raise Undetermined(f"{of}`getent passwd`: {result.stderr.strip() or f'status {result.rc}'}")
    return parse_passwd(str(result.stdout))


def _one_number(context: Context) -> str:
    """Munge, Slurm and shared files know users by number."""
    nodes = context.cluster.running("accounts")
    probe = [context.options.probe_user] if context.options.probe_user else []
    names = tuple(dict.fromkeys((*probe, *(name for node in nodes for name in _job_users(node)))))
    if not names:
        raise Undetermined("no user is known by name: declare `probe_user`")
    answers = each(lambda node: _passwd(context, names, node), nodes)
    wrong = []
    for name in names:
        uids = {found[name].uid if name in found else None for found in answers}
        if uids == {None}:
            wrong.append(f"{name} is on no node")
        elif len(uids) > 1:
            by_node = ", ".join(
                f"{found[name].uid if name in found else 'missing'} on {node.name}"
                for node, found in zip(nodes, answers, strict=True)
            )
            wrong.append(f"{name} is {by_node}")
    if wrong:
        fail("; ".join(wrong[:_NAMED_MAX]))
    return f"{len(names)} users on {len(nodes)} nodes"


def _has_probe(node: Node, options: AccountsOptions) -> bool:
    return options.probe_user is not None


def _has_job_users(node: Node, options: AccountsOptions) -> bool:
    return bool(_job_users(node))


def _has_names(node: Node, options: AccountsOptions) -> bool:
    return _has_probe(node, options) or _has_job_users(node, options)


CHECKS: tuple[Check, ...] = (
    Check("SSSD is running and enabled at boot", partial(software_runs, software="sssd"), settle_seconds=10),
    Check("SSSD's settings are as declared", _settings),
    Check("users and groups are looked up in files, then in the directory", _order),
    Check("PAM asks SSSD who may log in", _pam),
    Check(
        "every server of the directory answers with a certificate that the node accepts",
        _servers,
        timeout_seconds=90,
        live=True,
    ),
    Check(
        "the directory's probe user is found",
        _probe,
        settle_seconds=10,
        timeout_seconds=120,
        applies=_has_probe,
        live=True,
    ),
    Check("sshd looks up keys in the directory for directory users only", _keys, live=True),
    Check("local users share no number or name with the directory", _no_overlap, live=True),
    Check("the directory's groups that may become root are as declared", _sudo, live=True),
    Check("users known to the workload manager exist", _jobs, applies=_has_job_users, live=True),
    Check(
        "users have the same number on every node",
        _one_number,
        scope="cluster",
        timeout_seconds=120,
        applies=_has_names,
        live=True,
    ),
)
