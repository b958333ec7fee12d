"""The pyinfra facts of Slurm's accounting records and reservations."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question
from rackwright.workload.slurm import reservations
from rackwright.workload.slurm.records import Records, Unread, parse, read_command


class AccountingRecords(FactBase[Records | Unread | None]):
    """slurmdbd's entities; None before it is installed."""

    def command(self, cluster: str, patience: int = 5, local: bool = True, inside: str = "") -> Question:
        """See read_command; `inside`: what runs a program where sacctmgr is, which may not be there."""
        asked = read_command(cluster, patience, local=local)
        return Question(f"{inside} sh -c {quote(asked)} 2>/dev/null || :" if inside else asked, "shell")

    def process(self, output: Iterable[str]) -> Records | Unread | None:
        """See parse; what begins and does not end is silence too."""
        lines = list(output)
        if "# stopped" in lines:
            return Unread.STOPPED
        return parse(lines) or (Unread.SILENT if lines else None)

    @staticmethod
    def default() -> Records | Unread | None:
        """Nothing is known."""
        return None


class ReservationsFound(FactBase[reservations.Found | Unread | None]):
    """slurmctld's reservations; None before Slurm is installed."""

    def command(self, patience: int = 5) -> Question:
        """See reservations.read_command."""
        return Question(reservations.read_command(patience), "shell")

    def process(self, output: Iterable[str]) -> reservations.Found | Unread | None:
        """See reservations.parse; what begins and does not end is silence too."""
        lines = list(output)
        if "# stopped" in lines:
            return Unread.STOPPED
        return reservations.parse(lines) or (Unread.SILENT if lines else None)

    @staticmethod
    def default() -> reservations.Found | Unread | None:
        """Nothing is known."""
        return None
