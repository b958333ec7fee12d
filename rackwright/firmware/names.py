"""Names of firmware runs in journals and in the reasons of drains."""

from __future__ import annotations

UPDATE, BIOS, ENROL = "firmware update", "firmware bios", "bmc enrol-key"
"""The command, which journals of such runs name in place of a deploy."""
PREFIX = "firmware-"
"""Begins the name that such a run drains under. `apply` puts back what runs of apply left drained, and not these."""
