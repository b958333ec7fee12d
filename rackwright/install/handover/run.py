"""Nodes of a run that declare their distribution's installer: what cannot work, and what they are served."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from rackwright.errors import InstallError, RackwrightError
from rackwright.install.desk import Case
from rackwright.install.handover import files, media
from rackwright.install.handover.netboot import NetbootFolder
from rackwright.install.handover.node import Handover, Place, VirtualCd
from rackwright.install.handover.requests import SAMPLE, Site, approved, made, sample, valid
from rackwright.install.handover.server import AnswerServer
from rackwright.install.installers.refusals import refusals
from rackwright.install.medium import Medium, VirtualMedia
from rackwright.install.netboot import NetbootMedium
from rackwright.install.record import Journal, read
from rackwright.install.settings import answers_listener
from rackwright.install.states import State
from rackwright.install.verdict import Verdict
from rackwright.model.cluster import Node

_RESUME_SECONDS, _POLL_SECONDS = 30.0, 0.05


class Handovers:
    """All handovers of a run."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open: dict[str, Handover] = {}
        self._pending: dict[str, str] = {}
        """Node to the folder of an installer that an earlier process booted, until its answers are served again."""

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Every reason, of every node that declares an installer, why its installation cannot work."""
        concerned = [node for node in nodes if declares_installer(node)]
        wrong = [message for node in concerned for message in self._of_node(node)]
        if concerned:
            try:
                media.require_programs()
            except RackwrightError as error:
                wrong.append(error.message)
        return list(dict.fromkeys(wrong))

    def _of_node(self, node: Node) -> Iterator[str]:
        refused = [f"{message.rstrip('.')} ({hint})" for message, hint in refusals(self._site.cluster, node)]
        yield from refused
        try:
            files.find(node)
        except InstallError as error:
            yield _text(error)
        if refused:
            return
        try:
            valid(*sample(self._site, node))
        except RackwrightError as error:
            yield _text(error)

    @contextmanager
    def serving(self, nodes: Sequence[Node], ca: bytes) -> Iterator[None]:
        """Serve answers while the block runs, if a node declares an installer."""
        if not any(map(declares_installer, nodes)):
            yield
            return
        self._site = replace(self._site, ca=ca.decode())
        records = [read(self._site.cluster.name, node.name) for node in nodes if declares_installer(node)]
        self._pending = {one.node: one.answers for one in records if one.state is State.INSTALLER}
        server = AnswerServer(answers_listener(self._site.cluster), self.file)
        try:
            yield
        finally:
            server.close()

    def file(self, folder: str, name: str, address: str) -> bytes | None:
        """A file of the node whose random folder it is."""
        deadline = time.monotonic() + _RESUME_SECONDS
        while folder in list(self._pending.values()) and time.monotonic() < deadline:
            time.sleep(
                _POLL_SECONDS
            )  # the installer's only request may come before this process has looked at its machine
        found = (one.file(folder, name, address) for one in list(self._open.values()))
        return next((content for content in found if content is not None), None)

    def of(self, case: Case, medium: Medium) -> Handover | None:
        """The handover of one node; None if it declares no installer."""
        if not declares_installer(case.node):
            return None
        found, ready = files.find(case.node), partial(self._pending.pop, case.node.name, None)
        opened = Handover(self._site, case.node, case.journal, found, _place(medium), ready)
        self._open[case.node.name] = opened
        return opened

    def close(self, node: Node) -> None:
        """Stop serving a node."""
        self._pending.pop(node.name, None)
        if (opened := self._open.pop(node.name, None)) is not None:
            opened.close()

    def approve(self, node: Node, journal: Journal, verdict: Verdict) -> list[dict[str, Any]]:
        """The approved disks for the journal; InstallError if no answers can be generated for them."""
        disks = approved(node, verdict)
        valid(*made(self._site, node, journal.record.run, disks, SAMPLE, SAMPLE))
        return disks


def declares_installer(node: Node) -> bool:
    """Whether the node is installed by its distribution's installer."""
    return node.install is not None and node.install.installer is not None


def _place(medium: Medium) -> Place:
    if isinstance(medium, VirtualMedia):
        return VirtualCd(medium)
    if isinstance(medium, NetbootMedium):
        return NetbootFolder(medium)
    raise InstallError("An installer boots from virtual-media or pxe only.")


def _text(error: RackwrightError) -> str:
    return error.message.rstrip(".") + (f" ({error.hint})" if error.hint is not None else "")
