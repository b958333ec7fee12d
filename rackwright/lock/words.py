"""A refusal, and how its sentences print lists and sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.catalog.offers import Offer
from rackwright.osfamily.known import OsRelease

INDEX_HINT = (
    "add the repository's indexes to `gpu_stack.package_index`: they list what the shipped table lacks"
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a combination cannot be locked: a full sentence, and what to do."""

    message: str
    hint: str | None = None


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; nothing: `nothing`."""
    if not words:
        return "nothing"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def lacks(offer: Offer, os: OsRelease, what: str, has: Sequence[str]) -> Refusal:
    """That a source lacks something: the source itself where it was read, or else our table of it."""
    if offer.whole:
        known = f"it has {listed(has)}" if has else "it has none"
        return Refusal(f"{offer.name} for {os} has no {what}; {known}.")
    lists = f"lists {listed(has)}" if has else "lists none"
    where = f"{offer.name[0].lower()}{offer.name[1:]}" if offer.name.startswith("The ") else offer.name
    return Refusal(
        f"{what[0].upper()}{what[1:]} is not in the shipped table of {offer.read} for {where} on {os}, which {lists}.",
        INDEX_HINT,
    )


def unlisted(offer: Offer, os: OsRelease, what: str, known: bool | None) -> Refusal:
    """That a source has no package of some kind, or that our table of it does not list one."""
    if known is False:
        return Refusal(f"{what}; {offer.name} for {os} does not have it.")
    return Refusal(
        f"{what}, which the shipped table of {offer.read} for {offer.name} on {os} does not list.", INDEX_HINT
    )
