"""Which of a node's traces are undeclared: pure functions that plan and verify share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rackwright.facts import sshd_text, sudoers
from rackwright.facts.lines import lines_of
from rackwright.facts.traces import SSHD_CONFIG, SSHD_FOLDER, Account, KeyFile, Loose, Member, Traces
from rackwright.model.authorized_keys import parse_key


@dataclass(frozen=True)
class Declared:
    """What is meant to be on a node, of all that an intruder could leave."""

    login: str
    """The user that rackwright logs in as."""
    port: int = 22
    """Where it logs in; a node behind a translated port listens elsewhere."""
    users: tuple[str, ...] = ()
    """Accounts besides those of the system whose keys are judged: who may become root."""
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By user: key lines and fingerprints."""
    key_prefixes: Mapping[str, str] = field(default_factory=dict)
    """By user: how each line of its keys begins, where the keys differ between sites."""
    login_key: str | None = None
    """Fingerprint of the key that rackwright logs in with; None: not known."""
    key_files: frozenset[str] = frozenset()
    """Files of keys that another operation compares whole."""
    uid0: frozenset[str] = frozenset()
    system_logins: frozenset[str] = frozenset()
    root_groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Right members, besides root and the login user, of each group whose members can become root."""
    compared_groups: frozenset[str] = frozenset()
    """Groups whose lines in /etc/group another operation compares."""
    sudoers: frozenset[str] = frozenset()
    """Files that another operation compares, or that the site allows."""
    login_has_sudo: bool = False
    """Whether an operation writes the rights of the login user; otherwise the node's own rules for it are right."""
    login_needs_sudo: bool = True
    sshd_files: frozenset[str] = frozenset()
    sshd_settings: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Effective values that are right, by setting in lower case; a setting that is missing may have any."""
    sshd_match: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()

    def keys_of(self, user: str) -> frozenset[str]:
        """Key lines and fingerprints that are right for a user; rackwright's own is for every account."""
        own = frozenset() if self.login_key is None else frozenset({self.login_key})
        return self.keys.get(user, frozenset()) | own

    @property
    def judges_login_keys(self) -> bool:
        """Whether it is known with which key rackwright logs in: otherwise its user's keys are left alone."""
        return self.login_key is not None or bool(self.keys.get(self.login))


@dataclass(frozen=True)
class Lines:
    """Lines of a file that nothing declares, and the text without them."""

    path: str
    user: str
    lines: tuple[str, ...]
    rest: str


_NOT_A_KEY = "a line that is not a key"


def keys(found: Traces, declared: Declared) -> list[tuple[KeyFile, tuple[str, ...], str]]:
    """(file, names of what nothing declares in it, its text without that)."""
    strange = []
    seen = set(declared.key_files)
    for file in found.keys:
        if file.path in seen or (file.user == declared.login and not declared.judges_login_keys):
            continue
        seen.add(file.path)
        prefix, right = declared.key_prefixes.get(file.user), declared.keys_of(file.user)
        removed: list[str] = []
        kept: list[str] = []
        for line in lines_of(file.text):
            name = None if prefix is not None and line.startswith(prefix) else _foreign_key(line, right)
            if name is None:
                kept.append(line)
            else:
                removed.append(name)
        if removed:
            strange.append((file, tuple(removed), "".join(f"{line}\n" for line in kept)))
    return strange


def _foreign_key(line: str, right: frozenset[str]) -> str | None:
    """Names the key of a line that is not right, and a line that is neither a key nor a comment."""
    if not line.strip() or line.lstrip(" \t").startswith("#"):
        return None
    key = parse_key(line)
    if key is None:
        return _NOT_A_KEY  # sshd may read more from it than the parser does
    return None if key.is_among(right) else f"authorized key {key}"


def key_links(found: Traces, declared: Declared) -> list[KeyFile]:
    """Links in place of key files, of system accounts."""
    return [file for file in found.key_links if file.path not in declared.key_files]


def roots(found: Traces, declared: Declared) -> tuple[list[Account], list[Account]]:
    """Accounts with uid 0 that nothing declares: (open ones, closed ones)."""
    strange = [one for one in found.accounts if one.uid == 0 and one.name not in {"root", *declared.uid0}]
    return [one for one in strange if not one.is_closed], [one for one in strange if one.is_closed]


def passwords(found: Traces, declared: Declared) -> list[Account]:
    """root and system accounts with a password that works, and accounts of any kind that need none.

    Of accounts with uid 0, `roots` judges all but root.
    """
    return [
        one
        for one in found.accounts
        if one.name not in declared.system_logins
        and (
            one.password == "empty"
            or (one.password == "open" and (0 < one.uid < _FIRST_PERSON or one.name == "root"))
        )
    ]


_FIRST_PERSON = 1000


def members(found: Traces, declared: Declared) -> list[Member]:
    """Members that nothing declares of groups whose members can become root."""
    always = {"root", declared.login, *declared.uid0}
    return [
        one
        for one in found.members
        if one.user not in always | declared.root_groups.get(one.group, frozenset())
        and not (one.through == one.group and one.group in declared.compared_groups)
    ]


def sudo_rules(found: Traces, declared: Declared) -> list[Lines]:
    """Rules of sudo that nothing declares, by file."""
    strange = []
    for path, text in found.sudoers.items():
        if path in declared.sudoers:
            continue
        removed: list[str] = []
        kept: list[str] = []
        for whole, rule in sudoers.rules(text):
            if _is_right(rule, declared):
                kept.append(whole)
            else:
                removed.append(rule)
        if removed:
            strange.append(Lines(path, "root", tuple(removed), "".join(f"{line}\n" for line in kept)))
    return strange


def login_would_lose_sudo(found: Traces, declared: Declared) -> bool:
    """Whether no rule would be left that gives the login user its right to become root without a password."""
    if not declared.login_needs_sudo or not sudo_rules(found, declared):
        return False
    left = (
        rule
        for path, text in found.sudoers.items()
        for _, rule in sudoers.rules(text)
        if path in declared.sudoers or _is_right(rule, declared)
    )
    groups = {f"%{one.group}" for one in found.members if one.user == declared.login}
    return not any(sudoers.makes_root(rule, {declared.login, *groups}) for rule in left)


def _is_right(rule: str, declared: Declared) -> bool:
    if not rule or sudoers.is_stock(rule):
        return True
    return not declared.login_has_sudo and sudoers.is_of(rule, declared.login)


_SHIPPED_CONFIGS = frozenset(
    f"{SSHD_FOLDER}/{name}.conf"
    for name in (
        "01-permitrootlogin",  # Anaconda
        "20-systemd-userdb",  # systemd 256 and newer
        "40-redhat-crypto-policies",
        "50-redhat",
        "50-cloud-init",
        "60-cloudimg-settings",  # Ubuntu's cloud images
        "90-lab",  # nodes of `rackwright lab`
    )
)
"""Files that installers and distributions write; only what they make of sshd's effective settings counts."""
_SHIPPED_INCLUDES = (
    sshd_text.FOLDER_PATTERN,
    "/etc/crypto-policies/back-ends/opensshserver.config",
)


def sshd_files(found: Traces, declared: Declared) -> list[str]:
    """Files that sshd reads and nothing declares."""
    known = declared.sshd_files | _SHIPPED_CONFIGS | {SSHD_CONFIG}
    return [path for path in found.configs if path not in known]


def sshd_settings(found: Traces, declared: Declared) -> dict[str, str]:
    """Effective settings that are not as declared: the value by setting."""
    return {
        key: value
        for key, value in found.settings.items()
        if key in declared.sshd_settings and value not in declared.sshd_settings[key]
    }


def sshd_lines(found: Traces, declared: Declared, wrong: Mapping[str, str]) -> list[Lines]:
    """Lines of the distribution's files: what makes these settings wrong, Match blocks, includes.

    Of a block that nothing declares, Include and Subsystem stay: the file's own follow a Match placed above them.
    """
    strange = []
    for path, text in found.configs.items():
        if path != SSHD_CONFIG and path not in _SHIPPED_CONFIGS - declared.sshd_files:
            continue
        removed: list[str] = []
        kept: list[str] = []
        in_block = False
        for line in lines_of(text):
            key, value = sshd_text.setting(line)
            if key == "match":
                in_block = f"Match {value}" not in declared.sshd_match
            if key == "include":
                foreign = any(one not in _SHIPPED_INCLUDES for one in value.split())
            else:
                right = declared.sshd_settings.get(key, frozenset())
                foreign = (in_block and key not in ("", "subsystem")) or (key in wrong and value not in right)
            if foreign:
                removed.append(line.strip())
            else:
                kept.append(line)
        if removed:
            strange.append(Lines(path, "root", tuple(removed), "".join(f"{line}\n" for line in kept)))
    return strange


def lost_include(found: Traces, lines: Iterable[Lines] = ()) -> bool:
    """Whether sshd's main file does not read the folder where the declared settings are, once these lines are gone."""
    main = next((one.rest for one in lines if one.path == SSHD_CONFIG), found.configs.get(SSHD_CONFIG, ""))
    return not sshd_text.reads_folder(main)


def lost_port(found: Traces, declared: Declared, files: Iterable[str], lines: Iterable[Lines]) -> str | None:
    """The file without whose settings, files or lines, sshd no longer listens where rackwright logs in."""
    rests = {one.path: one.rest for one in lines}
    left = {path: rests.get(path, text) for path, text in found.configs.items() if path not in set(files)}
    before = found.ports | sshd_text.ports(found.configs.values())
    if declared.port not in before or declared.port in sshd_text.ports(left.values()):
        return None
    changed = [path for path in found.configs if path not in left or path in rests]
    naming = (path for path in changed if declared.port in sshd_text.ports([found.configs[path]]))
    return next(naming, changed[0] if changed else None)


def loose(found: Traces, declared: Declared) -> list[Loose]:
    """Setuid and setgid files, and what everyone may write."""
    return [one for one in found.loose if one.path not in declared.loose]


def holds(found: Traces, declared: Declared) -> list[str]:
    """Held packages."""
    return [name for name in found.holds if name not in declared.holds]
