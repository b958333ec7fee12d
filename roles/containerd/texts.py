"""containerd's files."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability, has
from rackwright.model.proxy import proxy_variables
from rackwright.osfamily.names import Names
from rackwright.render import render
from rackwright.roles.containerd.options import ContainerdOptions

CONF = "/etc/containerd/config.toml"
REGISTRIES = "/etc/containerd/certs.d"
DROP_IN = "/etc/systemd/system/containerd.service.d/rackwright.conf"
CRICTL = "/etc/crictl.yaml"
UNIT = "containerd.service"


def names(node: Node, options: ContainerdOptions) -> Names:
    """Package and unit."""
    packages = ("containerd.io",) if options.source == "docker" else node.os.container_daemons["containerd"]
    return Names(packages, UNIT)


def config_toml(node: Node, options: ContainerdOptions) -> str:
    """/etc/containerd/config.toml, in the version that the release reads without translating it."""
    return render(
        f"containerd/config-{'v3' if options.effective_release == '2' else 'v2'}.toml.j2",
        options=options,
        cdi=has_cdi(node, options),
        no_own_limits=not has(node.platform, Capability.KERNEL),
        registries=REGISTRIES,
        # Debian puts the plugins there; upstream and Docker's packages keep to /opt/cni/bin
        cni="/usr/lib/cni" if options.source == "distribution" else "/opt/cni/bin",
    )


def has_cdi(node: Node, options: ContainerdOptions) -> bool:
    """Whether devices are given to containers by CDI."""
    return options.cdi if options.cdi is not None else node.sku.gpus is not None


def hosts(
    cluster: Cluster, node: Node, options: ContainerdOptions, secret: Callable[[str], str]
) -> dict[str, str]:
    """hosts.toml of docker.io, of each declared registry and of the cluster's own, by path; those of `with_logins` hold passwords.

    A registry that takes tokens answers a password in the header with a challenge, which nothing here answers.
    containerd's docs/hosts.md, "header fields", read 2026-11-23.
    """
    found = {}
    mirror = cluster.mirrors.containers
    if mirror is not None:
        found[hosts_path("docker.io")] = _hosts_toml(
            options,
            mirror,
            secret,
            ca=options.trusted_by(cluster, node, mirror),
            server="https://registry-1.docker.io",
            push=False,
        )
    trusted = (path.split("/")[-2] for path in options.trust_links(cluster, node))
    for name in dict.fromkeys((*options.registries, *trusted)):
        if name != "docker.io":
            ca = options.trusted_by(cluster, node, name)
            server = options.url(name)
            found[hosts_path(name)] = _hosts_toml(options, name, secret, ca=ca, server=server, push=True)
    return found


def hosts_path(name: str) -> str:
    """hosts.toml of a registry."""
    return f"{REGISTRIES}/{name}/hosts.toml"


def _hosts_toml(
    options: ContainerdOptions,
    name: str,
    secret: Callable[[str], str],
    *,
    ca: str | None,
    server: str,
    push: bool,
) -> str:
    auth = options.basic_auth(name, secret)
    return render(
        "containerd/hosts.toml.j2",
        server=server,
        url=options.url(name),
        push=push,
        ca=ca,
        authorization=None if auth is None else f"Basic {auth}",
    )


def with_logins(cluster: Cluster, options: ContainerdOptions) -> frozenset[str]:
    """The files of `hosts` that hold passwords."""
    names = {name for name, access in options.registries.items() if access.auth is not None}
    paths = {hosts_path(name) for name in names}
    return frozenset(paths | ({hosts_path("docker.io")} if cluster.mirrors.containers in names else set()))


def unit_conf(options: ContainerdOptions, proxy: tuple[str, ...] = ()) -> str:
    """Limits of the daemon, which CRI containers inherit, and the site's proxy."""
    return render("containerd/unit.conf.j2", options=options, proxy=proxy)


def declared(
    cluster: Cluster, node: Node, options: ContainerdOptions, secret: Callable[[str], str]
) -> dict[str, str]:
    """Every file of the role but certificates."""
    return {
        CONF: config_toml(node, options),
        DROP_IN: unit_conf(options, proxy_variables(cluster, node)),
        CRICTL: render("containerd/crictl.yaml.j2"),
        **hosts(cluster, node, options, secret),
    }
