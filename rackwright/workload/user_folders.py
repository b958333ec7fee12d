"""Folders of each user in places owned by root: root makes them before a job or a login, users never do.

In a folder that all may write, a name that follows from the uid can be taken by another user first, who then owns
what the user's program trusts: images, caches, sockets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.model.cluster import Node
from rackwright.render import render
from rackwright.workload.lookup import declared_on, runs_jobs

_FOLDER = "/usr/libexec/rackwright"
_SESSIONS = "/etc/systemd/system/user-runtime-dir@.service.d"
"""systemd starts this unit as root before a user's first session (user@.service(5), read 2026-11-23)."""


@dataclass(frozen=True)
class UserFolders:
    """One folder per user in each of `parents`, which belong to root."""

    role: str
    parents: tuple[str, ...]
    prefix: str = ""
    """Before the uid in the name of a user's folder."""

    @property
    def program(self) -> str:
        """Makes the folders of one user."""
        return f"{_FOLDER}/user-folders-{self.role}"

    def files(self, node: Node) -> Mapping[str, tuple[str, str] | None]:
        """(content, mode) by path; None for what a node without jobs does not have."""
        return {
            self.program: (
                render(
                    "user_folders/make.sh.j2",
                    role=self.role,
                    parents=self.parents,
                    name=f'{self.prefix}"$uid"',
                ),
                "755",
            ),
            self._session: (
                render("user_folders/session.conf.j2", role=self.role, program=self.program),
                "644",
            ),
            **self._prolog(node),
        }

    def paths(self, node: Node) -> tuple[str, ...]:
        """Files to remove if the role has no user folders."""
        return (self.program, self._session, *self._prolog(node))

    @property
    def _session(self) -> str:
        return f"{_SESSIONS}/50-rackwright-{self.role}.conf"

    def _prolog(self, node: Node) -> dict[str, tuple[str, str] | None]:
        manager = declared_on(node)
        folder = manager.hooks.get("prolog") if manager is not None else None
        if folder is None:
            return {}
        path = f"{folder}/10-rackwright-{self.role}"
        text = render("user_folders/prolog.sh.j2", program=self.program)
        return {path: (text, "755") if runs_jobs(node) else None}
