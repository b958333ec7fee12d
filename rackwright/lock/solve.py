"""Solves the whole cluster: each kind of node with GPUs to exact versions, or to the reasons why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.catalog.tables import Branch
from rackwright.errors import RackwrightError
from rackwright.lock.choice import Choice, choose, pair_of
from rackwright.lock.content import GroupLock, Lock
from rackwright.lock.index import Index
from rackwright.lock.lock_file import wish_of
from rackwright.lock.names import packages_of
from rackwright.lock.question import Question, Tables
from rackwright.lock.refusals import refusals
from rackwright.lock.safety import below_minimum
from rackwright.lock.source import offer_for
from rackwright.lock.versions import debian_key
from rackwright.lock.words import Refusal
from rackwright.model.cluster import Cluster
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.sku import Architecture


@dataclass(frozen=True)
class Refused:
    """A kind of node that cannot be had as wished, with every reason."""

    sku: str
    os: str
    source: str
    reasons: tuple[Refusal, ...]


@dataclass(frozen=True)
class Solution:
    """A lock, or what stands against it."""

    lock: Lock
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...]
    """SKUs with GPUs that have no NVIDIA stack."""


def solve(cluster: Cluster, tables: Tables, index: Index) -> Solution:
    """The lock of a cluster. Raises RackwrightError where the file does not say what it wants."""
    if cluster.gpu_stack is None:
        raise RackwrightError(
            f"{cluster.path.name} has no section gpu_stack, so there is nothing to lock.",
            hint='e.g. `gpu_stack: {source: nvidia, driver: {branch: "580"}}`',
        )
    groups: list[GroupLock] = []
    refused: list[Refused] = []
    questions, skipped = _questions(cluster, cluster.gpu_stack, tables, index)
    for question in questions:
        answer = solve_group(question)
        if isinstance(answer, GroupLock):
            groups.append(answer)
        else:
            refused.append(Refused(question.sku.name, question.os, question.wish.source, answer))
    wish, places = wish_of(cluster)
    lock = Lock(cluster=cluster.name, tables=tables.dates(), index=places, wish=wish, groups=tuple(groups))
    return Solution(lock, tuple(refused), skipped)


def _questions(
    cluster: Cluster, wish: GpuStack, tables: Tables, index: Index
) -> tuple[list[Question], tuple[str, ...]]:
    """One question for each kind of node with NVIDIA's GPUs, sorted; and the SKUs left out."""
    kinds = {(node.sku.name, node.os): node.sku for node in cluster.nodes if node.sku.gpus is not None}
    questions, skipped = [], set()
    for (name, os), sku in sorted(kinds.items()):
        if sku.gpus is None:
            continue
        if sku.gpus.architecture is Architecture.CDNA3:
            skipped.add(name)
            continue
        offer = offer_for(tables.offers, wish, os, index)
        questions.append(Question(sku, sku.gpus, os, wish, tables, index, offer))
    return questions, tuple(sorted(skipped))


def solve_group(question: Question) -> GroupLock | tuple[Refusal, ...]:
    """The lock of one kind of node, or every reason against it."""
    choice = choose(question)
    reasons = list(refusals(question, choice))
    components = packages_of(question, choice)
    packages = {name: version for part in components.values() for name, version in part.items()}
    exact, hashes, missing = _looked_up(question, packages)
    if not reasons:
        reasons = missing
    if reasons or choice.driver is None:
        return tuple(reasons)
    return GroupLock(
        sku=question.sku.name,
        os=question.os,
        source=question.wish.source,
        kernel=None if choice.kernel is None else choice.kernel.release,
        driver_branch=choice.driver.branch,
        driver_version=choice.driver.version,
        open_modules=choice.modules == "open",
        cuda=choice.cuda,
        fabricmanager=question.needs_fabricmanager,
        nvlsm=question.needs_nvlsm,
        imex=choice.imex,
        ofed="inbox" if choice.doca is None else "doca",
        packages=dict(sorted(exact.items())),
        components={component: tuple(sorted(part)) for component, part in components.items()},
        sha256=hashes,
        notes=tuple(_notes(question, choice, exact)),
    )


def _looked_up(
    question: Question, packages: dict[str, str]
) -> tuple[dict[str, str], dict[str, str], list[Refusal]]:
    """Versions to the last revision and hashes, where an index was read; and what it lacks."""
    exact, hashes, missing = dict(packages), {}, []
    for name, pattern in packages.items() if question.index.packages else ():
        entry = question.index.best(name, pattern)
        if entry is None:
            what = name if pattern == "*" else f"{name} {pattern}"
            missing.append(Refusal(f"The package index has no {what}.", "name every index of the source"))
            continue
        exact[name] = entry.version
        if entry.sha256 is not None:
            hashes[name] = entry.sha256
    return exact, hashes, missing


def _notes(question: Question, choice: Choice, packages: dict[str, str]) -> Iterator[str]:
    offer, driver = question.offer, choice.driver
    if offer is None or driver is None:
        return
    branch = _branch(question, driver.branch)
    if branch is not None and branch.end_of_life is not None:
        read = max(source.read for source in question.tables.drivers.sources)
        if branch.end_of_life < read.isoformat()[:7]:
            yield f"Driver branch {branch.branch} had its end of life in {branch.end_of_life}."
    yield from below_minimum(question, choice)
    if question.gpus.architecture is Architecture.BLACKWELL and question.gpus.minimum_driver is None:
        yield f"Which driver is the first for {question.product} is not in the tables."
    yield from _kernel_notes(question, choice)
    for what, chosen in (
        ("DCGM", choice.dcgm),
        ("container toolkit", choice.container_toolkit),
        ("CUDA toolkit", choice.cuda),
        ("NCCL", choice.nccl),
    ):
        wished = getattr(question.wish, _WISHES[what])
        if chosen is None and wished is None:
            yield f"No {what}: {offer.name} for {question.os} has none that is known."
    if question.wish.source == "mirror" and not question.index.packages:
        yield "The mirror's index was not read; it is taken to have what NVIDIA's repositories have."
    if any("*" in version for version in packages.values()):
        yield "Some versions end in `*`: without a package index their revisions are not known."


def _kernel_notes(question: Question, choice: Choice) -> Iterator[str]:
    kernel, offer = choice.kernel, question.offer
    if kernel is None or offer is None:
        yield f"The tables know no kernel of {question.os}: it is not locked."
        return
    latest = max(
        (other for other in offer.kernels if other.default),
        key=lambda other: debian_key(other.version),
        default=kernel,
    )
    pair = pair_of(question, choice.driver, choice.modules, kernel)
    if pair is None:
        yield f"Nobody has said whether the driver builds against the headers of {kernel.release}."
    elif kernel != latest:
        yield (
            f"The kernel is {kernel.release} ({kernel.version}) and not the newest, "
            f"{latest.release} ({latest.version}): the driver is known to build against the first only."
        )


_WISHES = {"DCGM": "dcgm", "container toolkit": "container_toolkit", "CUDA toolkit": "cuda", "NCCL": "nccl"}


def _branch(question: Question, name: str) -> Branch | None:
    return next((row for row in question.tables.drivers.rows if row.branch == name), None)
