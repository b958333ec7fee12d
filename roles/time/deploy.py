"""Applies the time role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import Site, site_of
from rackwright.extra_lines import named, with_extra
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, settings, units
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.time.options import TimeOptions


@deploy("time")
def time(options: TimeOptions) -> None:
    """chrony: the primary head serves time, all other nodes follow it."""
    site = site_of()
    chrony = names(site.node.family, "chrony")
    unit = chrony.unit or ""
    # Its first start is with our configuration: the packaged one asks servers on the internet.
    packages.installed(name="Install chrony", packages=chrony.packages, start_daemons=False)
    units.unit(name="Mask systemd-timesyncd", unit="systemd-timesyncd.service", masked=True)
    conf, daemon_options = chrony.paths["conf"], chrony.paths["daemon_options"]
    content = chrony_conf(site, options)
    files.file(name=named("Write chrony's configuration", content), path=conf, content=content)
    files.file(name="Write chronyd's options", path=daemon_options, content=_daemon_options(site))
    folder = f"/etc/systemd/system/{unit}.d"
    drop_in = f"{folder}/90-rackwright.conf"
    if has(site.node.platform, Capability.CLOCK):
        files.absent(name="Remove the drop-in that lets chronyd start without the clock", path=drop_in)
    else:
        files.directory(name="Create the folder for chronyd drop-ins", path=folder)
        files.file(
            name="Let chronyd start without the clock",
            path=drop_in,
            content=render("time/without-clock.conf.j2"),
        )
        # systemd 252 ignores a folder created after its last reload and does not report it
        # either: NeedDaemonReload stays "no" and the unit is skipped (seen on Debian 12)
        settings.setting(
            name="Reload systemd",
            target=f"drop-ins of {unit} that systemd knows",
            read=f"systemctl show -p DropInPaths --value {unit} | grep -ow {drop_in}",
            want=drop_in,
            write="systemctl daemon-reload",
        )
    units.unit(name="Start chronyd", unit=unit, restart_on=(conf, daemon_options, folder))


def chrony_conf(site: Site, options: TimeOptions) -> str:
    """chrony.conf of this node."""
    cluster, node = site.cluster, site.node
    text = render(
        "time/chrony.conf.j2",
        cluster=cluster.name,
        options=options,
        primary=node.primary,
        server={"name": cluster.primary.name, "address": cluster.management_address(cluster.primary)},
        allow=(cluster.management.cidr, *options.allow),
        drift=names(node.family, "chrony").paths["drift"],
        owns_clock=has(node.platform, Capability.CLOCK),
    )
    return with_extra(text, options.extra.chrony_conf)


def _daemon_options(site: Site) -> str:
    """The packages' own options (a system-call filter), and -x where the clock is not ours."""
    owns_clock = has(site.node.platform, Capability.CLOCK)
    chronyd = names(site.node.family, "chrony").settings
    return render(
        "time/daemon-options.j2",
        platform=site.node.platform,
        owns_clock=owns_clock,
        variable=chronyd["variable"],
        options=("-F", chronyd["filter_level"], *(() if owns_clock else ("-x",))),
    )
