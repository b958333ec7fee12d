"""testinfra's connection type `rackwright://NODE`: rackwright's own connections under plain pytest."""

from __future__ import annotations

from typing import Any, ClassVar

from rackwright.ssh import RootShell
from rackwright.verify.backend import NodeBackend

SCHEME = "rackwright"


class PytestBackend(NodeBackend):
    """One node of the cluster file that the session was started with."""

    shell: ClassVar[RootShell]
    """Set when the session begins: testinfra makes backends from a text alone."""

    def __init__(self, node: str, **_: Any) -> None:  # noqa: ANN401 - testinfra's options: sudo, ssh_config
        super().__init__(node, self.shell)
