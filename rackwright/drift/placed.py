"""The deploy of `rackwright drift install`, run by path."""

from rackwright.drift.on_node import drift

drift()
