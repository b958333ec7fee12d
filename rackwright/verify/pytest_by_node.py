"""How pytest-xdist spreads tests over processes: all tests of a node go to the same one."""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling

from rackwright.verify.pytest_backend import SCHEME

_NODE = re.compile(rf"\[{SCHEME}://([^\]]+)\]$")


class ByNode(LoadScopeScheduling):  # type: ignore[misc]
    """Tests without a node are spread by module, as pytest-xdist does."""

    def _split_scope(self, nodeid: str) -> str:
        found = _NODE.search(nodeid)
        return found[1] if found else str(super()._split_scope(nodeid))
