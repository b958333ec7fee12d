"""Which release of Kubernetes has which feature, for the roles that put objects into it.

Sources: the changelogs on github.com/kubernetes/kubernetes and the feature gate list on kubernetes.io (read 2026-11-28).
"""

from __future__ import annotations


def minor_of(version: str) -> int:
    """34 of `1.34.2`."""
    return int(version.split(".")[1])


def names_cdi_devices(version: str) -> bool:
    """Whether device plugins may answer with CDI devices: DevicePluginCDIDevices, on by default since 1.29."""
    return minor_of(version) >= 29


def enforces_pod_security(version: str) -> bool:
    """Whether labels of a namespace set its Pod Security level: on by default since 1.23."""
    return minor_of(version) >= 23


def disruption_budgets(version: str) -> str:
    """apiVersion of PodDisruptionBudget: v1 from 1.21 on; v1beta1 is gone from 1.25 on (deprecation guide, read 2026-11-28)."""
    return "policy/v1" if minor_of(version) >= 21 else "policy/v1beta1"
