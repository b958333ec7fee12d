"""What a run needs on this control node: checked before the first machine is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from shutil import which

from rackwright.bmc.tls import ca_mistake
from rackwright.errors import RackwrightError
from rackwright.install.dnsmasq import require_dnsmasq
from rackwright.install.media import require_xorriso
from rackwright.install.medium import way_of
from rackwright.install.netboot import NETBOOT
from rackwright.model.bmc import BmcProtocol
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootWay
from rackwright.secrets.store import store_of


def problems(cluster: Cluster, nodes: Sequence[Node]) -> list[str]:
    """What is missing for these nodes, each once."""
    found = [*_passwords(cluster, nodes), *_certificates(nodes), *_programs(nodes)]
    return list(dict.fromkeys(found))


def _passwords(cluster: Cluster, nodes: Sequence[Node]) -> Iterator[str]:
    """Unreadable BMC passwords, each once, because many nodes share one."""
    store = store_of(cluster)
    for name in dict.fromkeys(node.bmc.password for node in nodes if node.bmc is not None):
        yield from _failure(partial(store.get, name))


def _certificates(nodes: Sequence[Node]) -> Iterator[str]:
    """Unusable CA files; a BMC with a declared certificate needs none."""
    redfish = [node.bmc for node in nodes if node.bmc and node.bmc.protocol is BmcProtocol.REDFISH]
    for ca in dict.fromkeys(bmc.ca for bmc in redfish if bmc.certificate is None and bmc.ca is not None):
        if (why := ca_mistake(ca)) is not None:
            yield f"the CA file {ca} for BMCs is unusable: {why}"


def _programs(nodes: Sequence[Node]) -> Iterator[str]:
    protocols = {node.bmc.protocol for node in nodes if node.bmc is not None}
    if BmcProtocol.IPMI in protocols and which("ipmitool") is None:
        yield "IPMI needs the program ipmitool (apt-get install ipmitool)"
    if BmcProtocol.REDFISH in protocols and find_spec("sushy") is None:
        yield "Redfish needs the Python package sushy (pip install 'rackwright[bmc]')"
    ways = {way_of(node) for node in nodes}
    if BootWay.VIRTUAL_MEDIA in ways:
        yield from _failure(require_xorriso)
    if over_network := ways & NETBOOT:
        yield from _failure(partial(require_dnsmasq, over_network))


def _failure(check: Callable[[], object]) -> Iterator[str]:
    """The error that a check raises, with its hint."""
    try:
        check()
    except RackwrightError as error:
        yield error.message.rstrip(".") + (f" ({error.hint})" if error.hint is not None else "")
