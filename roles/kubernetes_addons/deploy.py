"""Applies the kubernetes_addons role to the primary head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.errors import RackwrightError
from rackwright.operations.kubernetes_objects import kubernetes_objects
from rackwright.roles.kubernetes_addons.options import KubernetesAddonsOptions
from rackwright.roles.kubernetes_addons.sources import Unusable, objects_for


@deploy("kubernetes_addons")
def kubernetes_addons(options: KubernetesAddonsOptions) -> None:
    """Objects of all add-ons together, so that what leaves the list is deleted."""
    site = site_of()
    try:
        objects = objects_for(options, site.cluster)
    except Unusable as error:
        if site.offline:  # `rackwright bundle` lists what the node needs before the files are there
            return
        raise RackwrightError(str(error), hint=error.hint) from None
    kubernetes_objects("kubernetes_addons", objects)
