"""Applies the grafana role to the primary head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import files, packages, trees, units
from rackwright.operations.certificates import issue_certificates
from rackwright.operations.package_archive import package_archive
from rackwright.roles.grafana import texts
from rackwright.roles.grafana.options import GrafanaOptions


@deploy("grafana")
def grafana(options: GrafanaOptions) -> None:
    """The package, its secrets and settings, then what it shows."""
    site = site_of()
    if options.archive is not None:
        package_archive(site, "grafana", options.archive)
    packages.installed(
        name="Install Grafana",
        packages=options.packages(site.node),
        start_daemons=False,
        hold=options.version is not None,
    )
    user = options.names(site.node).settings["user"]
    for path in host.loop(texts.folders()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {path}", path=path, mode="750", group=user)
    issue_certificates(options)  # the package has made the user
    secrets = _secrets(site, options, user)
    plain = texts.plain_files(site.cluster, site.node, options)
    for path, text in host.loop(plain.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode="640", group=user)
    if options.ldap is None:
        files.absent(name="Remove Grafana's LDAP settings", path=options.names(site.node).paths["ldap"])
    trees.tree(
        name="Write Grafana's dashboards", path=texts.DASHBOARDS_FOLDER, files=texts.dashboards(site.cluster)
    )
    _unit(site, options, (*plain, *secrets))


def _secrets(site: Site, options: GrafanaOptions, user: str) -> tuple[str, ...]:
    wanted = texts.secret_files(options)
    for path, name in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Write {path}",
            path=path,
            content=site.secret(name).reveal(),
            mode="640",
            group=user,
            sensitive=True,
        )
    return tuple(wanted)


def _unit(site: Site, options: GrafanaOptions, read: tuple[str, ...]) -> None:
    """Dashboards are read again by themselves; everything else at a start."""
    path = options.drop_in(site.node)
    files.directory(name="Create the folder for Grafana's unit settings", path=path.rpartition("/")[0])
    files.file(
        name="Set the administrator's password at each start",
        path=path,
        content=texts.drop_in(site.node, options),
    )
    chains = [one.chain for one in options.certificates(site.cluster, site.node)]
    units.unit(
        name="Start Grafana",
        unit=options.names(site.node).unit or "",
        restart_on=(path, *read, *chains),
        disruptive=False,
    )
