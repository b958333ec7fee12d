"""The deploy of `rackwright drift uninstall`, run by path."""

from rackwright.drift.on_node import no_drift

no_drift()
