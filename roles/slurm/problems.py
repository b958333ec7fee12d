"""Mistakes in the slurm section that only show against the resolved cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster
from rackwright.model.platforms import Capability, has
from rackwright.model.ranges import fold
from rackwright.roles.slurm import layout, placement
from rackwright.roles.slurm.extra import extra_problems
from rackwright.roles.slurm.in_pods import unfit_for_pods, view
from rackwright.roles.slurm.mig import mig_problems
from rackwright.roles.slurm.node_problems import node_problems, release_problems, unknown_workers
from rackwright.roles.slurm.service_problems import (
    controller_problems,
    database_problems,
    nearest_name,
    reservation_problems,
)
from rackwright.roles.slurm.state_problems import Problem

if TYPE_CHECKING:
    from rackwright.roles.slurm.options import SlurmOptions

_BUILT_IN_ACCOUNTS = frozenset({"root", "burnin"})
_BUILT_IN_QOS = frozenset({"normal"})


def problems_of(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """All of them, in the order of the file."""
    in_pods = options.in_pods
    if in_pods:
        yield from unfit_for_pods(options, cluster)
        cluster, options = view(cluster, options)
    known = list(_releases(options, cluster))
    yield from known
    if not in_pods:
        yield from controller_problems(options, cluster)
    yield from _memory(options, cluster)
    yield from node_problems(options, cluster)
    yield from _partitions(options, cluster)
    yield from _accounts(options)
    yield from _users(options)
    yield from _qos(options)
    yield from _preemption(options)
    if not in_pods:
        yield from database_problems(options, cluster)
    yield from reservation_problems(options, cluster, {node.name for node in placement.workers(cluster)})
    yield from _platforms(cluster)
    yield from mig_problems(options, cluster)
    yield from _same_everywhere(options, cluster)
    yield from extra_problems(options, cluster)
    if not known:
        yield from release_problems(options, cluster)


def _releases(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    for node in placement.slurm_nodes(cluster):
        if options.packages.release is None and node.os.slurm is None:
            yield (
                "packages.release",
                f"{node.name} runs Slurm, but the Slurm release of {node.os} is unknown.",
                placement.UNKNOWN_RELEASE_HINT,
            )
            return
    for node in placement.slurm_nodes(cluster):
        if placement.release_on(node, options) < (22, 5):
            yield (
                "packages.release",
                f"{node.os} ships Slurm {node.os.slurm}, which cannot use cgroup v2.",
                "take packages from SchedMD: `packages: {source: schedmd, release: '26.05'}`",
            )
            return
    head = placement.release_on(cluster.primary, options)
    for node in placement.slurm_nodes(cluster):
        if placement.release_on(node, options) > head:
            release = "{}.{:02}".format(*placement.release_on(node, options))
            yield (
                "packages.release",
                (
                    f"{node.name} would run Slurm {release}, newer than {'{}.{:02}'.format(*head)} on "
                    f"{cluster.primary.name}; no daemon may be newer than its controller."
                ),
                "give the head the newest operating system, or take packages from SchedMD",
            )
            return


def _memory(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    for node in placement.workers(cluster):
        offers = layout.hardware(node)
        left = layout.real_memory(node, options) - options.mem_spec_limit_mib
        if left <= 0:
            yield (
                "mem_spec_limit_mib" if options.mem_spec_limit_mib else "memory_headroom_mib",
                f"None of {node.name}'s {offers.memory_mib} MiB is left for jobs.",
                None,
            )
            return
        if options.core_spec_count >= offers.sockets * offers.cores_per_socket:
            cores = offers.sockets * offers.cores_per_socket
            yield "core_spec_count", f"{node.name} has {cores} cores, so no core is left for jobs.", None
            return


def _partitions(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    for name, partition in options.partitions.items():
        path = f"partitions.{name}"
        if partition.nodes is not None:
            yield from unknown_workers(f"{path}.nodes", partition.nodes, cluster)
        qos = [
            ("qos", partition.qos),
            *((f"allow_qos[{i}]", qos) for i, qos in enumerate(partition.allow_qos)),
        ]
        yield from _unknown("QOS", path, qos, {*options.qos, *_BUILT_IN_QOS})
        for key in ("allow_accounts", "deny_accounts"):
            accounts = [(f"{key}[{i}]", account) for i, account in enumerate(getattr(partition, key))]
            yield from _unknown("account", path, accounts, {*options.accounts, *_BUILT_IN_ACCOUNTS})
        if "burnin" in partition.deny_accounts:
            yield (
                f"{path}.deny_accounts",
                "The account burnin must not be denied: verify and burn-in use it.",
                None,
            )


def _unknown(
    kind: str, path: str, named: Iterable[tuple[str, str | None]], known: set[str]
) -> Iterator[Problem]:
    for key, name in named:
        if name is not None and name not in known:
            yield f"{path}.{key}", f"There is no {kind} {name}.", nearest_name(name, known)


def _accounts(options: SlurmOptions) -> Iterator[Problem]:
    known = {*options.accounts, *_BUILT_IN_ACCOUNTS}
    for name, account in options.accounts.items():
        path = f"accounts.{name}"
        if name == "root":
            yield path, "The account root is Slurm's own.", "choose another name"
            continue
        yield from _unknown("account", path, [("parent", account.parent)], known)
        qos = [(f"qos[{i}]", qos) for i, qos in enumerate(account.qos)]
        yield from _unknown("QOS", path, qos, {*options.qos, *_BUILT_IN_QOS})
        yield from _unknown(
            "QOS", path, [("default_qos", account.default_qos)], {*options.qos, *_BUILT_IN_QOS}
        )
        if account.qos and account.default_qos and account.default_qos not in account.qos:
            yield (
                f"{path}.default_qos",
                f"{account.default_qos} is not among the QOS the account may use.",
                None,
            )
        if _in_ring(name, options):
            yield f"{path}.parent", f"The account {name} is its own ancestor.", None


def _in_ring(name: str, options: SlurmOptions) -> bool:
    seen, at = {name}, options.accounts[name].parent
    while at in options.accounts and at not in seen:
        seen.add(at)
        at = options.accounts[at].parent
    return at == name


def _users(options: SlurmOptions) -> Iterator[Problem]:
    known = {*options.accounts, *_BUILT_IN_ACCOUNTS}
    for name, user in options.users.items():
        if name == "root":
            yield f"users.{name}", "The user root is Slurm's own.", None
        accounts = [("default_account", user.default_account)]
        accounts += [(f"accounts[{i}]", account) for i, account in enumerate(user.accounts)]
        yield from _unknown("account", f"users.{name}", accounts, known)


def _qos(options: SlurmOptions) -> Iterator[Problem]:
    for name, qos in options.qos.items():
        preempts = [(f"preempt[{i}]", other) for i, other in enumerate(qos.preempt)]
        yield from _unknown("QOS", f"qos.{name}", preempts, {*options.qos, *_BUILT_IN_QOS})
        if name in qos.preempt:
            yield f"qos.{name}.preempt", f"The QOS {name} cannot preempt itself.", None


def _preemption(options: SlurmOptions) -> Iterator[Problem]:
    if options.preempt != "none" and options.preempt_mode == "OFF":
        yield "preempt_mode", f"With preempt {options.preempt}, preempt_mode cannot be OFF.", "e.g. REQUEUE"
    if options.preempt != "qos":
        for name, qos in options.qos.items():
            if qos.preempt:
                yield f"qos.{name}.preempt", "QOS preempt each other only with `preempt: qos`.", None


def _platforms(cluster: Cluster) -> Iterator[Problem]:
    workers = placement.workers(cluster)
    bound = [node.name for node in workers if not has(node.platform, Capability.CGROUP_V2)]
    if bound and len(bound) < len(workers):
        yield (
            "",
            (
                f"{fold(bound)} cannot confine jobs in cgroups but the other workers can; slurm.conf, "
                "which is one for all, cannot hold both."
            ),
            "declare containers and machines as two clusters",
        )


def _same_everywhere(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """The same files go to every node, so one node's own value would be ignored."""
    first = cluster.primary.offers(type(options))
    if first is None or first is options:
        return
    ours, theirs = (entry.model_dump(exclude=set(options.node_fields)) for entry in (options, first))
    for key, value in ours.items():
        if value != theirs[key]:
            yield (
                key,
                f"{key} must be the same on every node.",
                "move it to the slurm section of the cluster",
            )
