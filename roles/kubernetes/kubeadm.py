"""kubeadm's configuration of each node. Pure functions.

Fields: kubeadm.k8s.io v1beta2 to v1beta4 (kubernetes.io, read 2026-11-28).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from rackwright.kubernetes.versions import enforces_pod_security
from rackwright.model.platforms import Capability, has
from rackwright.roles.kubernetes import admission
from rackwright.roles.kubernetes.releases import release_of
from rackwright.roles.kubernetes.sections import Taint

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

CONFIG = "/etc/kubernetes/rackwright/kubeadm.yaml"
JOIN_KUBECONFIG = "/run/rackwright-join.kubeconfig"
"""A client certificate that is valid for minutes; it exists while kubeadm joins the node."""
_AUDIT_LOG = "/var/log/kubernetes/audit"


def init_text(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """What `kubeadm init` reads on a control-plane node, and phases that write its manifests anew."""
    documents = [_init(options, cluster, node), _cluster(options, cluster), _proxy(options, node)]
    return _text(documents)


def join_text(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """What `kubeadm join` reads."""
    release = release_of(options.version)
    document: dict[str, Any] = {
        "apiVersion": f"kubeadm.k8s.io/{release.kubeadm_api}",
        "kind": "JoinConfiguration",
        "discovery": {"file": {"kubeConfigPath": JOIN_KUBECONFIG}},
        "nodeRegistration": _registration(options, cluster, node),
    }
    if options.runs_control_plane(node):
        document["controlPlane"] = {"localAPIEndpoint": _endpoint(options, cluster, node)}
    return _text([document])


def digest(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """What the static pods' manifests depend on."""
    return hashlib.sha256(init_text(options, cluster, node).encode()).hexdigest()


def _text(documents: list[dict[str, Any]]) -> str:
    head = "# Written by rackwright from the cluster file; changes made here are undone.\n"
    return head + yaml.safe_dump_all(documents, sort_keys=False, width=120)


def _init(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, Any]:
    return {
        "apiVersion": f"kubeadm.k8s.io/{release_of(options.version).kubeadm_api}",
        "kind": "InitConfiguration",
        "bootstrapTokens": [],
        "localAPIEndpoint": _endpoint(options, cluster, node),
        "nodeRegistration": _registration(options, cluster, node),
    }


def _endpoint(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, Any]:
    return {
        "advertiseAddress": str(cluster.management_address(node)),
        "bindPort": options.control_plane.port,
    }


def taints(options: KubernetesOptions, node: Node) -> tuple[Taint, ...]:
    """Those of a node: declared ones, and that of a control plane for itself."""
    if options.runs_control_plane(node) and not options.control_plane.runs_pods:
        return (*options.taints, Taint(key=release_of(options.version).control_plane_taint))
    return options.taints


def _registration(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, Any]:
    release = release_of(options.version)
    arguments = {"node-ip": str(cluster.management_address(node))}
    return {
        "name": node.name,
        "criSocket": release.cri_socket,
        "taints": [
            one.model_dump(exclude_defaults=True) | {"effect": one.effect} for one in taints(options, node)
        ],
        "kubeletExtraArgs": _arguments(options, arguments),
        # a container has no kernel configuration to read
        "ignorePreflightErrors": [] if has(node.platform, Capability.KERNEL) else ["SystemVerification"],
    }


def _arguments(options: KubernetesOptions, given: Mapping[str, str]) -> Any:  # noqa: ANN401 - two shapes by release
    if release_of(options.version).lists_arguments:
        return [{"name": name, "value": value} for name, value in given.items()]
    return dict(given)


def _cluster(options: KubernetesOptions, cluster: Cluster) -> dict[str, Any]:
    release, plane = release_of(options.version), options.control_plane
    networking: dict[str, Any] = {
        "serviceSubnet": str(options.service_network),
        "dnsDomain": options.dns_domain,
    }
    manager = {"bind-address": "127.0.0.1", "profiling": "false"}
    if options.network != "routes":  # otherwise the declaration gives each node its part
        networking["podSubnet"] = str(options.pod_network)
        manager["node-cidr-mask-size"] = str(options.pod_prefix)
    etcd: dict[str, Any] = {"dataDir": "/var/lib/etcd"}
    if options.images.etcd is not None:
        etcd["imageTag"] = options.images.etcd
    dns: dict[str, Any] = {"type": "CoreDNS"} if release.dns_type else {}
    if options.images.coredns is not None:
        dns["imageTag"] = options.images.coredns
    addresses = [str(cluster.management_address(node)) for node in options.control_planes(cluster)]
    shared = [str(plane.address)] if plane.address is not None else []
    names = [name for node in options.control_planes(cluster) for name in (node.name, node.fqdn)]
    return {
        "apiVersion": f"kubeadm.k8s.io/{release.kubeadm_api}",
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": f"v{options.version}",
        "controlPlaneEndpoint": options.endpoint(cluster),
        "imageRepository": options.images.registry,
        "networking": networking,
        "apiServer": {
            "certSANs": [*shared, *addresses, *names],
            "extraArgs": _arguments(options, _api_arguments(options)),
            "extraVolumes": _volumes(options),
        },
        "controllerManager": {"extraArgs": _arguments(options, manager)},
        "scheduler": {"extraArgs": _arguments(options, {"bind-address": "127.0.0.1", "profiling": "false"})},
        "etcd": {"local": etcd},
        "dns": dns,
    }


def _api_arguments(options: KubernetesOptions) -> dict[str, str]:
    found = {"profiling": "false", "tls-min-version": "VersionTLS12"}
    if options.encrypt_secrets:
        found["encryption-provider-config"] = admission.ENCRYPTION
    if options.audit.enabled:
        found |= {
            "audit-policy-file": admission.audit_path(options),
            "audit-log-path": f"{_AUDIT_LOG}/audit.log",
            "audit-log-maxage": str(options.audit.max_age_days),
            "audit-log-maxbackup": str(options.audit.max_backups),
            "audit-log-maxsize": str(options.audit.max_size_mib),
        }
    if enforces_pod_security(options.version):
        found["admission-control-config-file"] = admission.admission_path(options)
    if (oidc := options.oidc) is not None:
        found |= {
            "oidc-issuer-url": oidc.issuer,
            "oidc-client-id": oidc.client,
            "oidc-username-claim": oidc.username_claim,
            "oidc-username-prefix": oidc.prefix,
        }
        if oidc.groups_claim is not None:
            found |= {"oidc-groups-claim": oidc.groups_claim, "oidc-groups-prefix": oidc.prefix}
    return found


def _volumes(options: KubernetesOptions) -> list[dict[str, Any]]:
    settings = {"name": "settings", "hostPath": admission.FOLDER, "mountPath": admission.FOLDER}
    found = [{**settings, "readOnly": True, "pathType": "Directory"}]
    if options.audit.enabled:
        log = {"name": "audit", "hostPath": _AUDIT_LOG, "mountPath": _AUDIT_LOG}
        found.append({**log, "readOnly": False, "pathType": "DirectoryOrCreate"})
    return found


def _proxy(options: KubernetesOptions, node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": options.proxy_mode,
        "clusterCIDR": str(options.pod_network),
    }
    if not has(node.platform, Capability.KERNEL):  # the table of connections is the host's
        found["conntrack"] = {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        }
    return found
