"""testinfra's connection type `rackwright://NODE`: rackwright's own connections under plain pytest."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from rackwright.ssh import RootShell
from rackwright.verify.backend import NodeBackend

SCHEME = "rackwright"


def node_in(test: str, nodes: Collection[str]) -> str | None:
    """The node in a test's id, `test_x[rackwright://gpu-1-another parameter]`; None where it uses no `host`."""
    _, _, rest = test.rpartition(f"[{SCHEME}://")
    words = rest.rstrip("]").split("-") if rest != test else []
    names = ("-".join(words[:length]) for length in range(len(words), 0, -1))
    return next((name for name in names if name in nodes), None)


class PytestBackend(NodeBackend):
    """One node of the cluster file that the session was started with."""

    shell: ClassVar[RootShell]
    """Set when the session begins: testinfra makes backends from a text alone."""

    def __init__(self, node: str, **_: Any) -> None:  # noqa: ANN401 - testinfra's options: sudo, ssh_config
        super().__init__(node, self.shell)
