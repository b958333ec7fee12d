"""Checks of the lustre_client role: packages, modules, LNet, the servers, and each mount."""

from __future__ import annotations

from rackwright.claims import modules, mounts
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.packages import held_at
from rackwright.claims.units import runs
from rackwright.model.platforms import Capability
from rackwright.roles.lustre_client import texts
from rackwright.roles.lustre_client.options import LNET_UNIT, LustreClientOptions

Context = CheckContext[LustreClientOptions]


def _installed(context: Context) -> str:
    return held_at(context, context.options.packages(context.cluster, context.node))


def _built(context: Context) -> str:
    return modules.is_built(context, "lustre", context.options.module_version)


def _loaded(context: Context) -> str:
    return modules.is_loaded(context, "lustre", context.options.module_version)


def _lnet_at_boot(context: Context) -> str:
    content = texts.conf(context.cluster, context.node, context.options)
    return f"{as_rendered(context, {texts.CONF: content})}; {runs(context, LNET_UNIT)}"


def _nids(context: Context) -> str:
    wanted = [one.nid for one in context.options.interfaces(context.cluster, context.node)]
    found = texts.parse_nids(context.output(texts.SHOW))
    if missing := [nid for nid in wanted if nid not in found]:
        fail(f"LNet lacks {', '.join(missing)}: see `journalctl -u {LNET_UNIT}` and `dmesg`")
    if down := [f"{nid} is {found[nid]}" for nid in wanted if found[nid] != "up"]:
        fail("; ".join(down))
    if more := sorted(set(found) - set(wanted)):
        raise Warned(f"LNet also has {', '.join(more)}, which is not declared; a reboot removes it")
    return ", ".join(wanted)


def _servers(context: Context) -> str:
    result = context.host.run(texts.CHECK)
    if result.rc in (126, 127):
        raise Undetermined("cannot run `lfs`: not found")
    if result.rc == 124:
        raise Undetermined("`lfs check servers` did not end within 40 s: a server hangs")
    active, wrong = texts.parse_servers(f"{result.stdout}\n{result.stderr}")
    if wrong:
        fail("; ".join(f"{name}: {why}" for name, why in wrong.items()))
    if result.rc != 0:
        raise Undetermined(
            f"`lfs check servers` exited {result.rc} after {len(active)} servers: {result.stderr.strip()[:120]}"
        )
    return f"{len(active)} servers answer"


_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})
CHECKS: tuple[Check, ...] = (
    Check("the Lustre client is installed as declared and held", _installed, needs=_NEEDS),
    Check("the Lustre modules exist for the declared kernel", _built, needs=_NEEDS),
    Check("LNet is configured as declared at every boot", _lnet_at_boot, needs=_NEEDS),
    Check("every declared LNet NID is up", _nids, needs=_NEEDS, settle_seconds=20),
    *mounts.checks("Lustre"),
    # after the mounts, whose first use loads the module
    Check("the loaded Lustre modules have the declared version", _loaded, needs=_NEEDS, live=True),
    Check("every Lustre server answers", _servers, needs=_NEEDS, live=True, settle_seconds=30),
)
