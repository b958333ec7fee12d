"""Installs or discovers many machines at once, within the declared limits, and resumes after a killed run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rackwright.bmc.interface import BmcClient
from rackwright.boundary import printable
from rackwright.errors import InstallError, RackwrightError
from rackwright.install import agent_image, erasure, first_login, needs
from rackwright.install.authority import credentials
from rackwright.install.boot_ways import BootWays
from rackwright.install.desk import Case, Desk
from rackwright.install.handover.requests import Site
from rackwright.install.handover.run import Handovers, declares_installer
from rackwright.install.image import RootImage, read_image
from rackwright.install.limits import Tempo
from rackwright.install.machine import Machine
from rackwright.install.orders import orders
from rackwright.install.record import Journal, Record, read
from rackwright.install.recovery import recovery_key
from rackwright.install.server import Server
from rackwright.install.settings import boot_network, listeners, public_key
from rackwright.install.states import UNDER_WAY, State
from rackwright.install.turns import Turns
from rackwright.install.verdict import Verdict
from rackwright.model.cluster import Cluster, Node
from rackwright.open_files import allow_open_files
from rackwright.ssh.side_by_side import side_by_side

Notice = Callable[[str, State, str], None]
"""Called with node, state and reason whenever a node progresses."""
_WAIT = 0.5
_END_SECONDS = 90.0
"""How long an interrupted run waits for outstanding BMC requests."""
_FILES_EACH = 4
"""Open files for each node: sessions with its BMC and its agent, an image, a journal (3.1 were measured with 512 nodes)."""


@dataclass(frozen=True)
class Outcome:
    """What became of one node."""

    node: str
    state: State
    reason: str
    seconds: float
    hint: str | None = None
    refused: bool = False
    """Whether it was left alone: nothing was done to it in this run."""


@dataclass(frozen=True)
class Asked:
    """What the operator asked for."""

    mode: str
    """install, discover or erase."""
    nodes: tuple[Node, ...]
    serials: Mapping[str, str] = field(default_factory=dict)
    """Node to the serial number that was typed to agree to its reinstallation or erasure."""
    tempo: Tempo = field(default_factory=Tempo)


class Installation:
    """One run over many nodes."""

    def __init__(
        self, cluster: Cluster, asked: Asked, open_bmc: Callable[[Node], BmcClient], notice: Notice
    ) -> None:
        self._cluster, self._asked, self._open, self._notice = cluster, asked, open_bmc, notice
        self._network = boot_network(cluster)
        self._desk = Desk()
        self._images: dict[Path, RootImage] = {}
        self._key = public_key(cluster) if asked.mode == "install" else ""
        self._turns = Turns(cluster, self._network.at_once, self._network.rack_percent)
        self._handovers = Handovers(Site(cluster, self._network, self._key))

    def prepare(self, log: Callable[[str], None]) -> None:
        """Refuse what cannot work before the first machine is touched; build the agent's image where it is missing."""
        wrong = [f"{node.name}: {message}" for node in self._asked.nodes if (message := self._unfit(node))]
        if not wrong and self._asked.mode == "install":
            wrong = list(dict.fromkeys(filter(None, map(self._lacks, self._asked.nodes))))
            wrong += self._handovers.problems(self._asked.nodes)
        wrong += needs.problems(self._cluster, self._asked.nodes)
        if wrong:
            raise InstallError("; ".join(dict.fromkeys(one.removesuffix(".") for one in wrong)) + ".")
        self._agent = agent_image.ensure(log)

    def _unfit(self, node: Node) -> str | None:
        if node.bmc is None:
            return "no BMC is declared"
        if self._asked.mode != "install":
            return None
        if node.install is None:
            return "no installation is declared (`install:`)"
        return None

    def _lacks(self, node: Node) -> str | None:
        """What is missing to write the node's orders: its image, its recovery key, an operating system that images suit."""
        if declares_installer(node):
            return None
        folder = None if node.install is None else node.install.image
        try:
            if folder is not None and folder not in self._images:
                self._images[folder] = read_image(folder)
            image = None if folder is None else self._images[folder]
            if image is not None and image.os != str(node.os):
                return f"{node.name} is declared with {node.os}, and {folder} has {image.os}"
            self._orders(node, "", image, Verdict((), (), {}))
        except RackwrightError as error:
            return error.message + (f" ({error.hint})" if error.hint is not None else "")
        return None

    def run(self, meanwhile: Callable[[], None] = lambda: None) -> list[Outcome]:
        """Install the nodes; one that fails does not keep the others. Returns when every node has ended.

        + meanwhile: called repeatedly until then; it must not block
        """
        allow_open_files(_FILES_EACH * len(self._asked.nodes))
        keys = credentials(self._cluster.name, frozenset((self._network.server, self._network.bmc_server)))
        cases = self._open_desk()
        with ExitStack() as stack:
            server = Server(self._desk, listeners(self._cluster), keys.chain)
            stack.callback(server.close)
            ways = BootWays(self._cluster, self._network, self._agent, keys.ca)
            stack.enter_context(ways.serving(self._asked.nodes))
            if self._asked.mode == "install":
                stack.enter_context(self._handovers.serving(self._asked.nodes, keys.ca))
            pool = stack.enter_context(side_by_side(len(cases)))
            # Ctrl-C ends the wait and begins no other node: agents go on alone, and the next run finds them
            futures: dict[str, Future[Outcome]] = {}
            stack.callback(
                _let_end, futures
            )  # a BMC that has been asked still answers, and its machine needs the server
            stack.callback(self._turns.stop)
            futures |= {case.node.name: pool.submit(self._one, case, ways) for case in cases}
            while not all(future.done() for future in futures.values()):
                meanwhile()
                time.sleep(_WAIT)
            return [futures[node.name].result() for node in self._asked.nodes]

    def _open_desk(self) -> list[Case]:
        """The nodes' cases, of those that are under way first: their agents may ask as soon as the server listens."""
        cases, others = [self._case(node) for node in self._asked.nodes], set()
        for case in cases:
            if case.journal.record.state in UNDER_WAY:
                self._desk.open(case)
        asked = {case.node.name for case in cases}
        for node in self._cluster.nodes:
            if node.name in asked:
                continue
            record = read(self._cluster.name, node.name)
            if record.state in UNDER_WAY:
                others |= {record.token, record.session}
        self._desk.of_other_runs = frozenset(others - {""})
        return sorted(cases, key=lambda case: case.journal.record.state not in UNDER_WAY)

    def _case(self, node: Node) -> Case:
        install, journal = node.install, Journal(self._cluster.name, node.name)
        image = self._images.get(install.image) if install is not None and install.image is not None else None
        case = Case(
            node,
            journal,
            lambda verdict: self._orders(node, journal.record.run, image, verdict),
            image,
            mode=self._asked.mode,
            waits=partial(self._turns.give, node),
            may_go_on=partial(self._turns.take_again, node),
        )
        if declares_installer(node):
            case = replace(case, hand_over=partial(self._handovers.approve, node, journal))
        return case

    def _one(self, case: Case, ways: BootWays) -> Outcome:
        node, journal = case.node, case.journal
        with self._turns.turn(node):
            begun, before = time.monotonic(), Record(node.name)
            try:
                before = journal.record
                with journal.claim():
                    state = self._carry_out(case, ways)
                return Outcome(node.name, state, journal.record.reason, time.monotonic() - begun)
            except RackwrightError as error:
                message, hint = error.message, error.hint
            except Exception as error:  # noqa: BLE001 - it ends only this node
                message, hint = printable(f"{type(error).__name__}: {error}", 300), None
            after = journal.record
            untouched = (after.run, after.state) == (before.run, before.state)
            self._notice(node.name, after.state, message)
            return Outcome(node.name, after.state, message, time.monotonic() - begun, hint, refused=untouched)

    def _carry_out(self, case: Case, ways: BootWays) -> State:
        node = case.node
        bmc = self._open(node)
        self._desk.open(case)
        try:
            medium = ways.of(case)
            machine = Machine(
                node=node,
                journal=case.journal,
                bmc=bmc,
                network=self._network,
                medium=medium,
                answers=partial(first_login.answers, self._cluster, node),
                logged_in=partial(first_login.kernel_arguments, self._cluster, node),
                notice=partial(self._notice, node.name),
                heard=partial(self._desk.heard, node.name),
                handover=self._handovers.of(case, medium) if self._asked.mode == "install" else None,
                tempo=self._asked.tempo,
                stop=self._turns.stopped,
            )
            return machine.run(self._asked.mode, self._asked.serials.get(node.name))
        finally:
            if case.journal.record.state not in UNDER_WAY:
                self._desk.close(node.name)  # otherwise its agent would continue and call again
                self._handovers.close(node)
            bmc.close()

    def _orders(self, node: Node, run: str, image: RootImage | None, verdict: Verdict) -> dict[str, Any]:
        if image is None:
            raise InstallError(f"{node.name} has no image.")
        recovery = recovery_key(self._cluster, node)
        return orders(self._cluster, node, run, image, self._key, verdict, recovery)


def _let_end(futures: Mapping[str, Future[Outcome]]) -> None:
    for future in futures.values():
        future.cancel()
    wait(futures.values(), _END_SECONDS)


def confirm(cluster: Cluster, node: Node, serial: str, mode: str = "install") -> Sequence[str]:
    """Let the running installation of a held node erase a disk; what it holds is returned, and bound to this run.

    InstallError if the node is not on hold, or not for this disk.

    + serial: of the disk; of the machine in the mode `erase`, which all its disks wait for
    """
    journal = Journal(cluster.name, node.name)
    record = journal.record
    if record.state is not State.HELD:
        raise InstallError(f"{node.name} is not on hold: it is {record.state}.")
    if record.mode != mode:
        command = "decommission" if record.mode == erasure.MODE else record.mode
        raise InstallError(
            f"Another command handles {node.name}.", hint=f"rackwright {command} FILE --erase NODE=SERIAL"
        )
    if serial not in record.held:
        raise _not_waiting(node, serial, record)
    signs = record.held[serial]
    journal.note(confirm={serial: list(signs)}, of=record.run)
    if journal.record.confirmed.get(serial) != signs:
        raise InstallError(f"{node.name} is no longer on hold: it is {journal.record.state}.")
    return signs


def _not_waiting(node: Node, serial: str, record: Record) -> InstallError:
    if record.mode == erasure.MODE and record.held:  # do not print what must be typed
        return InstallError(
            f"{serial} is not the serial number of {node.name}'s machine.",
            hint="read it off the machine's label",
        )
    waiting = ", ".join(record.held) or "none: it differs from its declaration"
    return InstallError(
        f"{node.name} does not wait for a confirmation of disk {serial}.", hint=f"disks that wait: {waiting}"
    )
