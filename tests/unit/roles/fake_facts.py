"""What a scripted host answers to the facts that checks read."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping, Sequence

from rackwright.facts.files import AtPath, Tree
from rackwright.facts.packages import Packages
from rackwright.facts.settings import Answer as SettingAnswer
from rackwright.facts.units import Unit
from rackwright.facts.users import UnixGroup, User
from rackwright.osfamily.known import OsFamily
from tests.unit.roles.fake_host import Answer


def asked(command: object) -> str:
    """The line with which a check asks a fact."""
    return f"sh -c {shlex.quote(str(command))}"


def unit(
    name: str, active: str = "active", state: str = "enabled", load: str = "loaded"
) -> dict[str, Answer]:
    """systemd's answer about a unit: ActiveState, UnitFileState, LoadState."""
    reported = f"LoadState={load}\nActiveState={active}\nUnitFileState={state}\nNeedDaemonReload=no\n"
    return {asked(Unit().command(name)): reported}


def file(
    path: str,
    content: str | bytes | None,
    mode: str = "644",
    owner: str = "root",
    group: str = "root",
    *,
    digest_only: bool = False,
) -> dict[str, Answer]:
    """A file with this content; None: nothing is there. `digest_only`: the host does not answer with its text."""
    digest, whole = (asked(AtPath().command(path, digest_only=only)) for only in (True, False))
    if content is None:
        return {digest: "absent\n"} if digest_only else {digest: "absent\n", whole: "absent\n"}
    raw = content.encode() if isinstance(content, str) else content
    reported = f"file|{mode}|{owner}|{group}|{len(raw)}\n{hashlib.sha256(raw).hexdigest()}  -\n"
    if digest_only:
        return {digest: reported}
    return {digest: reported, whole: reported + base64.encodebytes(raw).decode()}


def tree(folder: str, lines: Sequence[str]) -> dict[str, Answer]:
    """A directory with all below it, as `declared_tree` has it."""
    return {asked(Tree().command(folder)): "\n".join(lines)}


def files(texts: Mapping[str, str | None]) -> dict[str, Answer]:
    """Files of root's with these texts, by path; None: nothing is there."""
    return {line: answer for path, text in texts.items() for line, answer in file(path, text).items()}


def link(path: str, target: str) -> dict[str, Answer]:
    """A symbolic link."""
    reported = f"link|777|root|root|{len(target)}\n{target}\n"
    return {asked(AtPath().command(path, digest_only=only)): reported for only in (True, False)}


def answer(read: str, printed: str) -> dict[str, Answer]:
    """What a shell command prints that a deploy reads with settings.setting."""
    return {asked(SettingAnswer().command(read)): printed}


def account(
    user: str,
    uid: int | None,
    groups: tuple[str, ...] = (),
    shell: str = "/bin/bash",
) -> dict[str, Answer]:
    """A user whose primary group has its name and number; `uid` None: getent knows none of that name."""
    question = asked(User().command(user))
    if uid is None:
        return {question: "", f"getent passwd {user}": (2, "", "")}
    line = f"{user}:x:{uid}:{uid}::/home/{user}:{shell}\n"
    return {
        question: f"{line}{user}\n{' '.join((user, *groups))}\n",
        f"getent passwd {user}": line,
        **group(user, uid),
    }


def group(name: str, gid: int) -> dict[str, Answer]:
    """A group."""
    return {asked(UnixGroup().command(name)): f"{name}:x:{gid}:\n"}


def installed(family: OsFamily, names: Sequence[str], *, missing: Sequence[str] = ()) -> dict[str, Answer]:
    """The answer of the package tool about `names`: installed at version 1, but for those missing."""
    of_itself = {"dpkg": "dpkg\t1.22.21\n", "rpm": "rpm-4.16\n"}[family.query_owner]
    reported = "".join(f"have {name} 1 ii\n" for name in names if name not in missing)
    question = asked(Packages().command(family.name, tuple(names)))
    return {family.query_self: of_itself, question: reported}
