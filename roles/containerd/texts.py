"""containerd's files."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
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
        registries=REGISTRIES,
        # Debian puts the plugins there; upstream and Docker's packages keep to /opt/cni/bin
        cni="/usr/lib/cni" if options.source == "distribution" else "/opt/cni/bin",
    )


def has_cdi(node: Node, options: ContainerdOptions) -> bool:
    """Whether devices are given to containers by CDI."""
    return options.cdi if options.cdi is not None else node.sku.gpus is not None


def hosts(cluster: Cluster, options: ContainerdOptions) -> dict[str, str]:
    """hosts.toml of docker.io and of each insecure registry, by path."""
    found = {}
    mirror = options.mirror(cluster)
    if mirror is not None:
        found[f"{REGISTRIES}/docker.io/hosts.toml"] = render(
            "containerd/hosts.toml.j2", server="https://registry-1.docker.io", url=mirror, push=False
        )
    for name in options.insecure_registries:
        url = f"http://{name}"
        found[f"{REGISTRIES}/{name}/hosts.toml"] = render(
            "containerd/hosts.toml.j2", server=url, url=url, push=True
        )
    return found


def unit_conf(options: ContainerdOptions) -> str:
    """Limits of the daemon, which CRI containers inherit."""
    return render("containerd/unit.conf.j2", options=options)


def declared(cluster: Cluster, node: Node, options: ContainerdOptions) -> dict[str, str]:
    """Every file of the role."""
    return {
        CONF: config_toml(node, options),
        DROP_IN: unit_conf(options),
        CRICTL: render("containerd/crictl.yaml.j2"),
        **hosts(cluster, options),
    }
