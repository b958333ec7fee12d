"""Applies the rdma role to a node, as far as its platform has it."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.facts.settings import Answer
from rackwright.lock.for_roles import component, group_for, has_stack
from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import Hca, LimitsLockedMemory
from rackwright.model.platforms import Capability, has
from rackwright.model.types import LinkKind
from rackwright.operations import files, packages, reboots, settings, units
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.rdma import at_boot, texts
from rackwright.roles.rdma.options import RdmaOptions


@deploy("rdma")
def rdma(options: RdmaOptions) -> None:
    """Packages, limits, names, software devices, and what a card is set to."""
    site = site_of()
    if has(site.node.platform, Capability.KERNEL_MODULES):
        # before the packages: devices that their modules bring up get their names at once
        _rules(site, options)
    _packages(site, options)
    _limits(site.node)
    if not has(site.node.platform, Capability.KERNEL_MODULES):
        return
    _modules(texts.modules(site.cluster, site.node, options))
    hcas = options.hcas(site.cluster, site.node)
    cards = tuple(hca for hca in hcas if hca.pci is not None)
    if cards:
        settings.setting(
            name="Rename the RDMA devices by rail",
            target="names of RDMA devices",
            read=texts.names_read(cards),
            want=texts.AS_DECLARED,
            write=texts.names_write(cards),
            disruptive=True,  # programs that start, and counters, go by the name
        )
    _soft_devices(options, tuple(hca for hca in hcas if hca.pci is None))
    if has(site.node.platform, Capability.HARDWARE):
        _link_types(site.cluster, options, cards)
        _set_at_boot(options, cards)


def _rules(site: Site, options: RdmaOptions) -> None:
    files.directory(name="Create the folder for udev rules", path="/etc/udev/rules.d")
    files.file(
        name="Write the names of RDMA devices for udev",
        path=texts.RULES,
        content=texts.rules(options.hcas(site.cluster, site.node)),
    )


def _packages(site: Site, options: RdmaOptions) -> None:
    node = site.node
    locked = uses_doca(site.cluster, node)
    if locked:
        packages.installed(
            name="Install DOCA-OFED at the locked version",
            packages=component(group_for(site), "ofed"),
            hold=True,
            disruptive=True,
        )
    else:
        packages.installed(
            name="Install RDMA's libraries and tools",
            packages=wanted_packages(site.cluster, node, options),
        )


def uses_doca(cluster: Cluster, node: Node) -> bool:
    """Whether a node's RDMA stack is DOCA-OFED: the lock is of nodes with NVIDIA's GPUs alone."""
    return cluster.gpu_stack is not None and cluster.gpu_stack.ofed == "doca" and has_stack(node)


def wanted_packages(cluster: Cluster, node: Node, options: RdmaOptions) -> tuple[str, ...]:
    """The distribution's own packages."""
    kinds = {cluster.networks[options.on(device)].kind for device in options.of_node(node).values()}
    parts = ["rdma"]
    if LinkKind.INFINIBAND in kinds:
        parts.append("infiniband")
    if has(node.platform, Capability.HARDWARE):
        parts.append("mstflint")
    found = [package for part in parts for package in names(node.family, part).packages]
    if options.max_read_request is not None:
        found.append("pciutils")
    return tuple(dict.fromkeys(found))


def _limits(node: Node) -> None:
    if node.offers(LimitsLockedMemory) is not None:
        for path in host.loop((texts.LIMITS, texts.MANAGER)):  # type: ignore[no-untyped-call]
            files.absent(name=f"Remove {path}, which role tuning replaces", path=path)
        return
    files.directory(name="Create the folder for systemd settings", path="/etc/systemd/system.conf.d")
    for path, text in host.loop(tuple(texts.limits().items())):  # type: ignore[no-untyped-call]
        files.file(name=f"Raise the locked memory limit: {path}", path=path, content=text)
    settings.setting(
        name="Reload systemd for the service limit",
        target="DefaultLimitMEMLOCK of the running systemd",
        read="systemctl show --property=DefaultLimitMEMLOCK --value",
        want="infinity",
        write="systemctl daemon-reexec",
    )


def _modules(modules: tuple[str, ...]) -> None:
    files.file(
        name="Write the list of RDMA modules to load at boot",
        path=texts.MODULES_LOAD,
        content=render("rdma/modules-load.conf.j2", modules=modules),
    )
    for module in host.loop(modules):  # type: ignore[no-untyped-call]
        settings.setting(
            name=f"Load {module}",
            target=f"kernel module {module}",
            read=f"[ -d /sys/module/{module} ] && echo loaded",
            want="loaded",
            write=f"modprobe {module} || {{ echo {quote(_no_module(module))} >&2; exit 1; }}",
            after_reboot=True,  # of the kernel that will run
        )


def _no_module(module: str) -> str:
    return (
        f"this kernel lacks {module}: Ubuntu ships it in linux-modules-extra-KERNEL, and cloud kernels omit it; "
        "name the package in kernel.packages, or install a general kernel"
    )


def _no_interface(hca: Hca) -> str:
    return (
        f"the interface {hca.netdev} of {hca.name} does not exist: find the right one with `ip -br link` and set it "
        f"as rdma.devices.{hca.name}.netdev"
    )


def _soft_devices(options: RdmaOptions, hcas: tuple[Hca, ...]) -> None:
    wanted = {f"{texts.UNITS}/{texts.soft_unit(hca.name)}" for hca in hcas}
    there: str | None = host.get_fact(Answer, read=texts.soft_units())
    for path in host.loop(tuple(path for path in (there or "").splitlines() if path not in wanted)):  # type: ignore[no-untyped-call]
        unit = path.rpartition("/")[2]
        units.unit(name=f"Stop {unit}", unit=unit, running=False, enabled=False)
        files.absent(name=f"Remove {unit}", path=path)
    for hca in host.loop(hcas):  # type: ignore[no-untyped-call]
        kind = options.devices[hca.name].soft
        assert kind is not None, hca.name
        assert hca.netdev is not None, hca.name  # refused by `problems`
        unit = texts.soft_unit(hca.name)
        path = f"{texts.UNITS}/{unit}"
        settings.setting(  # systemd would only report a failed dependency
            name=f"Find the interface of {hca.name}",
            target=f"interface {hca.netdev}",
            read=f"{texts.there(hca.netdev)} && echo there",
            want="there",
            write=f"{texts.there(hca.netdev)} || {{ echo {quote(_no_interface(hca))} >&2; exit 1; }}",
            after_reboot=True,
        )
        files.file(
            name=f"Write the unit for {hca.name}",
            path=path,
            content=texts.soft_service(hca.name, kind, hca.netdev),
        )
        units.unit(
            name=f"Create {hca.name} on {hca.netdev} now and at boot",
            unit=unit,
            restart_on=(path,),
            after_reboot=True,
        )
        settings.setting(
            name=f"Recreate {hca.name}",
            target=f"interface of {hca.name}",
            read=texts.soft_read(hca.name),
            want=hca.netdev,
            write=f"systemctl restart {quote(unit)}",
            after_reboot=True,
        )


def _link_types(cluster: Cluster, options: RdmaOptions, cards: tuple[Hca, ...]) -> None:
    for hca in host.loop(cards):  # type: ignore[no-untyped-call]
        value, printed, called = texts.link_type(cluster.networks[hca.network].kind)
        if options.set_link_type:
            parameter = texts.link_type_parameter(hca.pci)
            settings.setting(
                name=f"Set the link type of {hca.name} for the next boot",
                target=f"{parameter} of {hca.name}",
                read=f"mstconfig -d {hca.pci} query {parameter} | awk '$1 == \"{parameter}\" {{print $NF}}'",
                want=printed,
                write=f"mstconfig -y -d {hca.pci} set {parameter}={value}",
            )
            reboots.due(
                name=f"Compare the link type of {hca.name}",
                target=f"link type of {hca.name}",
                read=texts.link_layer_read(hca.pci),
                want=called,
            )


def _set_at_boot(options: RdmaOptions, cards: tuple[Hca, ...]) -> None:
    """The script and the unit; without anything declared, neither."""
    pcis = tuple(hca.pci for hca in cards if hca.pci is not None)
    if not pcis or (options.max_read_request is None and options.interrupts is None):
        units.unit(
            name="Stop setting up RDMA devices at boot",
            unit=at_boot.UNIT,
            running=False,
            enabled=False,
            disruptive=False,
        )
        files.absent(name=f"Remove {at_boot.UNIT}", path=at_boot.UNIT_PATH)
        files.absent(name=f"Remove {at_boot.SCRIPT}", path=at_boot.SCRIPT)
        return
    files.file(
        name="Write the script that sets up RDMA devices at boot",
        path=at_boot.SCRIPT,
        content=at_boot.script(options, pcis),
        mode="755",
        validate="sh -n %s",
    )
    files.file(
        name=f"Write {at_boot.UNIT}",
        path=at_boot.UNIT_PATH,
        content=render("rdma/cards.service.j2"),
    )
    units.unit(
        name="Set up RDMA devices now and at boot",
        unit=at_boot.UNIT,
        restart_on=(at_boot.SCRIPT,),
        disruptive=False,
    )
    if options.interrupts is not None:
        settings.setting(
            name="Bind RDMA interrupts to local CPUs",
            target="CPUs of the interrupts of RDMA devices",
            read=at_boot.interrupts_read(pcis),
            want=at_boot.LOCAL,
            write=at_boot.SCRIPT,
        )
