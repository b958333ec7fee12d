"""Checks of the backup role."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re
import tarfile
from functools import partial
from typing import Any, NoReturn

from pyrage import DecryptError, decrypt  # type: ignore[import-untyped]

from rackwright.backup import places
from rackwright.backup.catalogue import SUFFIX
from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.units import runs
from rackwright.model.backups import parts_of
from rackwright.roles.backup import texts
from rackwright.roles.backup.options import BackupOptions
from rackwright.secrets.identity import load_identities
from rackwright.secrets.store import store_of

_LIST = f"timeout 50 {places.PROGRAM} --list"
_REPORT = f"timeout 540 {places.PROGRAM} --report"  # it reads the newest backup
_SITE_MAX = 8 << 20
_NAMED_MAX = 3
_AHEAD_HOURS = 1


def _recipients(context: CheckContext[BackupOptions]) -> frozenset[str]:
    return texts.recipients_of(store_of(context.cluster), context.options)


def _files(context: CheckContext[BackupOptions]) -> str:
    cluster, node, options, recipients = context.cluster, context.node, context.options, _recipients(context)
    as_rendered(
        context,
        {
            places.PROGRAM: texts.program(),
            places.SETTINGS: texts.settings(cluster, node, options, recipients),
            places.RECIPIENTS: texts.recipients_file(recipients),
            f"{texts.UNITS}/{places.SERVICE}": texts.service(cluster, options),
            f"{texts.UNITS}/{places.TIMER}": texts.timer(cluster, options),
        },
        {places.PROGRAM: "755"},
    )
    return f"{options.every}, to {options.folder(cluster)}, for {len(recipients)} recipients"


def _site(context: CheckContext[BackupOptions]) -> str:
    wanted = texts.site_files(context.cluster, store_of(context.cluster))
    for name, text in wanted.items():
        path = f"{places.SITE}/{name}"
        holds_secret_text(context, path, text)
        has_access(context, path, "600", "root", "root")
    return ", ".join(wanted)


def _report(context: CheckContext[BackupOptions], command: str) -> dict[str, Any]:
    found = context.json(command)
    if not isinstance(found, dict) or not isinstance(found.get("backups"), list):
        raise Undetermined("the backup program prints no report")
    return found


def _place(context: CheckContext[BackupOptions]) -> str:
    """The program compares the kernel's mounts with the declared filesystem each time it runs."""
    found = _report(context, _LIST)
    place, filesystem = context.options.folder(context.cluster), context.options.filesystem(context.node)
    if found.get("refused") is not None:
        fail(printable(str(found["refused"]), 300))
    if broken := found.get("broken"):
        fail(f"{len(broken)} backups cannot be used: {printable(str(broken[0]), 200)}")
    on = f" on {filesystem.name}" if filesystem is not None else ""
    return f"{len(found['backups'])} backups in {place}{on}"


def _newest(context: CheckContext[BackupOptions], found: dict[str, Any]) -> dict[str, Any]:
    """The newest backup of this installation of the node."""
    if found.get("refused") is not None:
        raise Undetermined(printable(str(found["refused"]), 300))
    last = found.get("last")
    error = last.get("error") if isinstance(last, dict) else None
    mine = [one for one in found["backups"] if one.get("installation") == found.get("installation")]
    if not mine:
        fail(f"no backup exists: {printable(str(error or 'none was tried'), 300)}")
    newest: dict[str, Any] = mine[0]
    made, now = newest.get("made"), found.get("now")
    if not isinstance(made, (int, float)) or not isinstance(now, (int, float)):
        raise Undetermined(f"{newest.get('name')} has no creation time")
    hours = (now - made) / 3600
    if hours < -_AHEAD_HOURS:  # it would sort before every newer backup
        raise Undetermined(
            f"{newest.get('name')} is dated {-hours:.0f} h in the future: check the clock of {context.node.name}; if the "
            "clock was ahead when the backup was made, move the backup elsewhere"
        )
    if hours > context.options.max_age_hours:
        why = f": {printable(str(error), 200)}" if error else ""
        fail(f"{newest['name']} is {hours:.0f} h old, more than {context.options.max_age_hours:g} h{why}")
    return newest


def _not_as_declared(found: dict[str, Any], newest: dict[str, Any], what: str) -> NoReturn:
    """WARN until the next backup after a change of what is declared; FAIL where that one was not made."""
    changed, last = found.get("settings_changed"), found.get("last")
    attempt = last.get("attempt") if isinstance(last, dict) else None
    tried = isinstance(attempt, (int, float)) and isinstance(changed, (int, float)) and attempt > changed
    if isinstance(changed, (int, float)) and changed > newest["made"] and not tried:
        raise Warned(
            f"{what}, since it was made before the settings changed: the timer makes the next one, or "
            f"`systemctl start {places.SERVICE}`"
        )
    fail(what)


def _whole(context: CheckContext[BackupOptions]) -> str:
    """Its files are read and compared with its manifest, and have a stanza for each recipient."""
    found = _report(context, _REPORT)
    newest, recipients = _newest(context, found), _recipients(context)
    if damage := found.get("damage"):
        fail(f"{newest['name']}: {'; '.join(printable(str(one), 200) for one in damage[:_NAMED_MAX])}")
    there = {part["name"] for part in newest["parts"]}
    if missing := [part.about for part in parts_of(context.cluster, context.node) if part.name not in there]:
        _not_as_declared(found, newest, f"{newest['name']} lacks {', '.join(missing)}")
    if set(newest.get("recipients", ())) != recipients:
        what = f"{newest['name']} is encrypted to recipients other than the declared {len(recipients)}"
        _not_as_declared(found, newest, what)
    for name, count in sorted(found.get("headers", {}).items()):
        if count != len(recipients):
            fail(
                f"{name} of {newest['name']} is encrypted to {count or 'no'} recipients, not to {len(recipients)}"
            )
    size = sum(part["size"] for part in newest["parts"])
    age = (found["now"] - newest["made"]) / 3600
    return f"{newest['name']}, {age:.1f} h old: {', '.join(sorted(there))}; {size} bytes as in its manifest"


def _opens(context: CheckContext[BackupOptions]) -> str:
    """Its smallest part, with the identity that a restore uses."""
    found = _report(context, _LIST)
    newest = _newest(context, found)
    name = str(newest["name"])
    if not re.fullmatch(r"[A-Za-z0-9.-]+", name):
        raise Undetermined(f"{printable(name, 80)} is not the name of a backup")
    path = f"{context.options.folder(context.cluster)}/{name}/site{SUFFIX}"
    try:
        data = base64.b64decode(context.output("base64 %s", path), validate=False)
        content = gzip.GzipFile(fileobj=io.BytesIO(decrypt(data, load_identities()))).read(_SITE_MAX)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            names = [member.name for member in archive.getmembers() if member.isreg()]
    except DecryptError as error:
        _not_as_declared(found, newest, f"{path} cannot be decrypted with your identity: {error}")
    except (binascii.Error, ValueError, EOFError, OSError, tarfile.TarError) as error:
        fail(f"{path} decrypts but cannot be read: {error}")
    if context.cluster.path.name not in names:
        fail(f"{path} lacks {context.cluster.path.name}: it has {', '.join(names) or 'no file'}")
    return f"{name} decrypts with your identity: {', '.join(sorted(names))}"


CHECKS = (
    Check("backups are made on a timer", partial(runs, unit=places.TIMER)),
    Check("the backup settings are as declared", _files),
    Check("backups include the current cluster file and secrets store", _site),
    Check("backups go to the declared place", _place, live=True),
    Check("the newest backup is recent and complete", _whole, live=True, timeout_seconds=600),
    Check("your identity decrypts the newest backup", _opens, live=True),
)
