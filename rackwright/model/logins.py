"""What a role may need of those that decide who may log in to a node; like rackwright.model.interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

PRIVILEGED_GROUPS = ("sudo", "wheel", "admin", "docker", "lxd", "disk")
"""Admin groups of Debian, Ubuntu and EL, and groups that own a container daemon's socket or the disks."""


class DeclaresLogins:
    """Options of the role that decides who may log in to a node, and how."""

    @property
    def login_keys(self) -> Mapping[str, tuple[str, ...]]:
        """Declared authorized_keys lines by user, and users that may become root without any."""
        raise NotImplementedError

    @property
    def root_groups(self) -> Mapping[str, tuple[str, ...]]:
        """Declared members of each group that grants root."""
        raise NotImplementedError

    @property
    def login_files(self) -> tuple[str, ...]:
        """Key, sudo and sshd files that it compares as a whole."""
        raise NotImplementedError

    @property
    def administrators(self) -> tuple[str, ...]:
        """Users that its sudo rules allow to become root."""
        raise NotImplementedError

    @property
    def sshd_settings(self) -> Mapping[str, str]:
        """Effective settings of sshd, in lower case as `sshd -T` prints them."""
        raise NotImplementedError


class AddsLogins:
    """Options of a role that admits users besides the declared ones, e.g. from a directory."""

    @property
    def added_login_files(self) -> tuple[str, ...]:
        """sudo and sshd files that it compares as a whole, besides those of DeclaresLogins."""
        raise NotImplementedError


class ComparesGroups:
    """Options of a role that declares all members of groups and removes others."""

    compared_groups: ClassVar[frozenset[str]]
    """Their names."""
