"""What the storage_layout role claims of a node."""

from rackwright.claims.check import Check

CHECKS: tuple[Check, ...] = ()
