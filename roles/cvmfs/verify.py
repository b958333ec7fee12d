"""Checks of the cvmfs role: every repository answers, through the declared proxies, from the declared cache."""

from __future__ import annotations

import re

from rackwright.claims import patient
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.packages import installed
from rackwright.claims.units import runs
from rackwright.facts.mounts import MountTable
from rackwright.mounts import live
from rackwright.osfamily.names import names
from rackwright.roles.cvmfs import texts
from rackwright.roles.cvmfs.options import CvmfsOptions

Context = CheckContext[CvmfsOptions]
_KILLED = (124, 137)
"""Exit statuses of timeout(1)."""
_PROBE = "timeout -s KILL 60 cvmfs_config probe %s"
_SHOW = "timeout -s KILL 30 cvmfs_config showconfig %s"
_SETTING = re.compile(r"(?P<key>CVMFS_[A-Z_]+)=(?P<value>'[^']*'|\S*)(\s+#.*)?")
_SECONDS = 20
_LOOK = """
import os
reading = len(os.listdir(arguments[0]))
"""


def _files(context: Context) -> str:
    installed(context, (*names(context.node.family, "cvmfs").packages, *context.options.packages))
    for name in context.options.mounted:
        runs(context, texts.automount(name))
    return as_rendered(context, texts.files(context.cluster, context.node, context.options))


def settings(text: str) -> dict[str, str]:
    """What `cvmfs_config showconfig` prints: KEY=VALUE and a comment with the file it is from."""
    found = (_SETTING.fullmatch(line.strip()) for line in text.splitlines())
    return {match["key"]: match["value"].strip("'") for match in found if match is not None}


def _settings(context: Context) -> str:
    """A package's file that is read later can override rackwright's."""
    wanted = {
        "CVMFS_HTTP_PROXY": texts.proxy(context.cluster, context.node, context.options),
        "CVMFS_CACHE_BASE": context.options.cache,
        "CVMFS_QUOTA_LIMIT": str(context.options.cache_mib),
    }
    for name in context.options.mounted:
        found = settings(context.output(_SHOW, name))
        if not found:
            raise Undetermined(f"`cvmfs_config showconfig {name}` prints no settings")
        for key, value in wanted.items():
            if found.get(key) != value:
                fail(f"{name} has {key} {found.get(key, 'unset')}, not {value}")
    return ", ".join(f"{key}={value}" for key, value in wanted.items())


def _answer(context: Context) -> str:
    mounted = []
    for name in context.options.mounted:
        result = context.host.run(_PROBE, name)
        if result.rc in _KILLED:
            raise Undetermined(f"{name} does not answer within 60 s")
        if "Failed" in result.stdout:
            fail(f"{texts.path(name)} cannot be mounted: `cvmfs_config probe` fails")
        if result.rc != 0 or "OK" not in result.stdout:
            raise Undetermined(
                f"`cvmfs_config probe {name}` exited {result.rc}: {result.stderr.strip() or 'no output'}"
            )
        mounted.append(_mounted(context, name))
    return ", ".join(mounted)


def _mounted(context: Context, name: str) -> str:
    path = texts.path(name)
    try:
        count = patient.run(context, path, _LOOK, path, seconds=_SECONDS)
    except patient.AnswerError as error:
        fail(f"{path} cannot be read: {error}")
    entry = live(context.fact(MountTable, (path,)).get(path, ()))
    if entry is None:
        fail(f"{path} is not mounted")
    if not entry.type.startswith("fuse") or not entry.source.startswith("cvmfs"):
        fail(f"{path} is {entry.type} from {entry.source}, not a repository")
    return f"{path} ({count} entries)"


CHECKS: tuple[Check, ...] = (
    Check("CernVM-FS is installed and configured as declared", _files),
    Check("CernVM-FS has the declared proxies and cache", _settings),
    Check("the declared repositories answer", _answer, live=True, timeout_seconds=300),
)
