"""Like rackwright.clusterfile.patterns, for the options of Kubernetes, Ray and their services."""

from __future__ import annotations

_IMAGE = "Not a reference of an image: registry, name and tag."
KUBERNETES_PATTERNS = {
    r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$": (
        "Not the value of a label: letters, digits and `._-` inside, at most 63 characters.",
        "training",
    ),
    r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$": (
        "Not the key of a label: a name, with a domain and a slash before it or without.",
        "example.com/team",
    ),
    r"^([a-z][a-z0-9-]{0,20})?$": (
        "Not a prefix of namespaces: lower-case letters, digits and `-`, at most 21 characters.",
        "hpc-",
    ),
    r"^(cpu|mem|gres/gpu(:[a-z0-9_-]+)?)$": ("Not a resource that has a limit here.", "gres/gpu"),
    r"^/[A-Za-z0-9._~/-]{0,200}$": ("Not the path of a URL.", "/healthz"),
    r"^1\.[0-9]{2}\.[0-9]{1,3}$": ("Not an exact release of Kubernetes.", "1.34.2"),
    r"^[0-9A-Za-z.+~]{1,20}$": ("Not the revision of a package.", "1.1"),
    r"^[0-9a-f]{4}$": ("Not the PCI number of a vendor: four lower-case hexadecimal digits.", "15b3"),
    r"^[1-9][0-9]{0,9}(Mi|Gi|Ti)$": ("Not a size.", "10Gi"),
    r"^[A-Za-z0-9._:/-]{1,200}$": ("Not the client of an OIDC provider.", "kubernetes"),
    r"^[A-Za-z0-9][A-Za-z0-9 ._/()-]{0,62}$": ("Not the name of a GPU.", "NVIDIA H100 80GB HBM3"),
    r"^[A-Za-z0-9_.:/-]{0,60}$": ("Not a prefix of users and groups.", "oidc:"),
    r"^[A-Za-z0-9_.:/-]{1,100}$": ("Not an OIDC claim.", "email"),
    r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$": ("Not the tag of an image.", "3.5.16-0"),
    r"^[A-Za-z0-9_][A-Za-z0-9_.:@ -]{0,99}$": ("Not the name of a group.", "physics"),
    r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}$": ("Not the name of a user.", "ada@example.com"),
    r"^[A-Za-z][A-Za-z0-9_.:/-]{0,62}$": ("Not a name: a letter first, at most 63 characters.", "oidc:ada"),
    r"^[a-z0-9.-]{1,100}/[a-z0-9.-]{1,60}$": ("Not a resource with its domain.", "rdma/hca"),
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": (
        "Not the name of an object: lower-case letters, digits and `-`, at most 63 characters.",
        "local-path",
    ),
    r"^[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?$": ("Not a domain.", "cluster.local"),
    r"^[a-z0-9][A-Za-z0-9./:@_-]{0,254}$": (_IMAGE, "registry.example.com/busybox:1.37"),
    r"^[a-z0-9][A-Za-z0-9./:_-]{0,254}(@sha256:[0-9a-f]{64})?$": (_IMAGE, "registry.example.com/pause:3.10"),
    r"^[a-z0-9][A-Za-z0-9._/:@-]{0,250}$": (_IMAGE, "registry.example.com/slurm:24.11"),
    r"^[a-z0-9][a-z0-9./:_-]{0,200}$": ("Not a registry.", "registry.example.com/k8s"),
    r"^[a-z][a-z0-9_]{0,39}$": ("Not a name: lower-case letters, digits and `_`.", "rdma_shared"),
    r"^[a-z][a-z0-9_]{0,60}$": ("Not a name: lower-case letters, digits and `_`.", "slurmdbd_password"),
    r"^network-operator-v[0-9A-Za-z.-]{1,40}$": (
        "Not a release of the operator.",
        "network-operator-v26.7.0",
    ),
    r"^v?[0-9][0-9A-Za-z.+-]{0,40}$": ("Not a version.", "v0.17.4"),
}
"""Field pattern to (message, example)."""
