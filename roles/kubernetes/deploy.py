"""Applies the kubernetes role to a node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.kubernetes.commands import AS_DECLARED
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, units
from rackwright.operations.kubernetes_nodes import image_archives, member
from rackwright.operations.kubernetes_objects import kubernetes_objects
from rackwright.operations.package_archive import package_archive
from rackwright.operations.settings import setting
from rackwright.operations.sysctls import live
from rackwright.osfamily.names import names
from rackwright.roles.kubernetes import (
    admission,
    cluster_objects,
    commands,
    etcd,
    images,
    kubelet,
    network,
    pki,
    shared_address,
    taints,
    texts,
)
from rackwright.roles.kubernetes.mirror import read_mirror
from rackwright.roles.kubernetes.options import KubernetesOptions


@deploy("kubernetes")
def kubernetes(options: KubernetesOptions) -> None:
    """Packages and settings, images, the node's membership, then what the API holds of it."""
    site = site_of()
    _ground(site, options)
    _images(site, options)
    plane = options.runs_control_plane(site.node)
    if plane:
        _authorities(site)
        _shared_address(site, options)
    if options.network == "routes":
        units.unit(
            name="Set the routes to other nodes' pods",
            unit=network.UNIT,
            reload_on=(network.ROUTES, network.MASQUERADE, network.PROGRAM),
        )
    member(
        name="Join the cluster",
        target=f"Kubernetes on {site.node.name}",
        read=commands.membership(site.node),
        want=commands.MEMBER,
        write=commands.join(options, site.cluster, site.node),
        credentials=lambda: pki.join_kubeconfig(
            options, site.cluster, site.node, lambda name: site.secret(name).reveal()
        ),
    )
    if plane:
        _static_pods(site, options)
    _kubelet(site, options)
    if plane:
        _taints(site, options)
        _timers(options)
    if options.control_planes(site.cluster)[0].name == site.node.name:
        kubernetes_objects("kubernetes", cluster_objects.objects(options, site.cluster))


def _ground(site: Site, options: KubernetesOptions) -> None:
    """What kubeadm finds when it runs."""
    archive, _ = texts.archive(options, site.cluster)
    package_archive(site, "kubernetes", archive)
    software = names(site.node.family, "kubernetes")
    packages.installed(name="Install what Kubernetes needs", packages=software.packages, start_daemons=False)
    for folder in (texts.ETC, texts.OWN, admission.FOLDER, f"{texts.ETC}/manifests", "/etc/cni/net.d"):
        private = folder in (texts.OWN, admission.FOLDER)
        files.directory(name=f"Create {folder}", path=folder, mode="700" if private else "755")
    _write(texts.node_files(options, site.cluster, site.node))
    if has(site.node.platform, Capability.KERNEL_MODULES):
        for one in host.loop(texts.MODULES):  # type: ignore[no-untyped-call]
            setting(
                name=f"Load {one}",
                target=f"module {one}",
                read=f"[ -d /sys/module/{one} ] && echo loaded",
                want="loaded",
                write=f"modprobe {one}",
            )
    live(name="Set kernel values for Kubernetes", values=texts.sysctls(site.node))
    packages.installed(
        name="Install kubeadm and kubectl",
        packages=tuple(texts.package(options, site.cluster, name) for name in ("kubeadm", "kubectl")),
        hold=True,
        start_daemons=False,
    )


def _write(wanted: Mapping[str, str]) -> None:
    for folder in dict.fromkeys(str(PurePosixPath(path).parent) for path in wanted):
        if folder not in (texts.ETC, texts.OWN, admission.FOLDER, "/etc/cni/net.d", "/usr/local/sbin"):
            files.directory(name=f"Create {folder}", path=folder)
    for path, text in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode=texts.mode(path))


def _images(site: Site, options: KubernetesOptions) -> None:
    """From the mirror's archives, where a site has none in a registry."""
    if options.mirror is None:
        return
    plane = options.runs_control_plane(site.node)
    there = read_mirror(site.cluster, options.mirror).images
    image_archives(one for one in there if plane or one.component not in images.CONTROL_PLANE)


def _authorities(site: Site) -> None:
    files.directory(name="Create the folder for certificates", path=pki.FOLDER)
    files.directory(name="Create the folder for etcd's certificates", path=f"{pki.FOLDER}/etcd")
    found = (
        pki.imagined() if site.offline else pki.files(site.cluster, lambda name: site.secret(name).reveal())
    )
    for one in found:
        files.file(
            name=f"Write {one.path}",
            path=one.path,
            content=one.text,
            mode="600" if one.secret else "644",
            sensitive=one.secret,
        )


def _shared_address(site: Site, options: KubernetesOptions) -> None:
    if options.encrypt_secrets:
        files.file(
            name="Write the key of secrets in etcd",
            path=admission.ENCRYPTION,
            content=admission.encryption_text(site.secret("kubernetes_encryption_key").reveal()),
            mode="600",
            sensitive=True,
        )
    declared = texts.control_plane_files(options, site.cluster, site.node)
    if options.control_plane.address is not None:
        packages.installed(
            name="Install keepalived and haproxy",
            packages=names(site.node.family, "shared-address").packages,
            start_daemons=False,
        )
    _write(declared)
    if options.control_plane.address is not None:
        units.unit(
            name="Start haproxy with its settings",
            unit="haproxy.service",
            restart_on=(shared_address.HAPROXY_LIMITS,),
            reload_on=(shared_address.HAPROXY,),
            disruptive=False,
        )
        units.unit(
            name="Start keepalived with its settings",
            unit="keepalived.service",
            reload_on=(shared_address.KEEPALIVED,),
            disruptive=False,
        )


def _static_pods(site: Site, options: KubernetesOptions) -> None:
    cluster, node = site.cluster, site.node
    setting(
        name="Upgrade the control plane",
        target="version of the control plane",
        read=commands.running_version(options),
        want=options.version,
        write=commands.upgrade(options, cluster, node),
    )
    setting(
        name="Write the manifests of the control plane",
        target="manifests of the control plane",
        read=commands.manifests(options, cluster, node),
        want=AS_DECLARED,
        write=commands.write_manifests(options, cluster, node),
    )


def _kubelet(site: Site, options: KubernetesOptions) -> None:
    packages.installed(
        name="Install the kubelet",
        packages=(texts.package(options, site.cluster, "kubelet"),),
        hold=True,
        start_daemons=False,
        disruptive=True,
    )
    units.unit(
        name="Start the kubelet with its settings",
        unit=texts.KUBELET,
        restart_on=(kubelet.CONFIG, kubelet.DROP_IN),
        disruptive=False,  # containers go on without it
    )
    setting(
        name="Label the node",
        target=f"labels of {site.node.name}",
        read=commands.labelled(options, site.node),
        want=f"node/{site.node.name}",
        write=commands.label(options, site.node),
    )


def _taints(site: Site, options: KubernetesOptions) -> None:
    kept = taints.kept_by(options, site.cluster, site.node)
    if kept:
        setting(
            name="Taint the nodes",
            target="taints of nodes",
            read=taints.missing(kept),
            want=AS_DECLARED,
            write=taints.write(kept),
        )


def _timers(options: KubernetesOptions) -> None:
    units.unit(name="Start the timer of etcd's snapshots", unit=etcd.TIMER)
    setting(
        name="Make the first snapshot of etcd",
        target="snapshots of etcd",
        read=f"ls {options.snapshots.folder} 2>/dev/null | grep -q 'db$' && echo made",
        want="made",
        write=etcd.SNAPSHOT,
    )
    units.unit(name="Start the timer of certificates", unit=texts.CERTIFICATE_TIMER)


@deploy("kubernetes")
def leaves(options: KubernetesOptions) -> None:
    """A node whose workload is another one now leaves the cluster."""
    setting(
        name="Leave Kubernetes",
        target="membership of a Kubernetes cluster",
        read=f"[ -e {texts.JOINED} ] && echo member || echo none",
        want="none",
        write=commands.LEAVE,
        disruptive=True,
    )
