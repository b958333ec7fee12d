"""Distribution packages, by apt or dnf as the node's declared family has it."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.package_database import DatabaseState, PackageDatabase, state_in_english
from rackwright.facts.packages import Packages, PackageState, is_version
from rackwright.osfamily.family import LOCK_WAIT_SECONDS, PackageChange
from rackwright.plan.changes import Change, pending, record


def _versions(packages: tuple[str, ...]) -> dict[str, str | None]:
    """`name` or `name=version` by name."""
    split = (package.partition("=") for package in packages)
    return {name: version or None for name, _, version in split}


@operation()
def installed(
    packages: tuple[str, ...],
    start_daemons: bool = True,
    hold: bool = False,
    disruptive: bool = False,
    build_modules: bool = True,
) -> Generator[StringCommand, None, None]:
    """These packages are installed, without recommended ones.

    + packages: `name`, or `name=version` for exactly that version, older or newer than what is there; a
      version may end in `*` for any revision
    + start_daemons: False keeps a package's scripts from starting its services (Debian family)
    + hold: no upgrade moves them, by hand or unattended (apt-mark hold, dnf versionlock); each has to
      name its version. A new version is let through by this operation and held again.
    + disruptive: whether another version of an installed package disturbs what runs
    + build_modules: False keeps DKMS from building while packages are configured, where a module that
      does not build would leave dpkg half-way; rackwright.operations.dkms builds it (Debian family)
    """
    wanted = _versions(packages)
    loose = [name for name, version in wanted.items() if version is None]
    if hold and loose:
        raise OperationError(f"only exact versions can be held, but {', '.join(loose)} has none")
    family = site_of().node.family
    state: PackageState = host.get_fact(Packages, family=family.name, packages=tuple(wanted))
    to_do = {
        name: version
        for name, version in wanted.items()
        if ((there := state.at(name, version)) is None or not is_version(version, there))
        and not (version is None and _is_repaired(name, state))
    }
    to_hold = {name: version for name, version in wanted.items() if hold and not state.holds(name, version)}
    if not to_do and not to_hold and not state.stale:
        host.noop("every package is installed")
        return
    for name, version in {**to_do, **to_hold}.items():
        record(_change(name, version, state, hold=hold, disruptive=disruptive))
    for path in sorted(state.stale):
        record(Change("file", path, "left by an interrupted installation", None))
    change = PackageChange(
        "install",
        to_do or ({} if to_hold else wanted),
        start_daemons=start_daemons,
        build_modules=build_modules,
        must_update=any(name not in state.candidates for name in to_do),
        unhold=sorted(state.held & to_do.keys()),
        hold={name: version for name, version in wanted.items() if hold and (name in {**to_do, **to_hold})},
        wait_seconds=_wait_seconds(),
    )
    yield StringCommand(family.package_change(change))


def _is_repaired(name: str, state: PackageState) -> bool:
    """Whether it is only half installed, and an earlier operation of this run puts that right."""
    return name in state.broken and bool(pending(host, (name,)))


def _wait_seconds() -> int:
    """For another installation on the node: a third of what a command may take at all."""
    return min(LOCK_WAIT_SECONDS, site_of().cluster.ssh.command_timeout_seconds // 3)


def _change(name: str, version: str | None, state: PackageState, *, hold: bool, disruptive: bool) -> Change:
    there = state.at(name, version)
    before = there or state.broken.get(name)
    after = version or state.candidates.get(name) or "installed"
    if hold:
        before = (
            before if there is None else f"{there}, {'held' if state.holds(name, version) else 'not held'}"
        )
        after = f"{after}, held"
    return Change(
        "package",
        name,
        before,
        after,
        disruptive=disruptive and there is not None and not is_version(version, there),
    )


@operation()
def absent(packages: tuple[str, ...]) -> Generator[StringCommand, None, None]:
    """None of these packages is installed, held or not; their configuration goes too."""
    wanted = _versions(packages)
    family = site_of().node.family
    state: PackageState = host.get_fact(Packages, family=family.name, packages=tuple(wanted))
    there: dict[str, str | None] = {
        name: None for name in wanted if name in state.installed or name in state.broken
    }
    if not there:
        host.noop("none of the packages is installed")
        return
    for name in there:
        record(
            Change("package", name, state.installed.get(name) or state.broken[name], None, disruptive=True)
        )
    unhold = sorted(state.held & there.keys())
    change = PackageChange("remove", there, unhold=unhold, wait_seconds=_wait_seconds())
    yield StringCommand(family.package_change(change))


@operation()
def database() -> Generator[StringCommand, None, None]:
    """No package is half-installed, and every dependency is installed.

    What the repair installs and removes is what the plan shows: where the package tool would by then do
    anything else, it refuses. Families whose database is not read are left alone.
    """
    family = site_of().node.family
    if family.database_query() is None:
        host.noop("this family's package database is not read")
        return
    state: DatabaseState = host.get_fact(PackageDatabase, family=family.name)
    if not state.broken and not state.unmet:
        host.noop("every package is whole")
        return
    for name, letters in state.broken.items():
        if name not in {**state.install, **state.remove}:
            record(Change("package", name, state_in_english(letters), "configured"))
    for name, version in state.install.items():
        record(Change("package", name, state.broken.get(name), version, because=_needed_by(name, state)))
    for name, version in state.remove.items():
        record(Change("package", name, version, None, because=_unmet(name, state), disruptive=True))
    if state.cannot is not None:
        for name in state.unmet:
            record(Change("package", name, _unmet(name, state), "dependencies installed"))
    yield StringCommand(
        family.database_repair(
            tuple(state.install),
            tuple(state.remove),
            simulated=state.cannot is None,
            wait_seconds=_wait_seconds(),
        )
    )


def _needed_by(name: str, state: DatabaseState) -> str | None:
    users = [user for user, gone in state.unmet.items() if name in gone]
    return f"{', '.join(users)} needs it" if users else None


def _unmet(name: str, state: DatabaseState) -> str | None:
    return f"{', '.join(state.unmet[name])} is not installed" if name in state.unmet else None
