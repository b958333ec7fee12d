"""The installation of one machine, from its BMC's first answer to the first login.

Every change is written to the journal before it is made, so that the next run can resume after a kill: it inspects
the machine again, and never assumes that it is where the journal left it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event

from rackwright.bmc.interface import BmcClient, BootTarget, Power, PowerAction
from rackwright.errors import BmcError, InstallError, RackwrightError
from rackwright.install import steady
from rackwright.install.erasure import MODE
from rackwright.install.first_login import wait_for
from rackwright.install.handover.node import Handover, declared
from rackwright.install.interlocks import Seen, refusals
from rackwright.install.limits import Interrupted, Refused, Tempo, overdue
from rackwright.install.medium import Medium
from rackwright.install.patient_bmc import PatientBmc
from rackwright.install.record import Journal, Record
from rackwright.install.states import (
    AGENT_DONE,
    ON_THE_MACHINE,
    ORDERED_ON,
    UNDER_WAY,
    WRITING,
    State,
)
from rackwright.install.tokens import digest, new_run, new_token
from rackwright.model.cluster import Node
from rackwright.model.install import BootNetwork


@dataclass
class Machine:
    """One machine and everything its installation needs."""

    node: Node
    journal: Journal
    bmc: BmcClient
    network: BootNetwork
    medium: Medium
    """How the machine boots the agent."""
    answers: Callable[[], bool]
    """Whether the node's address answers on the SSH port."""
    logged_in: Callable[[str], str | None]
    """The kernel command line over SSH, checked against the machine's new host key; None: not yet."""
    notice: Callable[[State, str], None]
    heard: Callable[[], float] = lambda: 0.0
    """When the agent last called, in seconds of time.monotonic()."""
    handover: Handover | None = None
    """Boots the distribution's installer after the agent, if one is declared."""
    tempo: Tempo = field(default_factory=Tempo)
    stop: Event = field(default_factory=Event)
    """Set when the run must stop: nothing more is done to the machine."""
    _helped_since: float | None = None
    _seen_at_work: bool = False
    """Whether this process has followed the agent, so that nothing else can be running."""

    def __post_init__(self) -> None:
        self._patient = PatientBmc(self.bmc, self.tempo, self.stop)

    def run(self, mode: str, typed_serial: str | None) -> State:
        """Install or discover the machine, or resume; returns its final state.

        Raises Refused, Interrupted and BmcError, after which the next run resumes.
        """
        if not self._goes_on(mode, typed_serial):
            self._precheck(mode, typed_serial)
            self._arm()
        state = self._watch()
        if state is State.HANDED_OVER:
            self._boot_installer()
            state = self._watch()
        if state in (State.INSTALLED, State.FIRST_BOOT):
            state = self._start(state)
        if state is State.READY and self.journal.record.media:
            self._disarm()
        return state

    def _goes_on(self, mode: str, typed_serial: str | None) -> bool:
        """Whether an earlier run left the machine in a state that can be resumed."""
        record = self.journal.record
        if record.state not in UNDER_WAY or record.mode != mode:
            return False
        if typed_serial is not None and self._patient.is_replaced(record, self.node, typed_serial):
            self._fail(f"its machine was replaced by {typed_serial}")
            return False
        if record.state in ON_THE_MACHINE and self._power(record.state) is Power.OFF:
            self._require_its_machine()
            self._fail(f"the machine was found off in {record.state}, at {record.percent} %")
            self._disarm()
            return False
        with suppress(BmcError):  # its agent is answered even while its BMC is silent
            self._require_its_machine()
        self.notice(record.state, f"resuming run {record.run}")
        if record.state in ON_THE_MACHINE:
            self.medium.resume(record.media)
        if record.state is State.INSTALLER:
            with self._ending_the_run():
                declared(self.handover, self.node).resume(record)
        return True

    def _require_its_machine(self) -> None:
        self._patient.require_machine_of(self.journal.record)

    def _precheck(self, mode: str, typed_serial: str | None) -> None:
        self._patient.require_going_on(self.node)
        identity, before = self.bmc.identity(), self.journal.record
        seen = Seen(identity, self.bmc.power(), self.bmc.secure_boot(), self.answers())
        if before.media and before.state not in UNDER_WAY and before.is_of(identity):
            self._disarm()  # the run that inserted it was killed, or the BMC failed to eject it
        if found := refusals(self.node, seen, before, typed_serial, mode):
            raise Refused(self.node.name, found)
        run = new_run()
        # what must be typed again before an erasure is not printed
        name = None if mode == MODE else identity.serial or identity.uuid
        label = " ".join(filter(None, (identity.maker, identity.model, name)))
        mac = self.node.mac or next(iter(identity.macs), "")
        self._patient.known = True
        names = {"serial": identity.serial or "", "uuid": identity.uuid or "", "mac": mac}
        self._move(State.PRECHECKED, label, run=run, mode=mode, **names)

    def _arm(self) -> None:
        record, token = self.journal.record, new_token()
        with self._ending_the_run():
            self._patient.require_going_on(self.node)
            media = self.medium.make(record, token)
            until = steady.now() + 60 * self.network.token_minutes
            self._move(State.ARMED, f"run {record.run}", token=digest(token), token_until=until, media=media)
            self._boot(media)

    def _boot(self, media: str) -> None:
        """Boot a machine that is off from a medium."""
        if (power := self.bmc.power()) is not Power.OFF:
            raise InstallError(f"{self.node.name} was off, but its power is now {power}: it was not touched.")
        self._patient.require_going_on(self.node)
        self.medium.insert(self.bmc, media)
        self._patient.require_going_on(self.node)
        self._patient.switch_on()

    def _boot_installer(self) -> None:
        """Boot the distribution's installer on a machine after the agent has finished; a later run may do this."""
        record = self.journal.record
        with self._ending_the_run():
            self._patient.require_going_on(self.node)
            self._patient.require_machine_of(record, again=True)
            if self.answers():
                raise InstallError(f"The address of {self.node.name} answers on the SSH port.")
            self._helped_since, made = None, declared(self.handover, self.node).make(record)
            until = steady.now() + 60 * self.network.token_minutes
            self._move(State.INSTALLER, f"run {record.run}", session="", phase="", token_until=until, **made)
            self._boot(made["media"])

    @contextmanager
    def _ending_the_run(self) -> Iterator[None]:
        """Record failures in the block, and remove what is left of the run."""
        try:
            yield
        except (RackwrightError, OSError) as error:
            reason = error.message if isinstance(error, RackwrightError) else str(error)
            self._fail(reason)
            self._disarm()
            if isinstance(error, OSError):
                raise InstallError(reason) from error
            raise

    def _watch(self) -> State:
        """Wait for the agent or the installer, and watch the machine's power."""
        begun, off_since = time.monotonic(), None
        was_on = self.journal.record.state not in ORDERED_ON
        shown = (State.ARMED, 0)
        while True:
            record = self.journal.record
            if (now := (record.state, record.percent // 25)) != shown:
                shown = now
                at = f"{record.phase} {record.percent} %" if record.phase else record.reason
                self.notice(record.state, at if record.state in WRITING else record.reason)
            if record.state in (State.FAILED, State.FIRST_BOOT, State.READY):
                break
            self._seen_at_work = self._seen_at_work or record.state in ON_THE_MACHINE
            power = self._power(record.state)
            was_on = was_on or power is Power.ON
            if power is not Power.UNKNOWN:  # without an answer from the BMC, the power is unknown
                off_since = max(off_since or time.monotonic(), self.heard()) if power is Power.OFF else None
            off_for = time.monotonic() - off_since if off_since is not None else None
            if self._ended(record, off_for, was_on, time.monotonic() - begun):
                break
            self._pause()
        state = self.journal.record.state
        if state is not State.FIRST_BOOT:
            self._disarm()
        return state

    def _ended(self, record: Record, off_for: float | None, was_on: bool, waited: float) -> bool:
        """Whether there is nothing more to wait for; failures are then in the journal."""
        if record.state in AGENT_DONE:
            return off_for is not None or self._agent_is_gone(record)
        reason = overdue(record, off_for, was_on, waited, self.network, self.tempo)
        if reason is not None:
            self._fail(reason, only=record.state)
        return self.journal.record.state is State.FAILED

    def _agent_is_gone(self, record: Record) -> bool:
        """Whether to stop waiting for a machine whose agent is done but which is not off.

        The agent powers it off; if it cannot, we do, but only if nothing else can be running.
        """
        if self._in_memory and record.state is State.INSTALLED:
            return True
        if steady.now() - record.since <= self.tempo.power_off:
            return False
        if self.answers():
            return True  # it was started by hand in the meantime
        self._helped_since, now = self._helped_since or time.monotonic(), time.monotonic()
        if not self._seen_at_work or now - self._helped_since > self.tempo.power_off:
            self._disarm()
            raise InstallError(
                f"{self.node.name} is {record.state} and not off; it is unknown what runs on it.",
                hint=f"run rackwright bmc power FILE off --limit {self.node.name}, then repeat the command",
            )
        try:
            self._patient.require_machine_of(record, again=True)
            self.bmc.set_power(PowerAction.OFF)
        except BmcError as error:
            self.notice(record.state, error.message)
        return False

    def _power(self, state: State) -> Power:
        """The power, or UNKNOWN while the BMC does not answer, which is tolerated for some minutes."""
        try:
            return self._patient.power()
        except BmcError as error:
            if state not in ON_THE_MACHINE:
                raise  # the disks are written: the next run resumes
            self._fail(error.message, only=state)
            return Power.UNKNOWN

    def _start(self, state: State) -> State:
        """Boot the machine from its disk, and wait for the first login."""
        record = self.journal.record
        self._insist(self._require_its_machine)
        if self._in_memory:
            if state is State.INSTALLED:
                self._move(State.FIRST_BOOT)
            elif self.bmc.power() is Power.OFF:
                return self._fail("the machine was found off, so its in-memory system is lost")
        else:
            if state is State.INSTALLED:
                self._insist(lambda: self.bmc.set_boot(BootTarget.DISK, once=False))
                self._move(State.FIRST_BOOT)
            self._insist(self._patient.switch_on_if_off)
        wrong = wait_for(self.logged_in, record, self.tempo, self._pause)
        if wrong is not None:
            return self._fail(wrong)
        self._move(State.READY, f"SSH login with the host key of run {record.run}")
        return State.READY

    def _insist(self, order: Callable[[], None]) -> None:
        """Repeat an idempotent order while the BMC fails; BmcError after some minutes."""
        for error in self._patient.insist(order):
            self.notice(self.journal.record.state, error.message)
            self._pause()

    def _disarm(self) -> None:
        """Remove the boot medium and the one-time boot order; a BMC that fails to is reported, not fatal."""
        if self.handover is not None:
            self.handover.close()
        try:
            self._require_its_machine()
            self.medium.remove(self.bmc)
        except (BmcError, OSError) as error:
            self.notice(self.journal.record.state, f"the boot medium is still in its drive: {error}")
            return
        if self.journal.record.media:
            self.journal.note(media="")

    @property
    def _in_memory(self) -> bool:
        return self.node.install is not None and self.node.install.diskless

    def _pause(self) -> None:
        if self.stop.wait(self.tempo.poll):
            raise Interrupted(f"{self.node.name} was left in the state {self.journal.record.state}.")

    def _fail(self, reason: str, *, only: State | None = None) -> State:
        """Record a failure; `only`: unless the agent has progressed in the meantime."""
        if self.journal.fail(reason, only):
            self.notice(State.FAILED, reason)
        return State.FAILED

    def _move(self, state: State, reason: str = "", **data: object) -> None:
        self.journal.move(state, reason, **data)
        self.notice(state, reason)
