"""Checks of the apptainer role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.containers import user_namespaces
from rackwright.claims.files import as_rendered, at_path
from rackwright.claims.user_folders import only_their_users
from rackwright.roles.apptainer import texts
from rackwright.roles.apptainer.options import ApptainerOptions

_STARTER = "/usr/libexec/apptainer/bin/starter-suid"


def _version(context: CheckContext[ApptainerOptions]) -> str:
    """`apptainer version` prints 1.4.5, or 1.4.5-2.el9 of EPEL."""
    found = context.output("apptainer version").strip()
    if not found[:1].isdigit():
        raise Undetermined(f"`apptainer version` printed {found!r}")
    wanted = context.options.version
    if wanted is not None and found.partition("-")[0] != wanted:
        fail(f"apptainer {found} is installed, not {wanted}")
    return f"apptainer {found}"


def _files(context: CheckContext[ApptainerOptions]) -> str:
    return as_rendered(context, texts.declared(context.options))


def _starter(context: CheckContext[ApptainerOptions]) -> str:
    declared = context.options.setuid
    state = at_path(context, _STARTER, digest_only=True)
    found = "missing" if state.kind == "absent" else f"{state.mode} {state.owner}"
    if declared and found != "4755 root":
        fail(f"{_STARTER} is {found}, not 4755 root")
    if not declared and found != "missing":
        fail(f"{_STARTER} is there ({found}), and setuid is not declared")
    return "the setuid starter is there" if declared else "no setuid program"


CHECKS = (
    Check("apptainer is the declared release", _version),
    Check("apptainer's files are as declared", _files),
    Check("the setuid starter exists only if declared", _starter),
    Check(
        "users' Apptainer folders are private",
        lambda context: only_their_users(context, texts.folders(context.options)),
        applies=lambda node, options: options.cache_root is not None,
    ),
    Check(
        "users may create user namespaces",
        lambda context: user_namespaces(context, "apptainer"),
        applies=lambda node, options: not options.setuid,
    ),
)
