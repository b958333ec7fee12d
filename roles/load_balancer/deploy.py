"""Applies the load_balancer role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, packages, units
from rackwright.operations.certificates import issue_certificates
from rackwright.osfamily.names import names
from rackwright.roles.load_balancer import texts
from rackwright.roles.load_balancer.options import FOLDER, UNIT, UNIT_FILE, LoadBalancerOptions


@deploy("load_balancer")
def load_balancer(options: LoadBalancerOptions) -> None:
    """A process beside that of the distribution's haproxy.service, with files that name services alone."""
    site = site_of()
    packages.installed(
        name="Install haproxy", packages=names(site.node.family, "haproxy").packages, start_daemons=False
    )
    files.directory(name="Create the folder for services", path=FOLDER, mode="700")
    issue_certificates(options)
    declared = texts.files(site.cluster, options)
    for path, text in host.loop(declared.items()):  # type: ignore[no-untyped-call]
        check = "haproxy -c -q -f %s" if path == texts.CONF else None
        files.file(name=f"Write {path}", path=path, content=text, validate=check)
    chains = [one.chain for one in options.certificates(site.cluster, site.node)]
    units.unit(
        name="Start the load balancer with its settings",
        unit=UNIT,
        restart_on=(UNIT_FILE,),
        reload_on=(texts.CONF, *chains),
        disruptive=False,
    )
