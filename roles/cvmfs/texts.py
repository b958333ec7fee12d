"""Files of the cvmfs role: shared by the deploy and its checks."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.model.mount_names import unit_name
from rackwright.render import render
from rackwright.roles.cvmfs.options import UNITS, CvmfsOptions

LOCAL = "/etc/cvmfs/default.local"


def path(name: str) -> str:
    """Where a repository is mounted."""
    return f"/cvmfs/{name}"


def mount(name: str) -> str:
    """The mount unit of a repository."""
    return unit_name(path(name))


def automount(name: str) -> str:
    """The automount unit of a repository."""
    return f"{mount(name).removesuffix('.mount')}.automount"


def own_settings(name: str) -> str:
    """Settings of one repository."""
    return f"/etc/cvmfs/config.d/{name}.local"


def read_by(name: str, options: CvmfsOptions) -> tuple[str, ...]:
    """What a repository reads when it is mounted."""
    own = (own_settings(name),) if options.mounted[name].servers else ()
    return (LOCAL, *own, f"{UNITS}/{mount(name)}")


def proxy(cluster: Cluster, node: Node, options: CvmfsOptions) -> str:
    """CVMFS_HTTP_PROXY: `|` between proxies that share the load, `;` before the next group."""
    groups = ["|".join(options.proxies_of(cluster, node)), "DIRECT" if options.direct else ""]
    return ";".join(filter(None, groups))


def default_local(cluster: Cluster, node: Node, options: CvmfsOptions) -> str:
    """LOCAL."""
    return render("cvmfs/default.local.j2", options=options, proxy=proxy(cluster, node, options))


def files(cluster: Cluster, node: Node, options: CvmfsOptions) -> dict[str, str]:
    """Each file by path."""
    found = {LOCAL: default_local(cluster, node, options)}
    for name, repository in options.mounted.items():
        if repository.servers:
            found[own_settings(name)] = render("cvmfs/repository.local.j2", repository=repository)
        found[f"{UNITS}/{mount(name)}"] = render(
            "cvmfs/mount.j2", name=name, path=path(name), cache=options.cache
        )
        found[f"{UNITS}/{automount(name)}"] = render("cvmfs/automount.j2", name=name, path=path(name))
    return found
