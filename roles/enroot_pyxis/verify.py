"""Checks of the enroot_pyxis role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.containers import user_namespaces
from rackwright.claims.files import as_rendered, links_to
from rackwright.claims.user_folders import only_their_users
from rackwright.facts.settings import Answer
from rackwright.roles.enroot_pyxis import texts
from rackwright.roles.enroot_pyxis.options import EnrootPyxisOptions


def _version(context: CheckContext[EnrootPyxisOptions]) -> str:
    found = context.output("enroot version").strip()
    if not found[:1].isdigit():
        raise Undetermined(f"`enroot version` printed {found!r}")
    wanted = context.options.enroot_version
    if found != wanted:
        fail(f"enroot {found} is installed, not {wanted}")
    return f"enroot {found}"


def _files(context: CheckContext[EnrootPyxisOptions]) -> str:
    return as_rendered(context, texts.declared(context.options))


def _flags(context: CheckContext[EnrootPyxisOptions]) -> str:
    """srun loads the plugin to print its own help, so this is Slurm's word for it."""
    result = context.host.run("srun --help")
    output = str(result.stdout) + str(result.stderr)
    if result.rc in (126, 127):
        raise Undetermined(f"cannot run `srun`: {result.stderr.strip() or 'not found'}")
    if "--container-image" in output:
        return "srun accepts --container-image"
    if "plugin" in output and "pyxis" in output:
        line = next(line for line in output.splitlines() if "pyxis" in line)
        fail(f"srun cannot load pyxis: {line.strip()}")
    if "--partition" not in output:
        raise Undetermined("`srun --help` did not print its options")
    return fail("srun does not know --container-image")


def _built(context: CheckContext[EnrootPyxisOptions]) -> str:
    if context.fact(Answer, texts.built_read(context.options), may_be_empty=True) == "current":
        return f"pyxis {context.options.pyxis_version}, built for the installed Slurm"
    mark = context.output("cat %s", texts.MARK).strip()
    return fail(f"pyxis was built as {mark}, which is not the declared release with the installed Slurm")


def _hooks(context: CheckContext[EnrootPyxisOptions]) -> str:
    hooks = context.options.hooks
    for hook in hooks:
        links_to(context, f"{texts.HOOKS}/{hook}", f"{texts.SHIPPED_HOOKS}/{hook}")
    return f"{', '.join(hooks) or 'none'} turned on"


CHECKS = (
    Check("enroot is the declared release", _version),
    Check("the files of enroot and pyxis are as declared", _files),
    Check("enroot's declared hooks are enabled", _hooks),
    Check(
        "pyxis was built for the installed Slurm",
        _built,
        applies=lambda node, options: options.pyxis_source == "build",
    ),
    Check(
        "users' enroot folders are private",
        lambda context: only_their_users(context, texts.folders(context.options)),
    ),
    Check("srun accepts --container-image", _flags),
    Check("users may create user namespaces", lambda context: user_namespaces(context, "enroot")),
)
