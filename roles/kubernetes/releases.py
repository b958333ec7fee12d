"""What differs between releases of Kubernetes, in one place.

Sources: the changelogs and kubeadm's API documentation on kubernetes.io (read 2026-11-28), and for 1.20 its source, which the
lab builds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rackwright.kubernetes.versions import minor_of

OLDEST, NEWEST = 20, 37
"""Minor releases: 1.20 is what the lab builds; 1.37 is the newest release (August 2026)."""


@dataclass(frozen=True)
class Release:
    """One minor release."""

    minor: int

    @property
    def kubeadm_api(self) -> Literal["v1beta2", "v1beta3", "v1beta4"]:
        """kubeadm.k8s.io version: v1beta3 since 1.22, v1beta4 since 1.31."""
        if self.minor >= 31:
            return "v1beta4"
        return "v1beta3" if self.minor >= 22 else "v1beta2"

    @property
    def lists_arguments(self) -> bool:
        """extraArgs is a list of name and value since v1beta4."""
        return self.kubeadm_api == "v1beta4"

    @property
    def cri_socket(self) -> str:
        """kubeadm wants the scheme since 1.24."""
        path = "/run/containerd/containerd.sock"
        return f"unix://{path}" if self.minor >= 24 else path

    @property
    def control_plane_taint(self) -> str:
        """`control-plane` alone since 1.25; 1.24 sets both."""
        return f"node-role.kubernetes.io/{'control-plane' if self.minor >= 24 else 'master'}"

    @property
    def graceful_shutdown(self) -> bool:
        """On by default since 1.21."""
        return self.minor >= 21

    @property
    def joins_etcd_as_learner(self) -> bool:
        """On by default since 1.29: etcd keeps its leader while a member joins."""
        return self.minor >= 29

    @property
    def refuses_cgroup_v1(self) -> bool:
        """`failCgroupV1` is true by default since 1.35."""
        return self.minor >= 35

    @property
    def dns_type(self) -> bool:
        """`dns.type` exists up to v1beta2."""
        return self.kubeadm_api == "v1beta2"


def release_of(version: str) -> Release:
    """The release of an exact version such as `1.34.2`."""
    return Release(minor_of(version))
