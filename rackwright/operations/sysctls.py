"""Live kernel values; a file in /etc/sysctl.d makes them permanent."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.kernel import Sysctls, high_enough
from rackwright.plan.changes import Change, record


def values_to_set(
    there: Mapping[str, str], values: Mapping[str, str], at_least: Sequence[str]
) -> dict[str, str]:
    """Those of the values that the kernel does not have; of `at_least`, those that are lower there."""
    return {
        key: value
        for key, value in values.items()
        if not (high_enough(there.get(key), value) if key in at_least else there.get(key) == value)
    }


@operation()
def live(values: Mapping[str, str], at_least: Sequence[str] = ()) -> Generator[StringCommand, None, None]:
    """The running kernel has these values.

    + values: sysctl key -> value; several numbers are separated by single blanks
    + at_least: keys whose value is a number that may be higher: it is raised and never lowered
    """
    there: dict[str, str] = host.get_fact(Sysctls, keys=tuple(values))
    wrong = values_to_set(there, values, at_least)
    if not wrong:
        host.noop("the kernel has every value, or a higher one where that may be")
        return
    record(*(Change("sysctl", key, there.get(key), value) for key, value in wrong.items()))
    yield StringCommand("sysctl -q -w " + " ".join(quote(f"{key}={value}") for key, value in wrong.items()))
