"""Claims about out-of-tree kernel modules."""

from __future__ import annotations

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.claims.kernel import loaded_modules
from rackwright.model.options import RoleOptions
from rackwright.mount_roles import declared_kernel


def is_built(context: CheckContext[RoleOptions], module: str, version: str | None = None) -> str:
    """modprobe would find the module for the declared kernel, else for the running one; `version`: as it names itself."""
    kernel = declared_kernel(context.cluster, context.node) or context.output("uname -r").strip()
    if not kernel:
        raise Undetermined("`uname -r` printed nothing")
    field = "filename" if version is None else "version"
    result = context.host.run("modinfo -k %s -F %s %s", kernel, field, module)
    printed = (result.stdout or result.stderr).strip()
    if result.rc in (126, 127):
        raise Undetermined("cannot run `modinfo`: not found")
    if result.rc != 0:
        if "not found" in result.stderr:
            fail(f"module {module} does not exist for kernel {kernel}")
        raise Undetermined(f"modinfo does not report {module} of {kernel}: {printed[:100] or 'no output'}")
    if not printed:
        raise Undetermined(f"modinfo prints no {field} of {module}")
    if version is not None and printed != version:
        fail(f"modprobe would load {module} {printed} on {kernel}, not {version}")
    return f"{module}{'' if version is None else ' ' + version} for {kernel}"


def is_loaded(context: CheckContext[RoleOptions], module: str, version: str | None = None) -> str:
    """The module is loaded, at this version where the module names one."""
    if module not in loaded_modules(context):
        fail(f"the module {module} is not loaded")
    if version is None:
        return f"{module} is loaded"
    there = context.output("cat %s", f"/sys/module/{module}/version").strip()
    if not there:
        raise Undetermined(f"the loaded module {module} does not name its version")
    if there != version:
        fail(f"{module} {there} is loaded, not {version}: a reboot replaces it")
    return f"{module} {there} is loaded"
