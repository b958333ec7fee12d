"""Reboots nodes: identifies a node's current boot, orders a reboot, and waits for the next one over new connections."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import paramiko

from rackwright.boundary import last_line, printable
from rackwright.command import CommandResult
from rackwright.engine.console import last_lines
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability, why_lacking
from rackwright.ssh import RootShell
from rackwright.ssh.command import run
from rackwright.ssh.connection import connect
from rackwright.ssh.side_by_side import side_by_side
from rackwright.workload.lookup import declared_on, runs_jobs

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
POLL_SECONDS = 3.0
THREADS_MAX = 64
_ASK_SECONDS = 30
"""Multiplied by ssh.time_factor."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Delayed by one second, so that this command ends first. Timers default to one minute accuracy (systemd.timer(5)).
_REBOOT = (
    "systemd-run --quiet --collect --on-active=1 --timer-property=AccuracySec=100ms "
    "--description='Reboot asked for by rackwright' systemctl reboot"
)
_UP = ("running", "degraded")
"""`degraded`: some unit failed, which the node's checks judge (systemctl(1), is-system-running)."""
_STILL = ("initializing", "starting", "offline", "unknown", "")

Dial = Callable[[Cluster, Node], paramiko.SSHClient]


class NotBooted(Exception):  # noqa: N818 - becomes the reason of an outcome
    """A node that did not come back as it should after its reboot; `gone`: it does not answer."""

    def __init__(self, text: str, *, gone: bool) -> None:
        super().__init__(text)
        self.gone = gone


@dataclass(frozen=True)
class Before:
    """A node about to be rebooted."""

    boot: str = ""
    never: str | None = None
    """Why it can never be rebooted from here."""
    busy: bool = False
    """Whether a job is running on it, or may be."""

    @property
    def why_not(self) -> str | None:
        """Why it must not be rebooted now; None: it may."""
        return self.never or ("a job is running on it" if self.busy else None)


class Boots:
    """Reboots of one run."""

    def __init__(
        self,
        cluster: Cluster,
        shell: RootShell,
        timeout_seconds: float,
        *,
        dial: Dial = connect,
        here: Path = BOOT_ID,
        poll_seconds: float = POLL_SECONDS,
        order: Callable[[str], None] | None = None,
    ) -> None:
        """`timeout_seconds`: from the reboot command to the end of the boot, in wall-clock time.

        `order`: reboots a node in another way than with systemd; raises NotBooted.
        """
        self._cluster = cluster
        self._shell = shell
        self._timeout = timeout_seconds
        self._dial = dial
        self._here = here
        self._poll = poll_seconds
        self._order = order or self.by_systemd
        self._given_up = threading.Event()

    def before(self, names: Iterable[str]) -> dict[str, Before]:
        """Each node's boot, or why it must not be rebooted: its platform, rackwright itself, or a running job."""
        names = list(names)
        with side_by_side(min(THREADS_MAX, len(names))) as executor:
            return dict(zip(names, executor.map(self._before, names), strict=True))

    def reboot(self, boots: dict[str, str]) -> dict[str, NotBooted | None]:
        """Reboot these nodes (name -> current boot) in parallel; None: the new boot succeeded."""
        self._given_up.clear()
        try:
            with side_by_side(min(THREADS_MAX, len(boots))) as executor:
                return dict(
                    zip(boots, executor.map(self._reboot, *zip(*boots.items(), strict=True)), strict=True)
                )
        finally:
            self._given_up.set()  # Ctrl-C does not wait for booting nodes

    def give_up(self) -> None:
        """Stop waiting for boots in a `reboot` in another thread."""
        self._given_up.set()

    def _before(self, name: str) -> Before:
        node = self._cluster.by_name[name]
        if (lacks := why_lacking(node.platform, Capability.KERNEL)) is not None:
            return Before(never=f"out of scope: {lacks}")
        try:
            # check the boot first: a node with any other answer is not rebooted
            manager = declared_on(node) if runs_jobs(node) else None
            jobs = manager.job_question(name) if manager is not None else "true"
            answer = self._shell.run(name, f"cat {BOOT_ID} && {jobs}", timeout=self._ask_seconds)
        except ConnectionFailed as error:
            return Before(never=error.message.rstrip("."))
        boot, _, shown = answer.stdout.partition("\n")
        if answer.exit_status != 0 or not _UUID.fullmatch(boot):
            return Before(never=f"it does not report its boot id: {last_line(answer.stdout, answer.stderr)}")
        if boot == self._own():
            return Before(
                boot, "rackwright is running on it and would end with it; run it from another machine"
            )
        return Before(boot, busy=manager is not None and manager.shows_job(shown))

    def _own(self) -> str | None:
        """Boot id of this process's kernel, in a container that of its host; None if unreadable."""
        try:
            return self._here.read_text().strip()
        except OSError:
            return None

    def _reboot(self, name: str, before: str) -> NotBooted | None:
        deadline = time.monotonic() + self._timeout
        try:
            self._order(name)
            self._new_boot(name, before, deadline)
            self._end_of_boot(name, deadline)
        except NotBooted as problem:
            console = last_lines(self._cluster, self._cluster.by_name[name])
            return NotBooted(f"{problem}; {console}", gone=problem.gone)
        return None

    def by_systemd(self, name: str) -> None:
        """Order a node to reboot; NotBooted if it refuses."""
        try:
            answer = self._ask(name, _REBOOT)
        except ConnectionFailed as error:  # it may already be down: the new boot will show
            self._given_up.wait(self._poll)
            if self._given_up.is_set():
                raise NotBooted(error.message.rstrip("."), gone=True) from error
            return
        if answer.exit_status != 0:
            text = f"it did not accept the reboot command: {last_line(answer.stdout, answer.stderr)}"
            raise NotBooted(text, gone=False)

    def _new_boot(self, name: str, before: str, deadline: float) -> None:
        while True:
            try:
                boot = self._ask(name, f"cat {BOOT_ID}").stdout.strip()
                if _UUID.fullmatch(boot) and boot != before:
                    return
                problem = NotBooted(
                    f"it did not reboot within {self._timeout:g} s: it still answers from the same boot",
                    gone=False,
                )
            except ConnectionFailed as error:
                text = f"it did not return within {self._timeout:g} s: {error.message.rstrip('.')}"
                problem = NotBooted(text, gone=True)
            if self._is_over(deadline):
                raise problem

    def _end_of_boot(self, name: str, deadline: float) -> None:
        state = ""
        while True:
            try:
                # systemd before 240 does not support --wait there and answers immediately
                asked = self._ask(name, f"timeout {_ASK_SECONDS} systemctl is-system-running --wait")
                state = asked.stdout.strip()
                gone = False
            except ConnectionFailed as error:
                state, gone = printable(error.message.rstrip("."), 300), True
            if not gone and state in _UP:
                return
            if not gone and state not in _STILL:
                raise NotBooted(f"its boot ended in the state {printable(state, 40)}", gone=False)
            if self._is_over(deadline):
                seen = state if gone else f"systemd reports {state or 'nothing'}"
                raise NotBooted(
                    f"it has a new boot, which did not finish within {self._timeout:g} s: {seen}", gone=gone
                )

    def _is_over(self, deadline: float) -> bool:
        """Whether to stop waiting; waits a moment first."""
        self._given_up.wait(self._poll)
        return self._given_up.is_set() or time.monotonic() >= deadline

    @property
    def _ask_seconds(self) -> float:
        return float(_ASK_SECONDS * self._cluster.ssh.time_factor)

    def _ask(self, name: str, command: str) -> CommandResult:
        """Over a new connection: one from before a reboot hangs until TCP times out."""
        client = self._dial(self._cluster, self._cluster.by_name[name])
        try:
            sudo = self._cluster.ssh.become == "sudo"
            return run(client, command, sudo=sudo, stdin=None, timeout=self._ask_seconds + 10)
        finally:
            client.close()
