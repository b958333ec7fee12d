"""Mistakes in the kubernetes section that only show against the resolved cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rackwright.errors import RackwrightError
from rackwright.kubernetes.versions import minor_of
from rackwright.model.kubernetes_offers import RunsPods
from rackwright.model.ranges import fold
from rackwright.osfamily.names import names
from rackwright.roles.kubernetes.mirror import read_mirror
from rackwright.roles.kubernetes.network import pod_network_of
from rackwright.roles.kubernetes.releases import NEWEST, OLDEST
from rackwright.roles.kubernetes.sections import COMMUNITY_REGISTRY

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.roles.kubernetes.options import KubernetesOptions

Trouble = tuple[str, str, str | None]


def problems_of(options: KubernetesOptions, cluster: Cluster) -> Iterable[Trouble]:
    """Every mistake."""
    yield from _version(options)
    yield from _control_plane(options, cluster)
    yield from _networks(options, cluster)
    yield from _runtime(options, cluster)
    yield from _same_everywhere(options, cluster)


def _version(options: KubernetesOptions) -> Iterator[Trouble]:
    minor = minor_of(options.version)
    if not OLDEST <= minor <= NEWEST:
        yield (
            "version",
            f"Kubernetes {options.version} is not supported: 1.{OLDEST} to 1.{NEWEST} are.",
            f"e.g. 1.{NEWEST - 1}.0",
        )
    elif options.proxy_mode == "nftables" and minor < 31:
        yield "proxy_mode", "kube-proxy has nftables from 1.31 on.", "proxy_mode: iptables"


def _control_plane(options: KubernetesOptions, cluster: Cluster) -> Iterator[Trouble]:
    plane = options.control_plane
    unknown = [name for name in plane.nodes if name not in cluster.by_name]
    if unknown:
        yield "control_plane.nodes", f"{', '.join(unknown)} is not a node of the cluster.", None
        return
    found = options.control_planes(cluster)
    outside = sorted(set(plane.nodes) - {node.name for node in found})
    if outside:
        yield (
            "control_plane.nodes",
            f"{fold(outside)} cannot run the control plane: Kubernetes does not run there.",
            "name heads whose group has `workload: kubernetes`, or none",
        )
    elif len(found) not in (1, 3, 5):
        yield (
            "control_plane.nodes",
            f"The control plane would have {len(found)} nodes: etcd needs an odd number, 1, 3 or 5.",
            "name them: `control_plane: {nodes: [head1, head2, head3]}`",
        )
    if len(found) > 1 and plane.address is None:
        yield (
            "control_plane.address",
            f"{len(found)} control-plane nodes need a common address.",
            f"a free address of {cluster.management.cidr}",
        )
    if plane.address is not None:
        yield from _address(options, cluster)


def _address(options: KubernetesOptions, cluster: Cluster) -> Iterator[Trouble]:
    address = options.control_plane.address
    taken = [node.name for node in cluster.nodes if cluster.management_address(node) == address]
    if address not in cluster.management.cidr:
        yield (
            "control_plane.address",
            f"{address} is not in {cluster.management.name} ({cluster.management.cidr}).",
            None,
        )
    elif taken:
        yield "control_plane.address", f"{address} is the address of {taken[0]}.", "use a free one"
    if options.control_plane.interface is None:
        yield "control_plane.interface", "keepalived needs the interface of the common address.", "e.g. eth0"
    if options.control_plane.port == options.control_plane.shared_port:
        yield "control_plane.shared_port", "haproxy and kube-apiserver cannot have the same port.", None


def _networks(options: KubernetesOptions, cluster: Cluster) -> Iterator[Trouble]:
    own = {"pod_network": options.pod_network, "service_network": options.service_network}
    if options.pod_network.overlaps(options.service_network):
        yield "service_network", f"It overlaps the pod network {options.pod_network}.", None
    for key, network in own.items():
        for other in cluster.networks.values():
            if network.overlaps(other.cidr):
                yield key, f"{network} overlaps the network {other.name} ({other.cidr}).", None
    if options.network != "routes" or options.pod_prefix <= options.pod_network.prefixlen:
        if options.pod_prefix <= options.pod_network.prefixlen:
            yield "pod_prefix", f"/{options.pod_prefix} is not a part of {options.pod_network}.", None
        return
    for node in cluster.running("kubernetes"):
        if pod_network_of(options, cluster, node) is None:
            yield (
                "pod_network",
                (
                    f"{options.pod_network} has no /{options.pod_prefix} for {node.name} "
                    f"({cluster.management_address(node)}): parts are numbered as the management addresses."
                ),
                "a larger pod_network, or a longer pod_prefix",
            )
            return


def _runtime(options: KubernetesOptions, cluster: Cluster) -> Iterator[Trouble]:
    nodes = cluster.running("kubernetes")
    runtimes = {node.name: node.offers(RunsPods) for node in nodes}
    without = [name for name, runtime in runtimes.items() if runtime is None]
    if without:
        yield (
            "",
            f"{fold(without)} has no container runtime for pods.",
            "add `containerd: {on: [head, worker]}` under `roles`",
        )
    elsewhere = [name for name, one in runtimes.items() if one is not None and one.sandbox_image is None]
    if elsewhere and options.images.registry != COMMUNITY_REGISTRY:
        yield (
            "images.registry",
            f"{fold(elsewhere)} takes the image that holds a pod's namespaces from the runtime's own registry.",
            f"e.g. `containerd: {{sandbox_image: {options.images.registry}/pause:3.10}}`",
        )
    lacking = [node for node in nodes if not names(node.family, "kubernetes").packages]
    if lacking:
        yield (
            "",
            f"kubeadm is installed on Debian and Ubuntu alone; {lacking[0].name} has {lacking[0].os}.",
            None,
        )


def _same_everywhere(options: KubernetesOptions, cluster: Cluster) -> Iterator[Trouble]:
    for node in cluster.running("kubernetes"):
        other = node.options["kubernetes"]
        differing = [
            name
            for name in type(options).model_fields
            if name not in options.node_fields and getattr(other, name) != getattr(options, name)
        ]
        if differing:
            yield (
                differing[0],
                f"{node.name} has another value; the whole cluster has one.",
                f"set it in the section `kubernetes`; groups may differ in {', '.join(sorted(options.node_fields))}",
            )
            return


def mirror_problems(options: KubernetesOptions, cluster: Cluster) -> Iterable[Trouble]:
    """The mirror's file is invalid."""
    if options.mirror is None or not (cluster.path.parent / options.mirror).exists():
        return
    try:
        read_mirror(cluster, options.mirror)
    except RackwrightError as error:
        yield "mirror", str(error), None


def mirror_warnings(options: KubernetesOptions, cluster: Cluster) -> Iterable[Trouble]:
    """The mirror's file is missing: a lab's rack has it only once it is up, and no plan can be made before."""
    if options.mirror is not None and not (cluster.path.parent / options.mirror).exists():
        yield (
            "mirror",
            f"{options.mirror} does not exist: nothing can be planned or applied yet.",
            "`rackwright lab up` writes it for a lab rack",
        )


def tag_warnings(options: KubernetesOptions) -> Iterable[Trouble]:
    """A mirror needs images whose tags kubeadm chooses, and nothing here can list them."""
    for name in ("etcd", "coredns"):
        if options.images.registry != COMMUNITY_REGISTRY and getattr(options.images, name) is None:
            yield (
                f"images.{name}",
                f"kubeadm chooses the tag of {name}: `rackwright bundle` cannot list the image.",
                "declare the tag that `kubeadm config images list` of this version prints",
            )
