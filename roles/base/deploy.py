"""Applies the base role to a node."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import files, packages, settings, storage_leftovers, units
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.base import forwarding, texts
from rackwright.roles.base.options import BaseOptions


@deploy("base")
def base(options: BaseOptions) -> None:
    """Hostname, /etc/hosts, package sources and packages, locale, timezone; no automatic upgrades.

    Undeclared filesystems are removed here, since the role that mounted them may have left the node.
    """
    site = site_of()
    _name(site, options)
    _package_sources(site)
    packages.database(name="Repair the package database")  # apt installs nothing while it is broken
    _NO_UPGRADES[site.node.family.package_tool]()
    _packages(site, options)
    _locale(site, options)
    _timezone(site, options)
    _forwarding(site, options)
    storage_leftovers.removed(name="Remove undeclared mounts and exports")


def _forwarding(site: Site, options: BaseOptions) -> None:
    wanted = forwarding.wanted(site.node, options)
    _present_or_absent(
        "Set packet forwarding at boot", forwarding.PATH, {forwarding.PATH: forwarding.text(wanted)}
    )
    if wanted is None:
        return
    settings.setting(
        name="Enable packet forwarding" if wanted else "Disable packet forwarding",
        target="packet forwarding",
        read=forwarding.READ[wanted],
        want=forwarding.WANT[wanted],
        write=forwarding.WRITE[wanted],
    )


def _name(site: Site, options: BaseOptions) -> None:
    name = site.node.name
    # /etc/hosts first, so that the new hostname resolves at once (sudo looks it up)
    files.file(name="Write /etc/hosts", path="/etc/hosts", content=texts.hosts(site.cluster, options))
    files.directory(name="Create the folder for cloud-init settings", path="/etc/cloud/cloud.cfg.d")
    files.file(
        name="Keep cloud-init from renaming the node",
        path="/etc/cloud/cloud.cfg.d/99-rackwright.cfg",
        content=render("base/cloud-init.cfg.j2"),
    )
    files.file(name="Write /etc/hostname", path="/etc/hostname", content=f"{name}\n")
    settings.setting(
        name="Set the hostname",
        target="hostname",
        read="uname -n",
        want=name,
        write=f"hostnamectl set-hostname {quote(name)}",
    )


def _package_sources(site: Site) -> None:
    declared = texts.package_files(site.cluster, site.node)
    _present_or_absent("Set pip's index", texts.PIP, declared)
    for file in host.loop(site.node.os.repository_files):  # type: ignore[no-untyped-call]
        _present_or_absent(f"Set {file.title}", file.path, declared)
    _present_or_absent("Set apt's proxy", texts.APT_PROXY, declared)
    _present_or_absent("Set apt's sources", texts.SOURCES, declared)
    if declared.get(texts.SOURCES) is not None:
        files.file(
            name="Empty the installer's sources.list",
            path="/etc/apt/sources.list",
            content=render("base/sources.list.j2"),
        )
        files.absent(name="Remove Debian's stock sources", path=texts.STOCK_SOURCES[0])
        files.absent(name="Remove Ubuntu's stock sources", path=texts.STOCK_SOURCES[1])


def _present_or_absent(name: str, path: str, declared: dict[str, str | None]) -> None:
    if path not in declared:  # not managed on this release
        return
    content = declared[path]
    if content is None:
        files.absent(name=name, path=path)
    else:
        files.file(name=name, path=path, content=content)


def _no_apt_upgrades() -> None:
    files.file(
        name="Disable apt's periodic upgrades",
        path=texts.AUTO_UPGRADES,
        content=render("base/20auto-upgrades.j2"),
    )
    units.unit(name="Mask apt's download timer", unit=texts.APT_TIMERS[0], masked=True)
    units.unit(name="Mask apt's upgrade timer", unit=texts.APT_TIMERS[1], masked=True)
    packages.absent(name="Remove unattended-upgrades", packages=("unattended-upgrades",))
    files.directory(name="Create the folder for needrestart settings", path="/etc/needrestart/conf.d")
    files.file(
        name="Keep needrestart from prompting and restarting services",
        path=texts.NEEDRESTART,
        content=render("base/needrestart.conf.j2"),
    )


def _no_dnf_upgrades() -> None:
    packages.absent(name="Remove dnf-automatic", packages=("dnf-automatic",))
    units.unit(name="Mask dnf's metadata timer", unit="dnf-makecache.timer", masked=True)


_NO_UPGRADES = {"apt": _no_apt_upgrades, "dnf": _no_dnf_upgrades}


def _packages(site: Site, options: BaseOptions) -> None:
    family = site.node.family
    wanted = (*names(family, "base").packages, *options.packages)
    packages.installed(name="Install the base packages", packages=wanted)
    tools = texts.hardware_tools(site.node)
    if tools:
        packages.installed(name="Install the hardware tools", packages=tools, start_daemons=False)


def _locale(site: Site, options: BaseOptions) -> None:
    locale, family = options.locale, site.node.family
    if not locale.startswith(("C.", "POSIX.")):
        packages.installed(name="Install the locale tools", packages=names(family, "locales").packages)
        if family.locale_gen is not None:
            files.file(
                name="Write /etc/locale.gen",
                path=family.locale_gen,
                content=render("base/locale.gen.j2", locale=locale),
            )
        settings.setting(
            name="Generate the locale",
            target=f"locale {locale}",
            read=f"LC_ALL={quote(locale)} locale charmap",
            want="UTF-8",
            write=f"localedef -i {quote(locale.partition('.')[0])} -f UTF-8 {quote(locale)}",
        )
    files.file(
        name="Write /etc/locale.conf",
        path="/etc/locale.conf",
        content=render("base/locale.conf.j2", locale=locale),
    )
    if family.locale_link is not None:  # as Debian 13 ships it: one file, two names
        files.link(name="Link Debian's locale file", path=family.locale_link, target="../locale.conf")


def _timezone(site: Site, options: BaseOptions) -> None:
    files.link(
        name="Set the timezone", path="/etc/localtime", target=f"/usr/share/zoneinfo/{options.timezone}"
    )
    if (path := site.node.family.timezone_file) is not None:
        files.file(name="Write /etc/timezone", path=path, content=f"{options.timezone}\n")
