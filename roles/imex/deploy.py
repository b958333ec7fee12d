"""Applies the imex role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import Site, site_of
from rackwright.lock.for_roles import component, group_for
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, units
from rackwright.render import render
from rackwright.roles.imex.domains import addresses
from rackwright.roles.imex.options import ImexOptions

UNIT = "nvidia-imex.service"
FOLDER = "/etc/nvidia-imex"
NODES = f"{FOLDER}/nodes_config.cfg"
CONF = f"{FOLDER}/config.cfg"
CHANNELS = "/usr/local/sbin/rackwright-imex-channels"
CHANNELS_UNIT = "rackwright-imex-channels.service"


@deploy("imex")
def imex(options: ImexOptions) -> None:
    """The domain and the configuration first, then the package, then channels and the daemon."""
    site = site_of()
    if not options.needed_on(site.node):
        units.unit(name="Disable IMEX without a domain", unit=UNIT, running=False, enabled=False)
        return
    files.directory(name="Create IMEX's folder", path=FOLDER)
    files.file(name="Write the nodes of the NVLink domain", path=NODES, content=nodes_config(site, options))
    files.file(name="Write IMEX's configuration", path=CONF, content=config(site, options))
    packages.installed(
        name="Install IMEX at the driver's version",
        packages=component(group_for(site), *options.parts),
        start_daemons=False,
        hold=True,
        disruptive=True,
    )
    _channels(site, options)
    units.unit(name="Start IMEX", unit=UNIT, restart_on=(NODES, CONF), after_reboot=True)


def nodes_config(site: Site, options: ImexOptions) -> str:
    """nodes_config.cfg: every daemon compares its own with its peers' and refuses another one."""
    return "".join(f"{address}\n" for address in addresses(site.cluster, site.node, options))


def config(site: Site, options: ImexOptions) -> str:
    """config.cfg."""
    network = options.network or site.cluster.management.name
    return render("imex/config.cfg.j2", options=options, own_address=site.node.address_on(network) or "")


def _channels(site: Site, options: ImexOptions) -> None:
    path = f"/etc/systemd/system/{CHANNELS_UNIT}"
    if options.channels == 0:
        units.unit(name="Stop creating channels at boot", unit=CHANNELS_UNIT, running=False, enabled=False)
        files.absent(name="Remove the unit for the channels", path=path)
        files.absent(name="Remove the script for the channels", path=CHANNELS)
        return
    files.file(
        name="Write the script that creates the channels",
        path=CHANNELS,
        content=render("imex/channels.sh.j2", channels=options.channels),
        mode="755",
        validate="sh -n %s",
    )
    files.file(name="Write the unit for the channels", path=path, content=render("imex/channels.service.j2"))
    driver = has(site.node.platform, Capability.KERNEL_MODULES)
    units.unit(
        name="Create the channels now and at boot",
        unit=CHANNELS_UNIT,
        running=True if driver else None,
        restart_on=(CHANNELS,) if driver else (),
        disruptive=False,
        after_reboot=True,  # the loaded driver makes them
    )
