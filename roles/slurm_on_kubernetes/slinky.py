"""Custom resources of SchedMD's Slinky slurm-operator, API slinky.slurm.net/v1beta1.

The operator writes slurm.conf itself; what this role adds to it are the lines that it does not write. Sources:
config/crd/bases and internal/builder/controllerbuilder of SlinkyProject/slurm-operator, read 2026-11-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions


def objects(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """Filled in below."""
    return []
