"""Applies the opensm role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.facts.settings import Answer
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, units
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.opensm import layout, texts
from rackwright.roles.opensm.layout import Instance
from rackwright.roles.opensm.options import OpensmOptions


@deploy("opensm")
def opensm(options: OpensmOptions) -> None:
    """Package, settings, and one unit for each subnet; the distribution's unit stays off."""
    site = site_of()
    software = names(site.node.family, "opensm")
    # Debian's starts at installation, on every port, with settings that nothing declares
    units.unit(name="Mask the distribution's opensm unit", unit=software.unit or "", masked=True)
    packages.installed(
        name="Install opensm",
        packages=(*software.packages, *names(site.node.family, "infiniband").packages),
        start_daemons=False,
    )
    files.directory(name="Create opensm's folder", path=texts.FOLDER)
    files.file(
        name="Write the script that starts opensm",
        path=texts.START,
        content=render("opensm/start.sh.j2"),
        mode="755",
        validate="sh -n %s",
    )
    runs = tuple(layout.instances(site.cluster, site.node, options))
    _stop_others({f"{texts.UNITS}/{texts.unit(instance)}" for instance in runs})
    for instance in host.loop(runs):  # type: ignore[no-untyped-call]
        _instance(site, options, instance)


def _stop_others(wanted: set[str]) -> None:
    """Subnet managers of earlier declarations."""
    there: str | None = host.get_fact(Answer, read=texts.units_there())
    others = tuple(path for path in (there or "").splitlines() if path not in wanted)
    for path in host.loop(others):  # type: ignore[no-untyped-call]
        unit = path.rpartition("/")[2]
        units.unit(name=f"Stop {unit}", unit=unit, running=False, enabled=False)
        files.absent(name=f"Remove {unit}", path=path)


def _instance(site: Site, options: OpensmOptions, instance: Instance) -> None:
    name = instance.island.name
    subnet = options.networks[instance.network]
    conf, partitions, roots = (
        texts.conf_path(instance),
        texts.partitions_path(instance),
        texts.roots_path(instance),
    )
    unit = f"{texts.UNITS}/{texts.unit(instance)}"
    files.file(
        name=f"Write the opensm settings for {name}",
        path=conf,
        content=texts.conf(site.cluster, options, instance, lambda secret: site.secret(secret).reveal()),
        mode="600",
        sensitive=bool(subnet.sm_key or subnet.m_key),
    )
    files.file(name=f"Write the partitions for {name}", path=partitions, content=texts.partitions(subnet))
    text = texts.roots(site.cluster, options, instance)
    if text is not None:
        files.file(name=f"Write the spines for {name}", path=roots, content=text)
    else:
        files.absent(name=f"Remove the spines for {name}", path=roots)
    files.file(name=f"Write the unit for {name}", path=unit, content=texts.service(instance))
    if has(site.node.platform, Capability.KERNEL_MODULES):
        units.unit(
            name=f"Start the subnet manager for {name}",
            unit=texts.unit(instance),
            restart_on=(conf, roots, unit, texts.START),
            reload_on=(partitions,),  # it reads them again at SIGHUP, without a new election
            disruptive=False,  # routes stay in the switches
        )
