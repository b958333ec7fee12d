"""Checks of the efa role: the installed version, and what libfabric finds."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import at_path
from rackwright.model.platforms import Capability
from rackwright.roles.efa import texts
from rackwright.roles.efa.options import EfaOptions


def _installed(context: CheckContext[EfaOptions]) -> str:
    there = context.output(texts.READ_VERSION).strip()
    if not there:
        raise Undetermined(f"{texts.INSTALLED} has no version of the installer")
    if there != context.options.version:
        fail(f"aws-efa-installer {there} was run last, not {context.options.version}")
    return f"aws-efa-installer {there}"


def _provider(context: CheckContext[EfaOptions]) -> str:
    declared = context.options.device_count(context.node)
    domains = texts.parse_domains(context.output(texts.PROVIDER))
    if declared is None:
        raise Undetermined("the number of EFA devices is not declared: see `roles.efa.devices`")
    if len(domains) != declared:
        fail(f"libfabric finds {len(domains)} of {declared} EFA devices: {', '.join(domains)}")
    return f"{declared} devices"


def _huge_pages(context: CheckContext[EfaOptions]) -> str:
    there = texts.parse_count(context.output(f"cat {texts.HUGE_PAGES}"))
    if there < (context.options.huge_pages or 0):
        fail(f"{there} huge pages of 2 MiB, not {context.options.huge_pages}: see `roles.kernel.hugepages`")
    return f"{there} huge pages of 2 MiB"


def _plugin(context: CheckContext[EfaOptions]) -> str:
    path = context.options.nccl_plugin or ""
    found = at_path(context, path, digest_only=True)
    if found.kind not in ("file", "link"):
        fail(f"{path} is {'missing' if found.kind == 'absent' else f'a {found.kind}'}: NCCL would use TCP")
    return path


_MODULES = frozenset({Capability.KERNEL_MODULES})
CHECKS: tuple[Check, ...] = (
    Check("EFA is installed as declared", _installed, needs=_MODULES),
    Check("libfabric finds every declared EFA device", _provider, needs=_MODULES),
    Check(
        "huge pages are reserved as EFA needs",
        _huge_pages,
        needs=_MODULES,
        applies=lambda node, options: options.huge_pages is not None,
    ),
    Check(
        "the NCCL plugin for EFA is installed",
        _plugin,
        applies=lambda node, options: options.nccl_plugin is not None,
    ),
)
