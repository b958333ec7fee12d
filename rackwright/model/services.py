"""What programs of roles need around them, found with `node.offers(Interface)`: open ports, certificates, the site's proxy.

As rackwright.model.interfaces: options classes implement these, and no role names or imports another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from rackwright.model.types import NetworkPurpose

if TYPE_CHECKING:
    from rackwright.certificates.issuer import Issuer
    from rackwright.model.cluster import Cluster, Node


PROGRAM_LENGTH = 15
"""TASK_COMM_LEN - 1 (include/linux/sched.h): the kernel keeps no more of a process's name."""


class Listener(NamedTuple):
    """Ports on which a program of a role listens, on the nodes that it runs on."""

    program: str
    """As the kernel names the process, 15 characters at most, e.g. `slurmctld`; systemd for a socket unit."""
    ports: tuple[int, int]
    """First and last."""
    protocol: Literal["tcp", "udp"] = "tcp"
    purposes: frozenset[NetworkPurpose] = frozenset({NetworkPurpose.MANAGEMENT})
    """Networks from which it is to be reached. Empty: from the node itself alone."""
    sources: tuple[IPv4Network, ...] = ()
    """Further addresses from which it is to be reached, whatever network they come by."""


class Listens:
    """Options of a role whose programs listen on ports: the one home of what is open on a node."""

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """What listens on this node."""
        raise NotImplementedError


class Certificate(NamedTuple):
    """A certificate and its private key that a program of a role reads."""

    name: str
    """Unique on a node, e.g. `registry`."""
    key: str
    """Absolute path of the private key (PEM)."""
    chain: str
    """Absolute path of the certificate and those between it and the CA (PEM)."""
    names: tuple[str, ...]
    """DNS names and addresses that clients call it by."""
    owner: str = "root"
    group: str = "root"
    """Who may read the key, beside root; mode 640."""
    serves: tuple[str, ...] = ()
    """Where clients of this node's programs get it, e.g. `10.0.0.10:5000`."""


class NeedsCertificates:
    """Options of a role whose programs speak TLS with certificates of the site's CA.

    Its deploy issues them with `rackwright.operations.certificates`, once the users of its packages exist.
    """

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """Those of this node; empty where the site supplies them otherwise."""
        raise NotImplementedError


class IssuesCertificates:
    """Options of the role that issues the certificates of the site, and makes nodes trust them."""

    trust_file: ClassVar[str]
    """Absolute path, on every node, of the CA's certificate and further ones that the site trusts (PEM)."""
    key_secret: ClassVar[str]
    """Name of the CA's private key in the secrets store."""

    def issuer(self, cluster: Cluster, secret: str) -> Issuer:
        """The CA, for a value of that secret. SecretsError where it is not the CA's key."""
        raise NotImplementedError


class ServesRegistries:
    """Options of a role that runs registries of container images."""

    def registry_names(self, cluster: Cluster) -> tuple[str, ...]:
        """Host and port, as nodes may call them, of registries with certificates of the site's CA."""
        raise NotImplementedError


class SetsProxy:
    """Options of the role that declares the proxy by which nodes reach what is outside the cluster."""

    def proxy_environment(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Variables by name, in capitals, for programs that fetch from outside."""
        raise NotImplementedError


class FetchesFromOutside:
    """Options of a role whose daemons fetch from outside; it gives its units the variables of SetsProxy."""

    def fetching_units(self, node: Node) -> tuple[str, ...]:
        """Units of those daemons on this node."""
        raise NotImplementedError
