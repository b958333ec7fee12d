"""Options of the home role."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import MakesHomes, WritesUnitFiles
from rackwright.model.options import RoleOptions
from rackwright.model.storage import FilesystemPurpose
from rackwright.model.strings import GroupName, NodePath
from rackwright.roles.home.paths import SERVICE_PATH, TIMER_PATH


class HomeOptions(RoleOptions, MakesHomes, WritesUnitFiles):
    """Homes `PATH/USER` of declared users, and their quotas, on filesystems of purpose `home`."""

    skeleton: NodePath | None = Field(
        default="/etc/skel",
        description="Folder on the node that makes the homes, copied into each new one; it never overwrites "
        "files. None: homes start empty.",
    )
    mode: str = Field(
        default="700",
        pattern=r"^[0-7]{3}$",
        description="Mode of each home, octal; reset where it differs. 700: other users see nothing.",
    )
    groups: tuple[GroupName, ...] = Field(
        default=(),
        description="Groups of a directory whose members also get homes: the node that creates homes looks every "
        "`every_minutes`, and has to know these users (role `accounts`). Homes of members who leave stay.",
    )
    every_minutes: int = Field(default=5, ge=1, le=1440, description="How often it looks for new members.")
    made_on: str | None = Field(
        default=None,
        description="Node that creates homes on a filesystem whose server is outside the cluster, or that has no single one "
        "(lustre, beegfs, ...), through its mount: the server must not squash its root (no_root_squash). None: the "
        "site creates them.",
    )

    def runs_on(self, node: Node) -> bool:
        """Where homes are, and where they are served from."""
        return any(one.purpose is FilesystemPurpose.HOME for one in (*node.filesystems, *node.served))

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """What looks for new members of groups."""
        return (SERVICE_PATH, TIMER_PATH)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Modes that lock users out, nodes that cannot make homes, quotas without a filesystem that can have them."""
        from rackwright.roles.home.problems import problems_of

        return problems_of(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A login of rackwright's own that waits for a server."""
        from rackwright.roles.home.problems import warnings_of

        return warnings_of(self, cluster)
