"""How each machine of a run boots the agent: the declared method and the server that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.install.desk import Case
from rackwright.install.medium import Medium, VirtualMedia, way_of
from rackwright.install.netboot import NETBOOT, NetbootMedium, NetbootServer, new_folder, serving
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootNetwork


class BootWays:
    """Boot media of all machines of a run."""

    def __init__(self, cluster: Cluster, network: BootNetwork, agent: Path, authority: bytes) -> None:
        self._cluster, self._network, self._agent, self._authority = cluster, network, agent, authority
        self._netboot: NetbootServer | None = None

    @contextmanager
    def serving(self, nodes: Iterable[Node]) -> Iterator[None]:
        """Serve network boot while the block runs, if any machine is declared to use it."""
        over_network = tuple(node for node in nodes if way_of(node) in NETBOOT)
        if not over_network:
            yield
            return
        with new_folder() as folder:
            self._netboot = NetbootServer(
                self._cluster, self._network, self._agent, self._authority, Path(folder), over_network
            )
            with serving(self._netboot):
                yield

    def of(self, case: Case) -> Medium:
        """The medium of one machine."""
        if self._netboot is not None and way_of(case.node) in NETBOOT:
            return NetbootMedium(case.node, self._cluster, self._network, self._netboot)
        return VirtualMedia(self._cluster, case.node, self._network, case, self._agent, self._authority)
