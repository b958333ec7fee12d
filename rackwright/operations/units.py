"""systemd units, restarted and reloaded by state instead of by handlers.

A handler that runs "if the file changed in this run" is lost when the run dies between the two.
Here a unit is restarted (reloaded) exactly when a monitored file is newer than the unit's last start
(reload), which is as true in the next run as in this one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.data import site_of
from rackwright.facts.units import Unit, UnitState
from rackwright.model.unit_files import foreign_unit_files
from rackwright.operations.quarantine import take_away
from rackwright.plan.changes import Change, caused_by, pending, record, removed, waits_for_reboot

_BRINGS_UP = ("start", "restart", "reload")


def _systemctl(verb: str, unit: str, *, retries: bool = False) -> StringCommand:
    """The command, failing with the unit's own last words.

    systemd counts a start that a condition skipped, or a service that died at once, as done: here
    a unit that was brought up has to be up. A reload is tried twice: `kill -HUP $MAINPID` fails
    where the daemon has just replaced itself, as every slurmd does when slurmctld is reloaded.
    """
    name = quote(unit)
    is_up = f"! systemctl is-failed --quiet {name}" if retries else f"systemctl is-active --quiet {name}"
    stays_up = f" && {is_up}" if verb in _BRINGS_UP else ""
    command = f"systemctl {verb} {name}{stays_up}"
    again = f" || {{ sleep 2; {command}; }}" if verb == "reload" else ""
    return StringCommand(
        f"{command}{again} || {{ systemctl status --no-pager --full --lines=15 {name} >&2; exit 1; }}"
    )


def _cause(unit: UnitState, watch: tuple[str, ...]) -> str | None:
    """Why a running unit must take note of its files, or None."""
    if not watch:
        return None
    ahead = removed(host, watch) if state.is_executing else pending(host, watch)
    if ahead:
        return caused_by(ahead)
    newer = [path for path in watch if unit.older_than(path)]
    return f"{', '.join(newer)} is newer than the running unit" if newer else None


@operation()
def unit(
    unit: str,
    running: bool | None = True,
    enabled: bool | None = True,
    masked: bool = False,
    restart_on: tuple[str, ...] = (),
    reload_on: tuple[str, ...] = (),
    because: str | None = None,
    disruptive: bool = True,
    after_reboot: bool = False,
    retries: bool = False,
) -> Generator[StringCommand, None, None]:
    """A unit runs, is enabled, and has read its files.

    + running, enabled: None leaves it as it is
    + restart_on, reload_on: files or folders; when one is newer than the unit's last start (reload), it is restarted
      (reloaded); `because`: a reason to restart it that does not depend on its files
    + disruptive: whether its restart or stop disturbs users or jobs; such a change drains a worker
    + after_reboot: it cannot work while a reboot is due: it is enabled now, and brought up after that
    + retries: systemd starts it again until what it connects to is there: it counts as running meanwhile
    """
    there = _counted(host.get_fact(Unit, unit=unit, watch=(*restart_on, *reload_on)), retries=retries)
    if masked:
        return (yield from _mask(unit, there, disruptive))
    foreign = foreign_unit_files(site_of().node, there.fragment, there.drop_ins)  # it was started with these
    restart = caused_by(foreign) if foreign and running is True else because or _cause(there, restart_on)
    reload = _cause(there, reload_on)
    wanted = [
        verb
        for verb, due in (
            ("unmask", there.masked),
            ("enable", enabled is True and not there.enabled),
            ("disable", enabled is False and there.enabled and there.file_state.startswith("enabled")),
            ("start", running is True and not there.active),
            ("stop", running is False and there.active),
            ("restart", bool(restart) and there.active and running is not False),
            ("reload", bool(reload) and not restart and there.active and running is not False),
        )
        if due
    ]
    wanted = _before_reboot(wanted) if after_reboot else wanted
    if not (wanted or there.needs_daemon_reload or foreign):
        host.noop(f"{unit} is as declared")  # or waits for the reboot
        return
    record(*(Change("file", path, f"unit file of {unit} that nothing declares", None) for path in foreign))
    record(*(_change(verb, unit, there, restart or reload, disruptive) for verb in wanted))
    if there.needs_daemon_reload:
        record(Change("unit", unit, "unit file changed on disk", "unit file read again"))
    yield from _commands(unit, wanted, foreign, there.needs_daemon_reload, retries=retries)


def _counted(there: UnitState, *, retries: bool) -> UnitState:
    """The state; a unit that systemd restarts repeatedly counts as running if that is how it waits."""
    waits = retries and there.active_state == "activating"
    return replace(there, active=True) if waits else there


def _state(unit: str, watch: tuple[str, ...], *, retries: bool) -> UnitState:
    there: UnitState = host.get_fact(Unit, unit=unit, watch=watch)
    return replace(there, active=True) if retries and there.active_state == "activating" else there


def _before_reboot(verbs: list[str]) -> list[str]:
    """Those that can be done although a reboot is due; the plan counts the operation where some have to wait."""
    if set(_BRINGS_UP).isdisjoint(verbs) or not waits_for_reboot(host):
        return verbs
    return [verb for verb in verbs if verb not in _BRINGS_UP]


def _commands(
    unit: str, verbs: list[str], foreign: tuple[str, ...], must_reload_manager: bool, *, retries: bool
) -> Generator[StringCommand, None, None]:
    if foreign:
        yield take_away(*foreign)
    if foreign or must_reload_manager:
        yield StringCommand("systemctl daemon-reload")
    for verb in verbs:
        yield _systemctl(verb, unit, retries=retries)


def _mask(unit: str, there: UnitState, disruptive: bool) -> Generator[StringCommand, None, None]:
    if there.masked and not there.active:
        host.noop(f"{unit} is masked")
        return
    record(
        Change(
            "unit",
            unit,
            there.file_state or there.active_state,
            "masked",
            disruptive=disruptive and there.active,
        )
    )
    yield _systemctl("mask --now", unit)


def _change(verb: str, unit: str, there: UnitState, because: str | None, disruptive: bool) -> Change:
    described = {
        "unmask": ("masked", "unmasked"),
        "enable": (there.file_state or "missing", "enabled"),
        "disable": (there.file_state, "disabled"),
        "start": (there.active_state, "running"),
        "stop": ("running", "stopped"),
        "restart": ("running", "restarted"),
        "reload": ("running", "reloaded"),
    }
    before, after = described[verb]
    cause = because if verb in ("restart", "reload") else None
    return Change(
        "unit", unit, before, after, because=cause, disruptive=disruptive and verb in ("restart", "stop")
    )
