"""Files of the kubernetes role by path, and what its software is called. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.package_archive import PackageArchive
from rackwright.model.platforms import Capability, has
from rackwright.render import render
from rackwright.roles.kubernetes import admission, etcd, kubeadm, kubelet, network, shared_address
from rackwright.roles.kubernetes.mirror import read_mirror

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

ETC = "/etc/kubernetes"
OWN = f"{ETC}/rackwright"
JOIN = f"{OWN}/join.yaml"
JOINED = f"{OWN}/joined"
"""Exists once kubeadm has finished."""
ATTEMPT = f"{OWN}/attempt"
"""Exists from the start of an attempt to join until it has succeeded: what it left is removed by the next one."""
LOCK = """\
exec 9>/run/rackwright-kubeadm.lock
flock -w 600 9 || { echo 'kubeadm of an earlier run is still busy; see /var/log/rackwright-kubeadm.log' >&2; exit 1; }"""
"""Shell: waits for kubeadm of a run that ended before it, e.g. because its connection broke."""
APPLIED = f"{OWN}/manifests.digest"
MANIFESTS = f"{OWN}/manifests"
"""The static pods' manifests as kubeadm wrote them."""
CERTIFICATES = "/usr/local/sbin/rackwright-kube-certificates"
CERTIFICATE_TIMER = "rackwright-kube-certificates.timer"
SYSCTL_FILE = "/etc/sysctl.d/90-rackwright-kubernetes.conf"
MODULES_FILE = "/etc/modules-load.d/rackwright-kubernetes.conf"
MODULES = ("overlay", "br_netfilter")
KUBELET = "kubelet.service"
_UNITS = "/etc/systemd/system"
_COMMUNITY = "https://pkgs.k8s.io/core:/stable:/v{minor}/deb/"
_COMMUNITY_KEY = "DE15B14486CD377B9E876E1A234654DA9A296436"
"""Key of isv:kubernetes on pkgs.k8s.io, as several installers pin it (read 2026-11-28); it expires on 2026-12-29."""


def archive(options: KubernetesOptions, cluster: Cluster) -> tuple[PackageArchive, str]:
    """The package archive, and the revision of its packages."""
    if options.packages.archive is not None:
        return options.packages.archive, options.packages.revision
    if options.mirror is not None:
        mirror = read_mirror(cluster, options.mirror)
        return mirror.archive, mirror.revision
    base = _COMMUNITY.format(minor=options.version.rpartition(".")[0])
    found = PackageArchive(url=base, key_url=f"{base}Release.key", fingerprint=_COMMUNITY_KEY)
    return found, options.packages.revision


def package(options: KubernetesOptions, cluster: Cluster, name: str) -> str:
    """`kubelet=1.34.2-1.1`, to hold."""
    return f"{name}={options.version}-{archive(options, cluster)[1]}"


def sysctls(node: Node) -> dict[str, str]:
    """Forwarding everywhere; what the kubelet asks for where the node has a kernel."""
    own = kubelet.SYSCTLS if has(node.platform, Capability.KERNEL) else {}
    return {"net.ipv4.ip_forward": "1", **own}


def node_files(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, str]:
    """Files of every node."""
    found = {
        kubelet.CONFIG: kubelet.text(options, node),
        kubelet.DROP_IN: render(
            "kubernetes/kubelet.conf.j2",
            config=kubelet.CONFIG,
            hidden_limits=not has(node.platform, Capability.KERNEL),
        ),
        JOIN: kubeadm.join_text(options, cluster, node),
        SYSCTL_FILE: "".join(f"{key} = {value}\n" for key, value in sysctls(node).items()),
    }
    if has(node.platform, Capability.KERNEL_MODULES):
        found[MODULES_FILE] = "".join(f"{module}\n" for module in MODULES)
    if options.network == "routes":
        found |= network.files(options, cluster, node)
    return found


def control_plane_files(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, str]:
    """Files of a control-plane node besides; none on others."""
    if not options.runs_control_plane(node):
        return {}
    return {
        kubeadm.CONFIG: kubeadm.init_text(options, cluster, node),
        **admission.files(options),
        **shared_address.files(options, cluster, node),
        **etcd.files(options, cluster, node),
        CERTIFICATES: render("kubernetes/certificates.sh.j2", days=options.certificate_days_min),
        f"{_UNITS}/rackwright-kube-certificates.service": render(
            "kubernetes/oneshot.service.j2",
            description="Renewal of Kubernetes' certificates",
            program=CERTIFICATES,
        ),
        f"{_UNITS}/{CERTIFICATE_TIMER}": render(
            "kubernetes/timer.j2",
            description="Renewal of Kubernetes' certificates",
            calendar="*-*-* 04:00:00",
            hours=None,
        ),
    }


PROGRAMS = frozenset({CERTIFICATES, etcd.SNAPSHOT, etcd.RESTORE, network.PROGRAM, shared_address.READY})
"""Files with mode 755."""
PRIVATE = frozenset({JOIN, kubeadm.CONFIG})


def mode(path: str) -> str:
    """The mode of one of these files."""
    return "755" if path in PROGRAMS else "600" if path in PRIVATE else "644"


def unit_files_of(options: KubernetesOptions, node: Node) -> tuple[str, ...]:
    """Units and drop-ins that the role writes."""
    found = [kubelet.DROP_IN, *((network.UNIT_FILE,) if options.network == "routes" else ())]
    if options.runs_control_plane(node):
        found += [f"{_UNITS}/{name}" for name in (etcd.SERVICE, etcd.TIMER, CERTIFICATE_TIMER)]
        found.append(f"{_UNITS}/rackwright-kube-certificates.service")
        found += [shared_address.HAPROXY_LIMITS] if options.control_plane.address is not None else []
    return tuple(found)


def labels(options: KubernetesOptions, node: Node) -> dict[str, str]:
    """Labels of a node, from the declaration."""
    gpus = node.sku.gpus
    found = {
        "rackwright.dev/sku": node.sku.name,
        "rackwright.dev/rack": node.rack,
        "rackwright.dev/leaf": node.switches[0] if node.switches else None,
        "rackwright.dev/workload": None if node.workload is None else str(node.workload),
        "rackwright.dev/gpu": gpus.gres_type if gpus is not None else None,
        "rackwright.dev/nvlink-domain": node.rack if gpus is not None and gpus.nvlink_domain else None,
        "topology.kubernetes.io/zone": node.rack,
    }
    return {**{key: value for key, value in found.items() if value}, **options.labels}
