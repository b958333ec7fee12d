"""The site the access tests are about, with keys made for them (their private halves are gone)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rackwright.model.cluster import Cluster
from rackwright.model.settings import Ssh
from rackwright.roles.access.options import AccessOptions, AdminGroup, AdminUser
from tests.unit.roles.sites import site

RECORDED = Path(__file__).parent / "recorded" / "access" / "known_hosts"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICmQwQwZDl6B6Gut4RfJJrqeFMorFYGNTbwbx9KCI6Au ada@example"

OPTIONS = AccessOptions(
    users=(
        AdminUser(name="ada", uid=3000, groups=("hpc", "adm"), authorized_keys=(KEY,), sudo=True),
        AdminUser(name="bob", uid=3001),
    ),
    groups=(AdminGroup(name="hpc", gid=4000),),
    removed_users=("eve",),
)


def access_site(options: AccessOptions = OPTIONS, **changes: Any) -> Cluster:
    """head1, gpu1 and gpu2; rackwright logs in as "admin", and all host keys are known."""
    return site({"access": options}, **{"ssh": Ssh(user="admin", known_hosts=RECORDED), **changes})
