"""The distribution's installer on one machine: its medium, its answers, and the file that is served only once.

What is served follows from the node's record alone, so that a later process serves the same. The session is random and
in memory until the installer downloads it; the journal gets its SHA-256 in the line that lets the installer write.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any, Protocol

from rackwright.errors import InstallError
from rackwright.install import steady
from rackwright.install.handover.files import InstallerFiles
from rackwright.install.handover.media import make_iso
from rackwright.install.handover.requests import Site, made, still_declared, valid
from rackwright.install.installers.request import ONCE, Answers
from rackwright.install.medium import VirtualMedia
from rackwright.install.record import Journal, Record
from rackwright.install.states import State
from rackwright.install.tokens import digest, new_token
from rackwright.model.cluster import Node

_SERVED = (State.INSTALLER, State.INSTALLING)


class Place(Protocol):
    """Folder with the files that a machine boots its installer from; its medium removes them."""

    def put(self, files: InstallerFiles, arguments: str, record: Record) -> str:
        """Have the machine's next boot find them; what they are called on our server."""

    def put_again(self, files: InstallerFiles, arguments: str, record: Record) -> None:
        """As above, if an earlier process has prepared them and the machine may be reading them."""


@dataclass
class VirtualCd:
    """The virtual CD from which the machine booted the agent."""

    medium: VirtualMedia

    def put(self, files: InstallerFiles, arguments: str, record: Record) -> str:
        media = f"/media/{secrets.token_urlsafe(24)}.iso"
        make_iso(files, arguments, self.medium.file)
        self.medium.resume(media)
        return media

    def put_again(self, files: InstallerFiles, arguments: str, record: Record) -> None:
        self.medium.resume(record.media)


@dataclass
class Handover:
    """The second boot of one node, and what is served for it."""

    site: Site
    node: Node
    journal: Journal
    files: InstallerFiles
    place: Place
    resumed: Callable[[], object] = lambda: None
    """Called once the files of an earlier process are served again."""
    _session: str = field(default="", repr=False)
    _served: Answers | None = field(default=None, repr=False)
    _folder: str = ""
    _fetched: set[str] = field(default_factory=set)

    def make(self, record: Record) -> dict[str, Any]:
        """Create medium and answers, and serve them; returns what the journal keeps of them."""
        folder = secrets.token_urlsafe(24)
        answers = self._answers(record, folder)
        media = self.place.put(self.files, self._arguments(answers), record)
        return {"media": media, "answers": folder, "image": _digest(answers)}

    def resume(self, record: Record) -> None:
        """Serve what an earlier process created; InstallError if the declaration has changed since."""
        answers = self._answers(record, record.answers)
        if _digest(answers) != record.image:
            raise InstallError(
                f"The declaration of {self.node.name} has changed since its installer was booted.",
                hint=f"run rackwright bmc power FILE off --limit {self.node.name}, then repeat the command",
            )
        self.place.put_again(self.files, self._arguments(answers), record)
        self.resumed()

    def close(self) -> None:
        """Stop serving it."""
        self._served, self._session, self._folder = None, "", ""

    def file(self, folder: str, name: str, address: str) -> bytes | None:
        """A file for the machine at this address; None if it has none. `once` is served only one time.

        OSError if the journal cannot be written: then nothing was served.
        """
        with self.journal.changing() as record:
            answers = self._served
            if answers is None or not self._folder or not compare_digest(folder, self._folder):
                return None
            if address != str(self.site.cluster.management_address(self.node)):
                return None
            if record.state not in _SERVED or record.answers != folder or name not in answers.files:
                return None
            if name != ONCE:
                self._note(name)
            elif not self._give_session(record):
                return None
            return answers.files[name].encode()

    def _give_session(self, record: Record) -> bool:
        """Whether the session may be served; if so, it is recorded and never served again."""
        if record.state is not State.INSTALLER or record.token_until <= steady.now():
            return False
        disks = ", ".join(str(one["serial"]) for one in record.disks)
        self.journal.move(
            State.INSTALLING,
            f"the installer has its session, for disks {disks}",
            session=digest(self._session),
            phase="check",
            percent=0,
        )
        return True

    def _note(self, name: str) -> None:
        if name not in self._fetched and self.journal.record.state is State.INSTALLER:
            self.journal.note(phase=f"fetched {name}")
        self._fetched.add(name)

    def _arguments(self, answers: Answers) -> str:
        """Kernel arguments of the installer, including those that the node's kernel is declared to need."""
        further = () if self.node.install is None else self.node.install.kernel_arguments
        return " ".join((answers.kernel_arguments, *further))

    def _answers(self, record: Record, folder: str) -> Answers:
        still_declared(self.node, record.disks)
        self._session, self._folder = new_token(), folder
        request, answers = made(self.site, self.node, record.run, record.disks, folder, self._session)
        valid(request, answers)
        self._served = answers
        return answers


def declared(handover: Handover | None, node: Node) -> Handover:
    """The handover of a node that waits for one."""
    if handover is None:
        raise InstallError(f"{node.name} waits for an installer, but no longer declares one.")
    return handover


def _digest(answers: Answers) -> str:
    """Digest of all non-secret inputs."""
    found = hashlib.sha256(answers.kernel_arguments.encode())
    for name in sorted(answers.files):
        if name != ONCE:
            found.update(f"\0{name}\0{answers.files[name]}".encode())
    return found.hexdigest()
