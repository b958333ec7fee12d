"""Names of a source as the cluster file has them: lower case, one label. What changes is reported, never guessed."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address

from rackwright.model.text import host_label_mistake, label_mistake

_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def split_host_name(text: str) -> tuple[str, str | None]:
    """Label and domain of a host name, `gpu01.hpc.example.com`. Raises ValueError with a full sentence."""
    whole = text.strip().lower().rstrip(".")
    if _is_address(whole):
        raise ValueError("It is an address. Name the node, and give the address beside the name.")
    label, _, domain = whole.partition(".")
    wrong = host_label_mistake(label) if label else "A host name may not be empty."
    if wrong is not None:
        raise ValueError(wrong)
    if domain and not _DOMAIN.fullmatch(domain):
        raise ValueError("What follows the first dot is not a domain.")
    return label, domain or None


def as_label(text: str) -> str:
    """A rack's or switch's name as a label: `Row 1_Rack A` is `row-1-rack-a`. Raises ValueError where it cannot be."""
    label = re.sub(r"[\s_./-]+", "-", text.strip().lower()).strip("-")
    wrong = label_mistake(label)
    if wrong is not None:
        raise ValueError(wrong)
    return label


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return ":" in text
    return True
