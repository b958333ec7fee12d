"""Files of the irdma role, and the shell with which it reads: shared by the deploy and its checks."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from rackwright.claims.check import Undetermined
from rackwright.render import render
from rackwright.roles.irdma.options import Port
from rackwright.roles.irdma.paths import PROGRAM, UNIT_PATH

_VALUE = (
    'value() { devlink dev param show "pci/$1" name "enable_$2" | '
    'awk \'$1 == "cmode" && $2 == "runtime" {print $4}\'; }; '
)


def read(ports: Sequence[Port]) -> str:
    """Shell: a line for each port, `PCI IWARP ROCE`, each of the two `true` or `false`."""
    addresses = " ".join(quote(port.pci) for port in ports)
    return f'{_VALUE}for p in {addresses}; do echo "$p $(value "$p" iwarp) $(value "$p" roce)"; done'


def wanted(ports: Sequence[Port]) -> str:
    """What `read` prints of ports that are as declared."""
    return "\n".join(
        f"{port.pci} {str(port.protocol == 'iwarp').lower()} {str(port.protocol == 'roce').lower()}"
        for port in ports
    )


def parse(text: str) -> dict[str, str]:
    """What `read` prints: the protocol of each port, `none` where it has neither."""
    found = {}
    for line in text.splitlines():
        pci, *states = line.split()
        if len(states) != 2 or not set(states) <= {"true", "false"}:
            raise Undetermined(f"devlink does not show enable_iwarp and enable_roce of {pci}")
        names = [name for name, state in zip(("iwarp", "roce"), states, strict=True) if state == "true"]
        found[pci] = " and ".join(names) or "none"
    if not found:
        raise Undetermined("devlink printed nothing")
    return found


def files(ports: Sequence[Port]) -> dict[str, str]:
    """The program and the unit, by path."""
    return {
        PROGRAM: render("irdma/program.sh.j2", ports=ports),
        UNIT_PATH: render("irdma/irdma.service.j2", program=PROGRAM),
    }
