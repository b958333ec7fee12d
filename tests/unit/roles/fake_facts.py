"""What a scripted host answers to the facts that checks read."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping

from rackwright.facts.files import AtPath
from rackwright.facts.settings import Answer as SettingAnswer
from rackwright.facts.units import Unit
from tests.unit.roles.fake_host import Answer


def asked(command: object) -> str:
    """The line with which a check asks a fact."""
    return f"sh -c {shlex.quote(str(command))}"


def unit(
    name: str, active: str = "active", state: str = "enabled", load: str = "loaded"
) -> dict[str, Answer]:
    """systemd's answer about a unit: ActiveState, UnitFileState, LoadState."""
    told = f"LoadState={load}\nActiveState={active}\nUnitFileState={state}\nNeedDaemonReload=no\n"
    return {asked(Unit().command(name)): told}


def file(
    path: str,
    content: str | bytes | None,
    mode: str = "644",
    owner: str = "root",
    group: str = "root",
    *,
    digest_only: bool = False,
) -> dict[str, Answer]:
    """A file with this content; None: nothing is there."""
    question = asked(AtPath().command(path, digest_only=digest_only))
    if content is None:
        return {question: "absent\n"}
    raw = content.encode() if isinstance(content, str) else content
    told = f"file|{mode}|{owner}|{group}|{len(raw)}\n{hashlib.sha256(raw).hexdigest()}  -\n"
    return {question: told if digest_only else told + base64.encodebytes(raw).decode()}


def link(path: str, target: str) -> dict[str, Answer]:
    """A symbolic link."""
    told = f"link|777|root|root|{len(target)}\n{target}\n"
    return {asked(AtPath().command(path, digest_only=only)): told for only in (True, False)}


def answer(read: str, printed: str) -> dict[str, Answer]:
    """What a shell command prints that a deploy reads with settings.setting."""
    return {asked(SettingAnswer().command(read)): printed}


def files(texts: Mapping[str, str]) -> dict[str, Answer]:
    """Files of root's with these texts, by path."""
    return {line: answer for path, text in texts.items() for line, answer in file(path, text).items()}
