"""What a boot clears of a card, set by a unit: the PCIe read request size, and which CPUs get its interrupts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.facts.settings import Answer
from rackwright.model.hcas import Hca
from rackwright.render import render

if TYPE_CHECKING:
    from rackwright.roles.rdma.options import RdmaOptions

SCRIPT = "/usr/local/sbin/rackwright-rdma-cards"
UNIT = "rackwright-rdma-cards.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
LOCAL = "local"
_FAR = re.compile(r"interrupt (\d+) of (\S+) is on CPU ([0-9 ]+)")


def script(options: RdmaOptions, pcis: tuple[str, ...]) -> str:
    """What the unit runs."""
    size = options.max_read_request
    return render(
        "rdma/cards.sh.j2",
        pcis=pcis,
        size=size,
        bits=None if size is None else read_request_bits(size),
        interrupts=options.interrupts is not None,
        move=True,
    )


def read_request_bits(size: int) -> int:
    """Bits 14:12 of the device control register: 0 is 128 bytes, each step doubles it."""
    return (size // 128).bit_length() - 1


def interrupts_read(pcis: tuple[str, ...]) -> str:
    """Shell that prints `local`, or a line for each interrupt that is elsewhere, and for what it cannot read."""
    return render("rdma/interrupts.sh.j2", pcis=pcis, move=False)


def parse_read_request(text: str) -> int:
    """Bytes, from the device control register as `setpci CAP_EXP+8.w` prints it, e.g. `2936`."""
    word = text.strip()
    if not re.fullmatch(r"[0-9a-f]{4}", word):
        raise Undetermined(f"setpci did not print a register: {word[:40]!r}")
    return 128 << (int(word, 16) >> 12 & 7)


def read_requests_claim(context: CheckContext[RdmaOptions]) -> str:
    """Every card asks for as many bytes as declared."""
    wanted, wrong = context.options.max_read_request, []
    for hca in _cards(context):
        size = parse_read_request(context.output("setpci -s %s CAP_EXP+8.w", hca.pci or ""))
        if size != wanted:
            wrong.append(f"{hca.name} ({hca.pci}) has a read request size of {size} bytes, not {wanted}")
    if wrong:
        fail("; ".join(wrong))
    return f"{wanted} bytes"


def interrupts_claim(context: CheckContext[RdmaOptions]) -> str:
    """Every interrupt of a card comes to a CPU that is near it."""
    by_pci = {hca.pci or "": hca.name for hca in _cards(context)}
    printed = context.fact(Answer, interrupts_read(tuple(by_pci))) or ""
    if printed == LOCAL:
        return f"interrupts of {', '.join(by_pci.values())} are on local CPUs"
    far: dict[str, list[str]] = {}
    unread = []
    for line in printed.splitlines():
        if found := _FAR.fullmatch(line):
            far.setdefault(by_pci.get(found[2], found[2]), []).append(f"{found[1]} (CPU {found[3]})")
        else:
            unread.append(line)
    if far:
        fail("; ".join(f"{name}: {_few(places)} far from it" for name, places in far.items()))
    raise Undetermined("; ".join(unread[:4]) or "the node printed nothing")


def _few(places: list[str]) -> str:
    more = f" and {len(places) - 4} more are" if len(places) > 4 else " is" if len(places) == 1 else " are"
    return f"interrupt{'s' if len(places) > 1 else ''} {', '.join(places[:4])}{more}"


def _cards(context: CheckContext[RdmaOptions]) -> tuple[Hca, ...]:
    return tuple(hca for hca in context.options.hcas(context.cluster, context.node) if hca.pci is not None)
