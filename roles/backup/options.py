"""Options of the backup role."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import ClassVar

from pydantic import Field, field_validator

from rackwright.backup import places
from rackwright.errors import SecretsError
from rackwright.model.backups import BacksUp, BackupPart
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem, FilesystemPurpose
from rackwright.model.strings import NodePath
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.secrets.store_file import public_key

_CALENDAR = re.compile(r"[A-Za-z0-9*:,./~ -]{1,120}")
_NAMED = (
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "semiannually",
    "yearly",
    "annually",
)
_TOO_RARE = ("monthly", "quarterly", "semiannually", "yearly", "annually")
_SYSTEM = ("/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var/tmp", "/usr", "/boot", places.STATE)


class BackupOptions(BacksUp, RoleOptions):
    """Backups of heads: where to, how often, and how many are kept."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})

    place: NodePath = Field(
        description="Folder on the head, e.g. below the path of a declared filesystem, which has to be mounted. Backups "
        "go into a subfolder with the cluster's name, which only root can access."
    )
    every: str = Field(
        default="*-*-* 02:30:00",
        description="When a backup is made, in systemd's OnCalendar format (systemd.time(7)), e.g. `hourly`.",
    )
    keep: int = Field(default=14, ge=2, le=10_000, description="Number of newest backups to keep.")
    keep_weekly: int = Field(
        default=8, ge=0, le=1000, description="Number of further weeks of which the newest backup is kept."
    )
    recipients: tuple[str, ...] = Field(
        default=(),
        description="age public keys that can decrypt backups, besides the recipients of the secrets store, e.g. of a "
        "key that is kept offline.",
    )
    max_age_hours: float = Field(
        default=30, gt=0, le=10_000, description="Age at which `verify` fails the newest backup."
    )
    textfile_dir: NodePath = Field(
        default=places.TEXTFILES,
        description="node_exporter's textfile folder (Debian's own), where there is one. It gets a link to "
        f"{places.METRICS}.",
    )
    time_limit_minutes: int = Field(default=240, ge=1, le=10_000, description="How long one backup may take.")

    @field_validator("every")
    @classmethod
    def _is_a_calendar(cls, every: str) -> str:
        named = every.strip().lower() in _NAMED
        if not named and (not _CALENDAR.fullmatch(every) or not re.search(r"[0-9*]", every)):
            raise mistake(
                "Not a valid time of systemd's OnCalendar.",
                "e.g. `hourly`, or `*-*-* 02:30:00` for every night",
            )
        return every.strip()

    @field_validator("recipients")
    @classmethod
    def _are_public_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for number, key in enumerate(keys, 1):
            try:
                public_key(
                    key, f"Recipient {number}"
                )  # its message repeats no key, which may be a secret one
            except SecretsError as error:
                raise mistake(error.message, error.hint) from None
        return keys

    @field_validator("place")
    @classmethod
    def _keeps_files(cls, place: str) -> str:
        if any(is_below(place, folder) for folder in _SYSTEM):
            raise mistake(
                f"{place} is not usable for backups: it belongs to the system or is emptied at boot.",
                "e.g. `/srv/backup`",
            )
        return place

    def folder(self, cluster: Cluster) -> str:
        """Where the backups of the cluster's heads are."""
        return f"{self.place}/{cluster.name}"

    def filesystem(self, node: Node) -> Filesystem | None:
        """The declared filesystem of the node that the place is on."""
        return filesystem_of(node, self.place)

    def backup_parts(self, cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
        """The cluster file and the secrets store, in case the control node is lost."""
        return (
            BackupPart(
                name="site", about="cluster file and secrets store", folder=places.SITE, restorable=False
            ),
        )

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A place that holds no backups, and times that contradict each other."""
        for node in _nodes(cluster, self):
            found = self.filesystem(node)
            if found is not None and found.read_only:
                yield "place", f"{self.place} is on {found.name}, which {node.name} mounts read-only.", None
            if found is not None and found.purpose is FilesystemPurpose.SCRATCH:
                yield (
                    "place",
                    f"{self.place} is on {found.name}, a scratch filesystem.",
                    "use a filesystem whose files are kept",
                )
        if self.every.lower() in _TOO_RARE and self.max_age_hours < 24 * 28:
            yield (
                "max_age_hours",
                f"`every` is {self.every}, so the newest backup is older than {self.max_age_hours:g} hours most of the time.",
                "e.g. `every: daily`",
            )

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Backups that would be lost together with the head."""
        own = [node.name for node in _nodes(cluster, self) if _is_own(node, self.filesystem(node))]
        if own:
            yield (
                "place",
                f"{self.place} of {', '.join(own)} is not on a filesystem of another server: backups are lost with the head.",
                "use a path below a filesystem of `storage:`, or copy them: rackwright restore FILE --fetch FOLDER",
            )


def is_below(path: str, folder: str) -> bool:
    """Whether the path is the folder or in it."""
    return PurePosixPath(path).is_relative_to(folder)


def filesystem_of(node: Node, path: str) -> Filesystem | None:
    """The innermost declared filesystem of a node that a path is on."""
    found = [one for one in node.filesystems if is_below(path, one.path)]
    return max(found, key=lambda one: len(one.path), default=None)


def _nodes(cluster: Cluster, options: BackupOptions) -> list[Node]:
    return [node for node in cluster.nodes if options in node.options.values()]


def _is_own(node: Node, filesystem: Filesystem | None) -> bool:
    return filesystem is None or not filesystem.kind.shared or node.name in filesystem.server_nodes
