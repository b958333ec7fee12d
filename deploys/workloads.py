"""What runs jobs, in the order in which it is applied: a node leaves one workload before it joins another. Part of site.py."""
# mypy: allow-redefinition

from pyinfra.context import host

from rackwright.data import left_for, options_for
from rackwright.roles.gpu_stack_k8s.deploy import gpu_stack_k8s
from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions
from rackwright.roles.kubernetes.deploy import kubernetes
from rackwright.roles.kubernetes.deploy import leaves as leaves_kubernetes
from rackwright.roles.kubernetes.options import KubernetesOptions
from rackwright.roles.kubernetes_addons.deploy import kubernetes_addons
from rackwright.roles.kubernetes_addons.options import KubernetesAddonsOptions
from rackwright.roles.kubernetes_scheduling.deploy import kubernetes_scheduling
from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions
from rackwright.roles.load_balancer.deploy import load_balancer
from rackwright.roles.load_balancer.options import LoadBalancerOptions
from rackwright.roles.mariadb.deploy import mariadb
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.munge.deploy import munge
from rackwright.roles.munge.options import MungeOptions
from rackwright.roles.ray.deploy import leaves as leaves_ray
from rackwright.roles.ray.deploy import ray
from rackwright.roles.ray.options import RayOptions
from rackwright.roles.ray_on_slurm.deploy import ray_on_slurm
from rackwright.roles.ray_on_slurm.options import RayOnSlurmOptions
from rackwright.roles.slurm.deploy import leaves as leaves_slurm
from rackwright.roles.slurm.deploy import slurm
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm_on_kubernetes.deploy import slurm_on_kubernetes
from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

if (o := left_for(host, "kubernetes", KubernetesOptions)) is not None:
    leaves_kubernetes(options=o)
if (o := left_for(host, "slurm", SlurmOptions)) is not None:
    leaves_slurm(options=o)
if (o := left_for(host, "ray", RayOptions)) is not None:
    leaves_ray(options=o)
if (o := options_for(host, "munge", MungeOptions)) is not None:
    munge(options=o)
if (o := options_for(host, "mariadb", MariadbOptions)) is not None:
    mariadb(options=o)
if (o := options_for(host, "slurm", SlurmOptions)) is not None:
    slurm(options=o)
if (o := options_for(host, "ray_on_slurm", RayOnSlurmOptions)) is not None:
    ray_on_slurm(options=o)
if (o := options_for(host, "kubernetes", KubernetesOptions)) is not None:
    kubernetes(options=o)
if (o := options_for(host, "kubernetes_addons", KubernetesAddonsOptions)) is not None:
    kubernetes_addons(options=o)
if (o := options_for(host, "gpu_stack_k8s", GpuStackK8sOptions)) is not None:
    gpu_stack_k8s(options=o)
if (o := options_for(host, "kubernetes_scheduling", KubernetesSchedulingOptions)) is not None:
    kubernetes_scheduling(options=o)
if (o := options_for(host, "slurm_on_kubernetes", SlurmOnKubernetesOptions)) is not None:
    slurm_on_kubernetes(options=o)
if (o := options_for(host, "load_balancer", LoadBalancerOptions)) is not None:
    load_balancer(options=o)
if (o := options_for(host, "ray", RayOptions)) is not None:
    ray(options=o)
