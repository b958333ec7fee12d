"""Checks of the software role: Lmod is there, the trees are, and users find them."""

from __future__ import annotations

from rackwright.claims import patient
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.mount_probe import ask
from rackwright.claims.packages import installed
from rackwright.model.storage import Filesystem
from rackwright.osfamily.names import names
from rackwright.roles.software import texts
from rackwright.roles.software.options import SoftwareOptions

Context = CheckContext[SoftwareOptions]
_SECONDS = 20
"""What a login shell has, and a look at the trees where no filesystem declares less."""
_USER = "nobody"
"""An ordinary user that every node has."""
_LOOK = """
import os
reading = {}
for tree in arguments:
    try:
        found = [one.name for one in os.scandir(tree) if not one.name.startswith(".")]
        reading[tree] = len(found)
    except (FileNotFoundError, NotADirectoryError):
        reading[tree] = None
"""
"""Trees; of each how many entries it has, or None where it is not a folder."""
_SHELL = 'module -t avail 2>&1; status=$?; echo; printf "%s=%s\\n" status $status path "$MODULEPATH"'
_ASK = f"runuser -u {_USER} -- env -i HOME=/ USER={_USER} timeout -s KILL {_SECONDS} bash -lc %s"


def _files(context: Context) -> str:
    installed(context, names(context.node.family, "lmod").packages)
    return as_rendered(context, texts.files(context.node, context.options))


def _below(context: Context, tree: str) -> Filesystem | None:
    return next((one for one in context.node.filesystems if tree.startswith(f"{one.path}/")), None)


def _trees(context: Context) -> dict[str, int]:
    """Entries by tree. Fails where one is missing; Undetermined where a filesystem hangs."""
    trees = context.options.trees(context.node)
    under = {one.name: one for tree in trees if (one := _below(context, tree)) is not None}
    filesystems = tuple(one for one in under.values() if context.node.name not in one.server_nodes)
    answers = ask(context, filesystems) if filesystems else {}
    for one in filesystems:
        answer = answers[one.path]
        if answer.hangs:
            raise Undetermined(f"{one.path} does not answer within {one.stat_seconds:g} s")
        if answer.error:
            fail(f"{one.path} cannot be read: {answer.error} ({answer.text})")
    try:
        found = patient.run(context, ", ".join(trees), _LOOK, *trees, seconds=_SECONDS)
    except patient.AnswerError as error:
        fail(f"the module trees cannot be read: {error}")
    if set(found) != set(trees):
        raise Undetermined(f"the node reported {', '.join(found) or 'no tree'}")
    missing = [tree for tree, count in found.items() if count is None]
    if missing:
        fail(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return dict(found)


def _there(context: Context) -> str:
    return ", ".join(f"{tree} ({count} entries)" for tree, count in _trees(context).items())


def _login_shell(context: Context) -> str:
    """A new login shell of an ordinary user, once it is known that no filesystem hangs."""
    trees = _trees(context)
    result = context.host.run(_ASK, _SHELL)
    lines = result.stdout.splitlines()
    shell = dict(line.split("=", 1) for line in lines[-2:] if "=" in line)
    if result.rc != 0 or shell.keys() != {"status", "path"}:
        raise Undetermined(
            f"a login shell of {_USER} exited {result.rc}: {result.stderr.strip() or 'no output'}"
        )
    if shell["status"] == "127":
        fail("a login shell has no command `module`: Lmod is not started by /etc/profile")
    if shell["status"] != "0":
        fail(f"`module avail` exited {shell['status']} in a login shell")
    path = shell["path"].split(":")
    missing = [tree for tree in trees if tree not in path]
    if missing:
        fail(f"MODULEPATH of a login shell lacks {', '.join(missing)}: it is {shell['path'] or 'empty'}")
    silent = [tree for tree, count in trees.items() if count and f"{tree}:" not in lines]
    if silent:
        fail(f"`module avail` lists nothing of {', '.join(silent)}, which has entries")
    return f"MODULEPATH begins with {':'.join(path[: len(trees)])}"


CHECKS: tuple[Check, ...] = (
    Check("Lmod is installed with the declared trees", _files),
    Check("the declared module trees exist", _there, live=True, timeout_seconds=120),
    Check("users find modules in a login shell", _login_shell, live=True, timeout_seconds=180),
)
