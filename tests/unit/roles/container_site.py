"""Sites of the tests of the container runtime roles, and what all these tests ask alike."""

from __future__ import annotations

from rackwright.claims.check import Check
from rackwright.containers import RegistryAccess
from rackwright.facts.files import AtPath
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Mirrors
from rackwright.osfamily.known import OsRelease
from rackwright.plan.node_plan import NodePlan
from rackwright.roles.access.options import AccessOptions, AdminUser
from rackwright.workload.user_folders import UserFolders
from tests.factories import DEBIAN_13
from tests.unit.roles.fake_facts import asked, file
from tests.unit.roles.fake_host import Answer, FakeHost, claimed, judged
from tests.unit.roles.sites import site

MIRROR = "10.9.0.10:5000"
PLAIN = {MIRROR: RegistryAccess(plain_http=True)}
ADA = AdminUser(name="ada", uid=3000)


def runtimes(
    os: OsRelease = DEBIAN_13,
    mirror: str | None = MIRROR,
    files: str | None = None,
    **roles: RoleOptions,
) -> Cluster:
    """A head and two GPU workers with these roles; ada is a user of them all."""
    options = {"access": AccessOptions(users=(ADA,)), **roles}
    return site(options, os=os, mirrors=Mirrors(containers=mirror, files=files))


def sentences(cluster: Cluster, role: str, node: str = "gpu1") -> list[tuple[str, str, str | None]]:
    """The problems of a node's options of a role."""
    return list(cluster.by_name[node].options[role].problems(cluster))


def never_passes(role: str, checks: tuple[Check, ...], cluster: Cluster, node: Node) -> None:
    """With no tool at all, and with silent tools, no check passes; without tools all are UNKNOWN."""
    names = claimed(role, checks, node)
    assert names
    for name in names:
        without = judged(role, checks, name, cluster, node, FakeHost({}))
        assert without.status == "UNKNOWN", without
        silent = judged(role, checks, name, cluster, node, FakeHost({}, always=""))
        assert silent.status in ("UNKNOWN", "FAIL"), silent


def user_folder_answers(
    node: Node, folders: UserFolders, *found: str, mode: str = "755"
) -> dict[str, Answer]:
    """A node with a role's files for users' folders, and in each place of root's these (`uid mode kind name`)."""
    answers: dict[str, Answer] = {}
    for path, text in folders.files(node).items():
        answers |= file(path, text[0] if text else None, mode=text[1] if text else "644")
    for parent in folders.parents:
        answers |= {asked(AtPath().command(parent, digest_only=True)): f"directory|{mode}|root|root|4096\n"}
        answers[f"find {parent} -mindepth 1 -maxdepth 1 -printf '%U %m %y %f\\n'"] = "".join(
            f"{line}\n" for line in found
        )
    return answers


def changed(plan: NodePlan, role: str, kind: str) -> list[str]:
    """Targets of one kind that a role would change."""
    return [
        change.target
        for operation in plan.operations
        if operation.role == role
        for change in operation.changes
        if change.kind == kind
    ]
