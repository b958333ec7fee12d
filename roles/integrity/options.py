"""Options of the integrity role: what a site allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from rackwright.model.authorized_keys import parse_key, refuse_private_key
from rackwright.model.interfaces import KeepsUnitFiles
from rackwright.model.options import RoleOptions
from rackwright.model.strings import GroupName, PackageName, UserName

if TYPE_CHECKING:  # the model imports rackwright.model.options, so a run-time import would be a circle
    from rackwright.model.cluster import Cluster

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


class IntegrityOptions(RoleOptions, KeepsUnitFiles):
    """What a node may have besides what roles declare; anything else is reported, and removed by apply."""

    allowed_authorized_keys: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Keys by user, of root, system accounts, `ssh.user` and users that may use sudo: a line of "
        "authorized_keys, or a fingerprint as `ssh-keygen -l` prints it. A line with options (`command=`, `from=`) "
        "allows the key with just these. The key that rackwright logs in with and those of the role access need "
        "not be named. Keys of other users are not compared.",
    )
    allowed_uid0: tuple[UserName, ...] = Field(
        default=(), description="Accounts besides root that have uid 0, e.g. `toor`."
    )
    allowed_system_logins: tuple[UserName, ...] = Field(
        default=(),
        description="Accounts with a uid below 1000 that have a password, e.g. `root` for the console.",
    )
    allowed_group_members: dict[GroupName, tuple[UserName, ...]] = Field(
        default={},
        description="Members by group, of `access.privileged_groups` (sudo, wheel, admin, docker, lxd and disk), besides "
        "those that roles declare and `ssh.user`, e.g. `docker: [builder]`.",
    )
    allowed_sudoers: tuple[str, ...] = Field(
        default=(), description="Names of files in /etc/sudoers.d, e.g. `50-backup`."
    )
    allowed_sshd_includes: tuple[str, ...] = Field(
        default=(), description="Names of files in /etc/ssh/sshd_config.d, e.g. `50-site.conf`."
    )
    allowed_sshd_settings: dict[str, str] = Field(
        default={},
        description="Effective settings of sshd in lower case with the value that `sshd -T` prints, where the site "
        "has another one than sshd's own or the role access, e.g. `trustedusercakeys: /etc/ssh/user_ca.pub`.",
    )
    allowed_sshd_match: tuple[str, ...] = Field(
        default=(),
        description="Match lines of /etc/ssh/sshd_config, e.g. `Match Group sftponly`; what follows in the block is "
        "allowed with them.",
    )
    allowed_drop_ins: tuple[str, ...] = Field(
        default=(),
        description="Paths of drop-ins and unit files for units that roles manage, e.g. "
        "`/etc/systemd/system/slurmd.service.d/site.conf`.",
    )
    allowed_setuid: tuple[str, ...] = Field(
        default=(),
        description="Paths of setuid and setgid files, and of what everyone may write, below `setuid_paths`.",
    )
    allowed_holds: tuple[PackageName, ...] = Field(
        default=(), description="Packages on hold that the lock does not name."
    )
    setuid_paths: tuple[str, ...] = Field(
        default=("/etc", "/opt", "/usr/local", "/var/lib/rackwright"),
        description="Folders in which no file may be setuid or setgid and nothing may be writable by everyone; "
        "other file systems below them are left out. Each file below costs each check about 2 microseconds.",
    )

    @field_validator("allowed_authorized_keys")
    @classmethod
    def _are_keys(cls, keys: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for user, lines in keys.items():
            for line in lines:
                refuse_private_key(line)
                if not _FINGERPRINT.fullmatch(line) and parse_key(line) is None:
                    raise ValueError(
                        f"{line[:60]!r} of {user} is neither a line of authorized_keys nor a fingerprint such as "
                        "`SHA256:` and 43 characters."
                    )
        return keys

    @field_validator("allowed_sudoers", "allowed_sshd_includes")
    @classmethod
    def _are_file_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if "/" in name or name in ("", ".", ".."):
                raise ValueError(f"{name!r} is not a file name; write it without its folder, e.g. `50-site`.")
        return names

    @field_validator("allowed_drop_ins", "allowed_setuid", "setuid_paths")
    @classmethod
    def _are_paths(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        for path in paths:
            if not path.startswith("/") or path == "/" or ".." in path.split("/"):
                raise ValueError(
                    f"{path!r} is not an absolute path below /, e.g. `/usr/local/bin/site-tool`."
                )
        return paths

    @field_validator("allowed_sshd_settings")
    @classmethod
    def _are_settings(cls, settings: dict[str, str]) -> dict[str, str]:
        return {key.lower(): value for key, value in settings.items()}

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Where the keys of the login user cannot be judged."""
        user = cluster.ssh.user
        if cluster.ssh.key is None and not self.allowed_authorized_keys.get(user):
            sentence = (
                f"No key of {user} is declared, and rackwright logs in as {user} with a key of the ssh agent: "
                f"the keys of {user} are not judged."
            )
            yield (
                "allowed_authorized_keys",
                sentence,
                f"name its key under `allowed_authorized_keys: {{{user}: [...]}}`",
            )
