"""A run that changes firmware: its locks, its journal, the workload manager, images on the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rackwright.bmc.open import Open
from rackwright.bmc.serial_console import console_of
from rackwright.engine.boots import Before, Boots
from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import Journal
from rackwright.engine.reboots import not_passed
from rackwright.engine.run_lock import run_lock, who
from rackwright.errors import FirmwareError
from rackwright.firmware.asking import Asking, Tempo
from rackwright.firmware.bios_node import BiosNode
from rackwright.firmware.enrol_node import Attended, EnrolNode
from rackwright.firmware.images import served
from rackwright.firmware.maintenance import Change, Hands, Maintenance, Outcome, exit_code
from rackwright.firmware.mokutil import SigningKey
from rackwright.firmware.names import BIOS, PREFIX, UPDATE
from rackwright.firmware.restart import off_and_on, switch_on
from rackwright.firmware.service import Service, drained_by_firmware
from rackwright.firmware.update_node import UpdateNode
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.silences.silencer import Silencer
from rackwright.ssh import Pool
from rackwright.workload.lookup import manager_of, runs_jobs
from rackwright.workload.protocol import Job


@dataclass(frozen=True)
class Asked:
    """What the operator asked for."""

    what: str
    """UPDATE, BIOS or ENROL."""
    at_once: int = 1
    serve: bool = False
    """Images are files here."""
    key: SigningKey | None = None
    """To ENROL."""
    tempo: Tempo = field(default_factory=Tempo)


@dataclass(frozen=True)
class Situation:
    """What the workload manager knows of nodes before anything is done."""

    jobs: dict[str, tuple[Job, ...]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    """Node to the earlier firmware run that left it drained."""


def situation(cluster: Cluster, nodes: Sequence[Node]) -> Situation:
    """Jobs, and drains of earlier runs; RackwrightError where the workload manager does not answer."""
    workers = [node.name for node in nodes if runs_jobs(node)]
    if not workers:
        return Situation()
    with Pool(cluster) as pool:
        manager = manager_of(cluster, pool)
        if manager is None:
            return Situation()
        states = manager.states()
        busy = [name for name in workers if name in states and states[name].busy]
        jobs = {name: manager.jobs(name) for name in busy}
    left = {name: run for name in workers if (run := drained_by_firmware(states.get(name))) is not None}
    return Situation(jobs, left)


def carry_out(
    cluster: Cluster,
    nodes: Sequence[Node],
    asked: Asked,
    open_bmc: Open,
    *,
    notice: Callable[[str, str], None],
    warn: Callable[[str], None],
) -> tuple[Outcome, ...]:
    """Change these nodes, once agreed to. Holds both locks of an apply."""
    names = fold(node.name for node in nodes)
    lost: list[str] = []
    with run_lock(cluster.name):
        journal = Journal(cluster.name, cluster.path, limit=names, roles=None, deploy=asked.what)
        with HeadLock(cluster, {"run": journal.run, **who()}, lost=lost.append, notice=warn) as held:
            journal.mirror = held.send

            def broken_off() -> str | None:
                held.confirm()
                return f"the run lost its lock: {lost[0].rstrip('.')}" if lost else journal.failure

            with journal, Pool(cluster) as pool, served(cluster, asked.serve) as images:
                by = who()
                comment = f"rackwright {asked.what} {journal.run} of {by['user']}@{by['host']}"
                maintenance = _maintenance(cluster, pool, journal, asked, open_bmc)
                maintenance.notice, maintenance.broken_off = notice, broken_off
                maintenance.around = Silencer(cluster, pool, comment, warn).around
                maintenance.url_of = images.url_of if images is not None else None
                outcomes = maintenance.run(nodes, asked.at_once)
                journal.write("result", sync=True, exit_status=int(exit_code(outcomes)))
    return outcomes


def _maintenance(cluster: Cluster, pool: Pool, journal: Journal, asked: Asked, open_bmc: Open) -> Maintenance:
    reboots = _Reboots(cluster, pool)
    service = Service(cluster, manager_of(cluster, pool), PREFIX + journal.run, reboots.before, not_passed)

    def boot(node: Node, asking: Asking, on: bool) -> None:
        if on:
            seconds = reboots.timeout + asked.tempo.shutdown
            reboots.reboot(node, seconds, lambda boots: off_and_on(asking))
        else:
            switch_on(asking)

    def record(event: str, data: dict[str, Any]) -> None:
        journal.step(event, **data)

    change = _change(cluster, pool, asked, reboots)
    return Maintenance(
        service, change, open_bmc, boot, record=record, tempo=asked.tempo, give_up=reboots.give_up
    )


class _Reboots:
    """Reboots of one run's nodes, each ordered in another way than by systemd alone."""

    def __init__(self, cluster: Cluster, pool: Pool) -> None:
        self.timeout = float(cluster.waves.boot_timeout_seconds)
        self._cluster, self._pool = cluster, pool
        self._looking = Boots(cluster, pool, self.timeout)
        self._waited: list[Boots] = []

    def before(self, names: Iterable[str]) -> dict[str, Before]:
        """The boot that nodes are in, or why they may not be rebooted."""
        return self._looking.before(names)

    def reboot(self, node: Node, seconds: float, order: Callable[[Boots], None]) -> None:
        """Reboot a node by this order and wait for it; FirmwareError or NotBooted where it does not come to that."""
        before = self.before([node.name])[node.name]
        if before.why_not is not None:  # the last look: a job may have begun without the manager
            raise FirmwareError(f"it must not be rebooted: {before.why_not}.")
        boots = Boots(self._cluster, self._pool, seconds, order=lambda name: order(boots))
        self._waited.append(boots)
        try:
            problem = boots.reboot({node.name: before.boot})[node.name]
        finally:
            self._pool.forget(node.name)
        if problem is not None:
            raise problem

    def give_up(self) -> None:
        """Have all that wait, in other threads, end their wait."""
        for one in self._waited:
            one.give_up()


def _change(cluster: Cluster, pool: Pool, asked: Asked, reboots: _Reboots) -> Change:
    if asked.key is None:
        return partial(_CHANGES[asked.what], cluster)
    key = asked.key

    def enrol(node: Node, hands: Hands) -> tuple[str, ...]:
        def attended(attend: Attended) -> None:
            seconds = 2 * reboots.timeout  # the boot into MokManager, and the one after it
            reboots.reboot(node, seconds, lambda boots: attend(lambda: boots.by_systemd(node.name)))

        return EnrolNode(
            cluster,
            node.name,
            key,
            pool,
            partial(console_of, cluster, node, hands.asking.open),
            attended,
            reboots.timeout,
            hands.notice,
            hands.asking.stop.is_set,
        ).run()

    return enrol


def _update(cluster: Cluster, node: Node, hands: Hands) -> tuple[str, ...]:
    baseline = cluster.firmware[node.sku.name]
    return UpdateNode(hands.asking, baseline, hands.boot, hands.url_of, hands.notice).run()


def _bios(cluster: Cluster, node: Node, hands: Hands) -> tuple[str, ...]:
    return BiosNode(hands.asking, cluster.firmware[node.sku.name], hands.boot, hands.notice).run()


_CHANGES: dict[str, Callable[[Cluster, Node, Hands], tuple[str, ...]]] = {UPDATE: _update, BIOS: _bios}
