"""Applies the gpu_stack_k8s role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.lock.for_roles import has_stack
from rackwright.model.interfaces import RunsKubernetes
from rackwright.operations.kubernetes_objects import kubernetes_objects
from rackwright.operations.settings import setting
from rackwright.roles.gpu_stack_k8s import node_labels
from rackwright.roles.gpu_stack_k8s.objects import objects
from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions


@deploy("gpu_stack_k8s")
def gpu_stack_k8s(options: GpuStackK8sOptions) -> None:
    """The node's labels, and on the first control-plane node the objects."""
    site = site_of()
    if has_stack(site.node) and options.mode != "gpu-operator":  # the operator's GFD labels them there
        wanted = node_labels.declared(options, site.cluster, site.node)
        setting(
            name="Label the node's GPUs as declared",
            target=f"GPU labels of {site.node.name}",
            read=node_labels.read(site.node),
            want=node_labels.lines(wanted),
            write=node_labels.write(site.node, wanted),
        )
    runs = site.node.offers(RunsKubernetes)
    if runs is not None and runs.control_planes(site.cluster)[0].name == site.node.name:
        kubernetes_objects("gpu_stack_k8s", objects(options, site.cluster))
