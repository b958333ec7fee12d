"""Checks of the base role."""

from __future__ import annotations

import hashlib

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, each, fail
from rackwright.claims.files import as_rendered, links_to
from rackwright.claims.mounts import every_one_is_declared
from rackwright.claims.packages import database_is_whole, installed, package_state
from rackwright.claims.units import is_masked
from rackwright.facts.files import AtPath
from rackwright.model.cluster import Node
from rackwright.model.host_names import host_names
from rackwright.model.platforms import Capability
from rackwright.osfamily.names import names
from rackwright.roles.base import ports, texts
from rackwright.roles.base.options import BaseOptions

_NAMES_AT_ONCE = 500
"""One argument list has room for 128 KiB; a large cluster has more names than that."""


def parse_getent_hosts(output: str) -> dict[str, str]:
    """`getent hosts NAME...`: address by every name on its line."""
    found: dict[str, str] = {}
    for line in output.splitlines():
        address, *line_names = line.split()
        for name in line_names:
            found.setdefault(name, address)
    return found


def parse_apt_config(output: str) -> dict[str, str]:
    """`apt-config dump`: value by name, names in lower case as apt compares them."""
    pairs = (line.partition(" ") for line in output.splitlines() if line.endswith('";'))
    return {name.lower(): value.strip()[1:-2] for name, _, value in pairs}


def _hostname(context: CheckContext[BaseOptions]) -> str:
    found = context.output("uname -n").strip()
    if found != context.node.name:
        fail(f"the hostname is {found}, not {context.node.name}")
    as_rendered(context, {"/etc/hostname": f"{context.node.name}\n"})
    return f"{found}, and after a reboot too"


def _own_name(context: CheckContext[BaseOptions]) -> str:
    name = context.node.name
    expected = str(context.cluster.management_address(context.node))
    found = _resolve(context, [name]).get(name)
    if found is None:
        fail(f"{name} does not resolve on itself")
    if found != expected:
        fail(f"{name} resolves to {found} on itself, not to {expected}")
    return f"{name} is {found}"


def _resolve(context: CheckContext[BaseOptions], asked: list[str]) -> dict[str, str]:
    # getent exits with 2 when a name is unknown, and still prints the others
    result = context.host.run("getent hosts " + " ".join(["%s"] * len(asked)), *asked)
    if result.rc not in (0, 2):
        raise Undetermined(f"getent exited {result.rc}: {result.stderr.strip() or 'it printed nothing'}")
    return parse_getent_hosts(result.stdout)


def _all_names(context: CheckContext[BaseOptions]) -> str:
    expected = {
        name: entry.address
        for entry in host_names(context.cluster, context.options.extra_hosts)
        for name in entry.names
    }
    found: dict[str, str] = {}
    asked = list(expected)
    for start in range(0, len(asked), _NAMES_AT_ONCE):
        found |= _resolve(context, asked[start : start + _NAMES_AT_ONCE])
    wrong = [name for name, address in expected.items() if found.get(name) != address]
    if wrong:
        first = wrong[0]
        fail(
            f"{len(wrong)} of {len(expected)} names do not resolve as declared; {first} is "
            f"{found.get(first, 'unknown')}, not {expected[first]}"
        )
    return f"{len(expected)} names"


def _same_hosts_everywhere(context: CheckContext[BaseOptions]) -> str:
    nodes = context.cluster.running("base")
    states = each(
        lambda node: context.fact(AtPath, "/etc/hosts", digest_only=True, host=context.on(node.name)), nodes
    )
    digests: dict[str, list[str]] = {}
    for node, state in zip(nodes, states, strict=True):
        digests.setdefault(state.sha256 or state.kind, []).append(node.name)
    if len(digests) > 1:
        most = max(digests.values(), key=len)
        others = [name for group in digests.values() if group is not most for name in group]
        fail(f"/etc/hosts of {', '.join(others)} differs from that of {len(most)} other nodes")
    declared = hashlib.sha256(texts.hosts(context.cluster, context.options).encode()).hexdigest()
    if declared not in digests:
        fail("/etc/hosts is the same everywhere, but not as declared")
    return f"{len(nodes)} nodes, sha256 {declared[:12]}"


def _packages(context: CheckContext[BaseOptions]) -> str:
    wanted = (*names(context.node.family, "base").packages, *context.options.packages)
    return installed(context, [*wanted, *texts.hardware_tools(context.node)])


def _package_sources(context: CheckContext[BaseOptions]) -> str:
    used = as_rendered(context, texts.package_files(context.cluster, context.node))
    return used or "as installed: the cluster file declares no mirror"


def _apt_archives(context: CheckContext[BaseOptions]) -> str:
    """What apt itself reads from all its files, not only from those of this role."""
    mirrors = context.cluster.mirrors
    output = context.output("apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages'")
    # It lists the indexes that apt has read: none on a node whose packages all came with its image.
    output = output.strip() or texts.archives_to_read(context.output("apt-get update --print-uris"))
    found = sorted(set(output.split()))
    if not found:
        fail("apt knows no archive to install from")
    if not all("://" in uri or ":/" in uri for uri in found):
        raise Undetermined(f"apt printed archives that are not URIs: {output[:80]!r}")
    declared = {f"{uri.rstrip('/')}/" for uri in (mirrors.apt, mirrors.apt_security) if uri is not None}
    missing = sorted(declared - set(found))
    if missing:
        fail(f"apt does not install from {', '.join(missing)}")
    foreign = [uri for uri in found if uri not in declared]
    if mirrors.apt is not None and foreign:  # another role's repository, or one left behind
        raise Warned(f"apt installs from {', '.join(foreign)} too, which is not one of the site's mirrors")
    return ", ".join(found)


def _no_apt_upgrades(context: CheckContext[BaseOptions]) -> str:
    found = parse_apt_config(context.output("apt-config dump"))
    if "apt::architecture" not in found:
        raise Undetermined("`apt-config dump` printed no configuration")
    for name in ("APT::Periodic::Update-Package-Lists", "APT::Periodic::Unattended-Upgrade"):
        if found.get(name.lower()) != "0":
            fail(f"{name} is {found.get(name.lower(), 'not set')}, not 0")
    for timer in texts.APT_TIMERS:
        is_masked(context, timer)
    return "apt's periodic work is off, its timers are masked"


def _no_dnf_upgrades(context: CheckContext[BaseOptions]) -> str:
    version = package_state(context, ("dnf-automatic",)).installed.get("dnf-automatic")
    if version is not None:
        fail(f"dnf-automatic {version} is installed")
    is_masked(context, "dnf-makecache.timer")
    return "dnf-automatic is not installed, dnf-makecache.timer is masked"


def _locale(context: CheckContext[BaseOptions]) -> str:
    locale = context.options.locale
    as_rendered(context, {"/etc/locale.conf": f"LANG={locale}\n"})
    # a locale that was never generated falls back to plain ASCII without an error
    charmap = context.output("env LC_ALL=%s locale charmap", locale).strip()
    if charmap != "UTF-8":
        fail(f"{locale} does not work: its character map is {charmap or 'empty'}, not UTF-8")
    return locale


def _timezone(context: CheckContext[BaseOptions]) -> str:
    zone = context.options.timezone
    expected = f"/usr/share/zoneinfo/{zone}"
    links_to(context, "/etc/localtime", expected)
    if context.host.run("test -s %s", expected).rc != 0:
        fail(f"the node has no timezone {zone}")
    return f"{zone}, {context.output('date +%Z').strip()}"


def _uses_apt(node: Node, options: object) -> bool:
    return node.family.package_tool == "apt"


def _uses_dnf(node: Node, options: object) -> bool:
    return node.family.package_tool == "dnf"


CHECKS: tuple[Check, ...] = (
    Check("the declared addresses are present, external ones on separate ports", ports.addresses_on_ports),
    Check(
        "the default route uses the declared network",
        ports.default_route,
        needs=frozenset({Capability.UPLINK}),
    ),
    Check("packets are forwarded only where that is declared", ports.forwarding_as_declared),
    Check("the hostname is the declared short name", _hostname),
    Check("the node's own name resolves to its management address", _own_name),
    Check("every declared name resolves to its declared address", _all_names),
    Check(
        "/etc/hosts is the same on every node", _same_hosts_everywhere, scope="cluster", timeout_seconds=300
    ),
    Check("package sources are as declared", _package_sources),
    Check("apt installs from the declared archives", _apt_archives, applies=_uses_apt),
    Check("the package database is consistent", database_is_whole, applies=_uses_apt, timeout_seconds=300),
    Check("the base packages are installed", _packages),
    Check("no package upgrades by itself", _no_apt_upgrades, applies=_uses_apt),
    Check("no package upgrades by itself (dnf)", _no_dnf_upgrades, applies=_uses_dnf),
    Check("the system locale is set and works", _locale),
    Check("the timezone is set", _timezone),
    Check("every mount and export made by rackwright is declared", every_one_is_declared),
)
