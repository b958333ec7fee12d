"""BlueField-3 cards in the declared mode."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.document import Document
from rackwright.health.expected import ANY, Expected
from rackwright.health.node_records import BluefieldCard
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, unknown, warn

WORDS = {"nic": "NIC", "dpu": "DPU"}


def declared(expected: Expected) -> bool:
    """Nodes whose SKU has BlueField-3 ports."""
    return bool(expected.bluefields)


@check(
    "fabric", "Every declared BlueField-3 is present and in its declared mode", reads=("bluefields",), applies=declared,
    needs=("hardware",), action=Action.NONE,
    remedy="Set INTERNAL_CPU_OFFLOAD_ENGINE (1: NIC mode, 0: DPU mode) with mlxconfig, then power-cycle the node.",
    source="the declared SKU; NVIDIA DOCA, BlueField Modes of Operation; BasePOD runs them in NIC mode",
)  # fmt: skip
def bluefield_mode(expected: Expected, document: Document) -> Iterator[Finding]:
    section, ports = document.bluefields, sum(expected.bluefields.values())
    found = sum(card.ports for card in section.cards)
    if found != ports:
        yield fail(
            f"{found} of {ports} declared BlueField-3 ports are on the PCI bus", remedy="Reseat the card."
        )
    modes = set(expected.bluefields)
    if ANY in modes:
        yield good(f"{found} ports; the SKU declares no mode")
        return
    if section.tool is None and section.cards:
        yield unknown("neither mlxconfig (MFT) nor mstconfig (mstflint) is installed")
        return
    wanted = " and ".join(f"{WORDS[mode]} mode" for mode in sorted(modes))

    def judge(card: BluefieldCard) -> Finding | None:
        if card.why is not None:
            raise Unreadable(f"{card.address}: {card.why}")
        if card.mode not in modes:
            return fail(f"{card.address} is in {WORDS.get(card.mode, card.mode)} mode, declared {wanted}")
        if card.next_mode != card.mode:
            after = WORDS.get(card.next_mode, card.next_mode)
            return warn(f"{card.address} switches to {after} mode at the next power cycle")
        return None

    yield from each(section.cards, judge, wanted)
    for mode, count in sorted(expected.bluefields.items() if len(modes) > 1 else ()):
        there = sum(card.ports for card in section.cards if card.why is None and card.mode == mode)
        if there < count:
            yield fail(f"{there} of {count} ports declared in {WORDS[mode]} mode are in that mode")
