"""What programs of roles need around them, found with `node.offers(Interface)`: open ports, certificates, the proxy.

As in rackwright.model.interfaces, options classes implement these, and no role refers to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.types import NetworkPurpose

if TYPE_CHECKING:
    from rackwright.certificates.issuer import Issuer
    from rackwright.model.cluster import Cluster, Node


PROGRAM_LENGTH = 15
"""TASK_COMM_LEN - 1 (include/linux/sched.h): the kernel truncates process names to this length."""


class Listener(NamedTuple):
    """Ports that a role's program listens on, on the nodes where it runs."""

    program: str
    """Process name as the kernel has it, at most 15 characters, e.g. `slurmctld`; systemd for a socket unit. A `*` at its end
    stands for any text: processes that name themselves after what they run."""
    ports: tuple[int, int]
    """First and last port."""
    protocol: Literal["tcp", "udp"] = "tcp"
    purposes: frozenset[NetworkPurpose] = frozenset({NetworkPurpose.MANAGEMENT})
    """Networks that may connect. Empty: only the node itself."""
    sources: tuple[IPv4Network, ...] = ()
    """Further addresses that may connect, from any network."""


class Listens:
    """Options of a role whose programs listen on ports: the single source of what is open on a node."""

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """Listeners on this node."""
        raise NotImplementedError


class Certificate(NamedTuple):
    """A certificate and private key that a role's program reads."""

    name: str
    """Unique on a node, e.g. `registry`."""
    key: str
    """Absolute path of the private key (PEM)."""
    chain: str
    """Absolute path of the certificate and those between it and the CA (PEM)."""
    names: tuple[str, ...]
    """DNS names and addresses that clients connect to."""
    owner: str = "root"
    group: str = "root"
    """Group that may read the key, besides root; mode 640."""
    serves: tuple[str, ...] = ()
    """Where clients connect to this node's program, e.g. `10.0.0.10:5000`."""


class NeedsCertificates:
    """Options of a role whose programs use TLS with certificates of the site's CA.

    Its deploy issues them with `rackwright.operations.certificates`, once its packages have created their users.
    """

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """Certificates of this node; empty if the site supplies them by other means."""
        raise NotImplementedError


class IssuesCertificates:
    """Options of the role that issues the site's certificates and makes nodes trust them."""

    trust_file: ClassVar[str]
    """Absolute path, on every node, of the CA certificate and further ones that the site trusts (PEM)."""
    key_secret: ClassVar[str]
    """Name of the CA's private key in the secrets store."""

    def issuer(self, cluster: Cluster, secret: str) -> Issuer:
        """The CA, from the value of that secret. SecretsError if it is not the CA's key."""
        raise NotImplementedError


class ServesRegistries:
    """Options of a role that runs registries of container images."""

    def registry_names(self, cluster: Cluster) -> tuple[str, ...]:
        """Host and port, under each name nodes may use, of registries with certificates of the site's CA."""
        raise NotImplementedError


class SetsProxy:
    """Options of the role that declares the proxy through which nodes reach external sites."""

    def proxy_environment(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Environment variables by name, in capitals, for programs that download from outside."""
        raise NotImplementedError


class FetchesFromOutside:
    """Options of a role whose daemons download from outside; it sets SetsProxy's variables in its units."""

    def fetching_units(self, node: Node) -> tuple[str, ...]:
        """Units of those daemons on this node."""
        raise NotImplementedError


class PodImage(NamedTuple):
    """An image whose pods run programs of distribution packages, without systemd."""

    reference: str
    """Its whole name, as pods ask for it, e.g. `registry.example.com/slurm:24.11`."""
    packages: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()
    """Path and text of files, mode 644, written after the packages are installed."""


class BuildsPodImages:
    """Options of a role whose pods run images that `rackwright image pods` builds, of the primary head's system."""

    def pod_images(self, cluster: Cluster) -> tuple[PodImage, ...]:
        """Each image."""
        raise NotImplementedError


class RunsRay(RunsWorkloadManager):
    """Options of the role that runs Ray: its head on one node, where its programs are asked."""

    def is_head(self, node: Node) -> bool:
        """Whether the node runs Ray's head."""
        raise NotImplementedError

    def head_node(self, cluster: Cluster) -> Node:
        """That node."""
        raise NotImplementedError

    def missing_for_collectives(self, cluster: Cluster, *, gpus: bool) -> str | None:
        """The package that the burn-in through Ray needs, between GPUs or CPUs, and that its environment lacks; or None."""
        raise NotImplementedError
