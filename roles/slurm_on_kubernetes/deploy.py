"""Applies the slurm_on_kubernetes role: all of it on the primary head, through the API."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.kubernetes.commands import KUBECTL
from rackwright.operations.kubernetes_objects import kubernetes_objects
from rackwright.operations.kubernetes_secret import kubernetes_secret
from rackwright.operations.settings import setting
from rackwright.operations.slurm_accounting import entities
from rackwright.roles.slurm_on_kubernetes import declared, texts
from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions
from rackwright.roles.slurm_on_kubernetes.places import ACCOUNTING, ROLE, inside, places, slurm_of


@deploy("slurm_on_kubernetes")
def slurm_on_kubernetes(options: SlurmOnKubernetesOptions) -> None:
    """Secrets first, which pods wait for; then the objects, the accounting records, and the pods' new files."""
    site = site_of()
    if not site.node.primary:
        return
    for secret in host.loop(declared.secrets(options, site.cluster)):  # type: ignore[no-untyped-call]
        kubernetes_secret(
            name=f"Write the secret {secret.name}",
            role=ROLE,
            namespace=options.namespace,
            secret=secret.name,
            data=declared.contents(secret, lambda name: site.secret(name).reveal()),
        )
    kubernetes_objects(ROLE, declared.objects(options, site.cluster))
    if options.flavour == "pods":
        _wait_for_slurmdbd(site, options)
        _entities(site, options, "Update accounts, users and QOS in slurmdbd's pod", counted=False)
        setting(
            name="Bring the pods to their declared template, key and files",
            target="Slurm's pods",
            read=texts.settle(options, site.cluster, "read"),
            want=texts.AS_DECLARED,
            write=texts.settle(options, site.cluster, "write"),
        )
        _entities(site, options, "Update the limits on resources that slurmctld's pod counts", counted=True)


def _wait_for_slurmdbd(site: Site, options: SlurmOnKubernetesOptions) -> None:
    """slurmctld's pod waits for the records, which are declared to slurmdbd."""
    one = f"{KUBECTL} rollout status statefulset/{ACCOUNTING} --namespace {options.namespace}"
    seconds = texts.SETTLE_SECONDS * site.cluster.ssh.time_factor
    setting(
        name="Wait for slurmdbd's pod",
        target="slurmdbd's pod",
        read=f"{one} --watch=false | grep -q 'rolling update complete' && echo {texts.READY}",
        want=texts.READY,
        write=f"{one} --timeout={seconds}s",
    )


def _entities(site: Site, options: SlurmOnKubernetesOptions, name: str, *, counted: bool) -> None:
    """Twice, as on nodes: slurmdbd takes no limit on a TRES before a slurmctld has named it."""
    slurm = slurm_of(site.cluster)
    entities(
        name=name,
        cluster=site.cluster.name,
        declared=slurm.pod_records(site.cluster, places(options, site.cluster)),
        prune=slurm.prune,
        counted=counted,
        local=False,
        inside=inside(options, f"{ACCOUNTING}-0", ACCOUNTING),
    )
