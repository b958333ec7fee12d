"""Kueue's own configuration, as values of its chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions

_CONFIGURATION: dict[str, Any] = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "health": {"healthProbeBindAddress": ":8081"},
    "metrics": {"bindAddress": ":8443"},
    "webhook": {"port": 9443},
    "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
    "integrations": {
        "frameworks": [
            "batch/job",
            "kubeflow.org/mpijob",
            "ray.io/rayjob",
            "ray.io/raycluster",
            "jobset.x-k8s.io/jobset",
            "trainer.kubeflow.org/trainjob",
        ]
    },
    "fairSharing": {},
}
"""The chart's own, with fair sharing: charts/kueue/values.yaml of kubernetes-sigs/kueue v0.19.2, read 2026-11-28."""


def chart_values_of(options: KubernetesSchedulingOptions) -> dict[str, dict[str, Any]]:
    """The chart takes the configuration as one text."""
    if options.kueue is None or not options.kueue.fair_sharing or options.kueue.api == "v1beta1":
        return {}
    text: str = yaml.safe_dump(_CONFIGURATION, sort_keys=False)
    return {"kueue": {"managerConfig": {"controllerManagerConfigYaml": text}}}
