"""Live kernel values; what makes them last is a file in /etc/sysctl.d."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.kernel import Sysctls
from rackwright.plan.changes import Change, record


@operation()
def live(values: Mapping[str, str]) -> Generator[StringCommand, None, None]:
    """The running kernel has these values.

    + values: sysctl key -> value; several numbers are separated by single blanks
    """
    there: dict[str, str] = host.get_fact(Sysctls, keys=tuple(values))
    wrong = {key: value for key, value in values.items() if there.get(key) != value}
    if not wrong:
        host.noop("the kernel has every value")
        return
    record(*(Change("sysctl", key, there.get(key), value) for key, value in wrong.items()))
    yield StringCommand("sysctl -q -w " + " ".join(quote(f"{key}={value}") for key, value in wrong.items()))
