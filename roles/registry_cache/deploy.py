"""Applies the registry_cache role to the primary head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.model.proxy import proxy_variables
from rackwright.operations import files, packages, units
from rackwright.operations.certificates import issue_certificates
from rackwright.render import render
from rackwright.roles.registry_cache import texts
from rackwright.roles.registry_cache.options import RegistryCacheOptions


@deploy("registry_cache")
def registry_cache(options: RegistryCacheOptions) -> None:
    """The package without its own daemon, then one unit per registry."""
    site = site_of()
    packages.installed(name="Install the registry", packages=("docker-registry",), start_daemons=False)
    units.unit(name="Mask the package's own registry", unit=texts.PACKAGED_UNIT, masked=True)
    issue_certificates(options)  # the package has made the folder and the group
    files.file(
        name="Write the unit for registries",
        path=texts.UNIT_FILE,
        content=render(
            "registry_cache/unit.j2", etc=texts.ETC, proxy=proxy_variables(site.cluster, site.node)
        ),
    )
    # the site's own first: a cache does not start without its upstream, which may be one of them
    own_first = sorted(options.registries, key=lambda name: options.registries[name].upstream is not None)
    for name in host.loop(own_first):  # type: ignore[no-untyped-call]
        _registry(name, site, options)


def _registry(name: str, site: Site, options: RegistryCacheOptions) -> None:
    conf = texts.conf_path(name)
    files.directory(
        name=f"Create the folder for registry {name}",
        path=texts.storage(name, options),
        mode="750",
        owner=texts.USER,
        group=texts.USER,
    )
    files.file(
        name=f"Write the settings for registry {name}",
        path=conf,
        content=texts.config_yml(name, site.cluster, options, lambda secret: site.secret(secret).reveal()),
        mode="640",
        group=texts.USER,
        sensitive=True,
    )
    users = texts.htpasswd(name, options, lambda secret: site.secret(secret).reveal())
    login = texts.htpasswd_path(name)
    if users is None:
        files.absent(name=f"Remove the users file of registry {name}", path=login)
    else:
        files.file(
            name=f"Write the users file of registry {name}",
            path=login,
            content=users,
            mode="640",
            group=texts.USER,
            sensitive=True,
        )
    chain = [one.chain for one in options.certificates(site.cluster, site.node)]
    units.unit(
        name=f"Start registry {name}",
        unit=texts.unit(name),
        restart_on=(conf, *((login,) if users else ()), texts.UNIT_FILE, *chain),
    )
