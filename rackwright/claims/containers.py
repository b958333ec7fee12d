"""Claims of all roles that run containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text, links_to
from rackwright.containers import PullingOptions, trust_file
from rackwright.model.cluster import Node
from rackwright.model.options import RoleOptions
from rackwright.secrets.store import store_of

PullingT = TypeVar("PullingT", bound=PullingOptions)


def same(found: Any, wanted: Any, what: str) -> None:  # noqa: ANN401
    """A setting that a daemon reports is the declared one."""
    if found != wanted:
        fail(f"{what} is {found!r}, not {wanted!r}")


def has_registry_files(node: Node, options: PullingOptions) -> bool:
    """Whether registries may need a certificate or a login."""
    return trust_file(node) is not None or any(
        access.ca is not None or access.auth is not None for access in options.registries.values()
    )


def registries_hold(
    context: CheckContext[PullingT], logins: str, content: Callable[[Callable[[str], str]], str | None]
) -> str:
    """Registry certificates and root's logins are as declared, and only root can read the logins."""
    certificates = context.options.ca_files(context.cluster)
    as_rendered(context, certificates)
    links = trusts_site_registries(context)
    wanted = content(lambda name: store_of(context.cluster).get(name).reveal())
    if wanted is not None:
        holds_secret_text(context, logins, wanted)
        has_access(context, logins, "600", "root", "root")
    return f"{len(certificates) + links} certificates, {'logins' if wanted is not None else 'no logins'}"


def trusts_site_registries(context: CheckContext[PullingT]) -> int:
    """The runtime finds the site's CA for each registry of the cluster with a certificate from it; returns their number."""
    links = context.options.trust_links(context.cluster, context.node)
    for path, target in links.items():
        links_to(context, path, target)
    return len(links)


def user_namespaces(context: CheckContext[RoleOptions], profile: str) -> str:
    """Users may create user namespaces; on Ubuntu from 23.10 on, at least the program of an AppArmor profile may."""
    most = context.output("cat /proc/sys/user/max_user_namespaces").strip()
    if not most.isdigit():
        raise Undetermined(f"user.max_user_namespaces is unreadable: {most!r}")
    if most == "0":
        fail("user.max_user_namespaces is 0: no user may create a user namespace")
    switches = (
        "/proc/sys/kernel/unprivileged_userns_clone /proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    )
    result = context.host.run("sh -c %s", f"for f in {switches}; do [ -e $f ] && cat $f || echo none; done")
    values = str(result.stdout).split()
    if result.rc != 0 or len(values) != 2:
        raise Undetermined("the kernel's user namespace settings cannot be read")
    if values[0] == "0":
        fail("kernel.unprivileged_userns_clone is 0: no user may create a user namespace")
    if values[1] == "1" and context.host.run("test -e %s", f"/etc/apparmor.d/{profile}").rc != 0:
        fail(f"AppArmor restricts user namespaces, and the profile {profile} that allows them is missing")
    return f"user.max_user_namespaces is {most}"
