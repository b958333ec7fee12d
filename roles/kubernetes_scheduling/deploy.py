"""Applies the kubernetes_scheduling role to the primary head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations.kubernetes_objects import kubernetes_objects
from rackwright.roles.kubernetes_scheduling.objects import objects
from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions


@deploy("kubernetes_scheduling")
def kubernetes_scheduling(options: KubernetesSchedulingOptions) -> None:
    """Objects alone."""
    kubernetes_objects("kubernetes_scheduling", objects(options, site_of().cluster))
