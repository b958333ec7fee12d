"""The deploy of `rackwright drift uninstall`, run by path."""

from rackwright.drift.node_deploy import uninstall

uninstall()
