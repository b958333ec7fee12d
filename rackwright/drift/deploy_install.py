"""The deploy of `rackwright drift install`, run by path."""

from rackwright.drift.node_deploy import install

install()
