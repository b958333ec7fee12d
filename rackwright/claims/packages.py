"""Claims about packages, read with the fact that the deploy acts on."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.boundary import last_line
from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.facts.package_database import PackageDatabase
from rackwright.facts.packages import Packages, PackageState, is_version
from rackwright.model.options import RoleOptions


def held_at(context: CheckContext[RoleOptions], packages: tuple[str, ...]) -> str:
    """Packages, each `name=version`, are installed at that version and held there."""
    wanted = dict(sorted(package.split("=", 1) for package in packages))
    if not wanted:
        raise Undetermined("no package is declared for this node")
    state = package_state(context, tuple(wanted))
    wrong = []
    for name, version in wanted.items():
        there = state.at(name, version)
        if there is None:
            wrong.append(f"{name} is not installed" + (" whole" if name in state.broken else ""))
        elif not is_version(version, there):
            wrong.append(f"{name} is {there}, not {version}")
        elif not state.holds(name, version):
            wrong.append(f"{name} is not held")
    if wrong:
        fail("; ".join(wrong))
    name, version = next(iter(wanted.items()))
    more = f" and {len(wanted) - 1} more" if len(wanted) > 1 else ""
    return f"{name} {version}{more}, held"


def installed(context: CheckContext[RoleOptions], packages: Sequence[str]) -> str:
    """Packages are fully installed, at any version."""
    missing = set(packages) - package_state(context, tuple(packages)).installed.keys()
    if missing:
        fail(f"not installed: {', '.join(sorted(missing))}")
    return f"{len(packages)} packages"


def database_is_whole(context: CheckContext[RoleOptions]) -> str:
    """No package is half-installed, and no dependency is missing or of a wrong version."""
    state = context.fact(PackageDatabase, context.node.family.name)
    if not state.read:
        raise Undetermined("the package database cannot be read")
    if not state.whole:
        fail(f"{state.wrong()}; `rackwright apply` repairs it")
    checked = context.host.run("env LC_ALL=C apt-get check -qq -o Debug::NoLocking=1")
    if checked.rc == 100 and "unmet dependencies" in (checked.stdout + checked.stderr).lower():
        fail(f"apt finds unmet dependencies: {last_line(checked.stdout)}")
    if checked.rc != 0:
        raise Undetermined(
            f"`apt-get check` exited {checked.rc}: {last_line(checked.stdout, checked.stderr)}"
        )
    return "every package is configured, every dependency installed"


def package_state(context: CheckContext[RoleOptions], names: tuple[str, ...]) -> PackageState:
    """What is installed and held; Undetermined where a package is not reported by a tool that does not work."""
    family = context.node.family
    state = context.fact(Packages, family.name, names, may_be_empty=True)
    if not state.installed.keys() >= set(names) and family.query_owner not in context.output(
        family.query_self
    ):
        raise Undetermined(f"`{family.query_self}` does not report the package it belongs to")
    return state
