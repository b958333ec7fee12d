"""The boots of nodes: which one a node is in, having it reboot, and waiting for the next one over new connections."""

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
from rackwright.model.types import NodeRole
from rackwright.ssh import RootShell
from rackwright.ssh.command import run
from rackwright.ssh.connection import connect
from rackwright.ssh.side_by_side import side_by_side
from rackwright.workload.lookup import declared_on
from rackwright.workload.on_node import manager_on

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
POLL_SECONDS = 3.0
THREADS_MAX = 64
_ASK_SECONDS = 30
"""Times ssh.time_factor."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# One second later, so that this command ends first. A timer's accuracy is one minute otherwise (systemd.timer(5)).
_REBOOT = (
    "systemd-run --quiet --collect --on-active=1 --timer-property=AccuracySec=100ms "
    "--description='Reboot asked for by rackwright' systemctl reboot"
)
_UP = ("running", "degraded")
"""`degraded`: some unit failed, which is for the node's checks to judge (systemctl(1), is-system-running)."""
_STILL = ("initializing", "starting", "offline", "unknown", "")

Dial = Callable[[Cluster, Node], paramiko.SSHClient]


class NotBooted(Exception):  # noqa: N818 - carried into the outcome as its reason
    """A node that was to reboot and is not there as it should be; `gone`: it does not answer."""

    def __init__(self, text: str, *, gone: bool) -> None:
        super().__init__(text)
        self.gone = gone


@dataclass(frozen=True)
class Before:
    """A node about to be rebooted."""

    boot: str = ""
    never: str | None = None
    """Why it cannot be rebooted from here, whatever runs on it."""
    busy: bool = False
    """A job runs on it."""

    @property
    def why_not(self) -> str | None:
        """Why it may not be rebooted now; None: it may."""
        return self.never or ("a job runs on it" if self.busy else None)


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
        """`timeout_seconds`: from the order to the end of the boot, as the clock on the wall has it.

        `order`: has a node reboot in another way than by systemd; it raises NotBooted.
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
        """Each node's boot, or why it may not be rebooted: its platform, rackwright itself, or a job that runs there."""
        names = list(names)
        with side_by_side(min(THREADS_MAX, len(names))) as executor:
            return dict(zip(names, executor.map(self._before, names), strict=True))

    def reboot(self, boots: dict[str, str]) -> dict[str, NotBooted | None]:
        """Reboot these nodes (name -> the boot they are in) side by side; None: a new boot has ended well."""
        self._given_up.clear()
        try:
            with side_by_side(min(THREADS_MAX, len(boots))) as executor:
                return dict(
                    zip(boots, executor.map(self._reboot, *zip(*boots.items(), strict=True)), strict=True)
                )
        finally:
            self._given_up.set()  # Ctrl-C does not wait for nodes that boot

    def give_up(self) -> None:
        """Wait for no boot any longer, of a `reboot` in another thread."""
        self._given_up.set()

    def _before(self, name: str) -> Before:
        node = self._cluster.by_name[name]
        if (lacks := why_lacking(node.platform, Capability.KERNEL)) is not None:
            return Before(never=f"out of scope: {lacks}")
        try:
            # the boot first: a node that answers anything else is not rebooted
            said = self._shell.run(name, f"cat {BOOT_ID} && ps -eo args=", timeout=self._ask_seconds)
        except ConnectionFailed as error:
            return Before(never=error.message.rstrip("."))
        boot, _, processes = said.stdout.partition("\n")
        if said.exit_status != 0 or not _UUID.fullmatch(boot):
            return Before(never=f"it does not say which boot it is in: {last_line(said.stdout, said.stderr)}")
        if boot == self._own():
            return Before(boot, "rackwright runs on it, and would end with it; run it from another machine")
        runs_jobs = node.holds(NodeRole.WORKER) and declared_on(node) is not None
        return Before(boot, busy=runs_jobs and manager_on(name).job_among(processes.splitlines()))

    def _own(self) -> str | None:
        """The boot of the kernel under this process, in a container its host's; None where there is none to read."""
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
        """Order a node to reboot; NotBooted where it does not take the order."""
        try:
            said = self._ask(name, _REBOOT)
        except ConnectionFailed as error:  # it may have gone down already: the new boot will tell
            self._given_up.wait(self._poll)
            if self._given_up.is_set():
                raise NotBooted(error.message.rstrip("."), gone=True) from error
            return
        if said.exit_status != 0:
            text = f"it did not take the order to reboot: {last_line(said.stdout, said.stderr)}"
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
                # systemd before 240 knows no --wait there and answers at once
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
                said = state if gone else f"systemd says {state or 'nothing'}"
                raise NotBooted(
                    f"it has a new boot, which did not end within {self._timeout:g} s: {said}", gone=gone
                )

    def _is_over(self, deadline: float) -> bool:
        """Whether to wait no longer; waits a moment first."""
        self._given_up.wait(self._poll)
        return self._given_up.is_set() or time.monotonic() >= deadline

    @property
    def _ask_seconds(self) -> float:
        return float(_ASK_SECONDS * self._cluster.ssh.time_factor)

    def _ask(self, name: str, command: str) -> CommandResult:
        """Over a connection of its own: one from before a reboot hangs until TCP gives it up."""
        client = self._dial(self._cluster, self._cluster.by_name[name])
        try:
            sudo = self._cluster.ssh.become == "sudo"
            return run(client, command, sudo=sudo, stdin=None, timeout=self._ask_seconds + 10)
        finally:
            client.close()
