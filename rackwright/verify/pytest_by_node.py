"""How pytest-xdist spreads tests over processes: all tests of a node go to the same one."""

from __future__ import annotations

from functools import cached_property

from xdist.scheduler import LoadScopeScheduling

from rackwright.verify.pytest_backend import SCHEME, node_in


class ByNode(LoadScopeScheduling):  # type: ignore[misc]
    """Tests without a node are spread by module, as pytest-xdist does."""

    @cached_property
    def _nodes(self) -> frozenset[str]:
        hosts = str(self.config.option.hosts).split(",")
        return frozenset(host.removeprefix(f"{SCHEME}://") for host in hosts)

    def _split_scope(self, nodeid: str) -> str:
        return node_in(nodeid, self._nodes) or str(super()._split_scope(nodeid))
