"""Applies the accounts role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import files, packages, settings, units
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.accounts import pam, texts
from rackwright.roles.accounts.options import SSHD_CONF, SUDOERS, AccountsOptions


@deploy("accounts")
def accounts(options: AccountsOptions) -> None:
    """SSSD with its settings, then what asks it: the name service, PAM, sshd and sudo."""
    site = site_of()
    sssd = names(site.node.family, "sssd")
    # its first start is with our settings; Debian's package enables sockets that sssd.conf names as services
    packages.installed(name="Install SSSD", packages=sssd.packages, start_daemons=False)
    _optional("certificate of the directory's CA", texts.CA_FILE, texts.ca_text(site.cluster, options))
    _sssd(site, options, sssd.unit or "")
    _lookups(site, options)
    # who may log in is asked by now, so the keys may be found
    _sshd(site, options)
    _sudo(options)


def _sssd(site: Site, options: AccountsOptions, unit: str) -> None:
    mode, group = site.node.os.sssd_conf
    password = None if options.bind is None else site.secret(options.bind.stored_as).reveal()
    files.file(
        name="Write SSSD's settings",
        path=texts.CONF,
        content=texts.sssd_conf(site.cluster, site.node, options, password),
        mode=mode,
        group=group,
        sensitive=True,
        validate=f"sssctl config-check -c %s -s {texts.SNIPPETS}",
    )
    for socket in host.loop(texts.SOCKETS):  # type: ignore[no-untyped-call]
        units.unit(name=f"Mask {socket}", unit=socket, masked=True, disruptive=False)
    settings.setting(
        name="Clear entries cached from another directory",
        target="cached entries",
        read=texts.cache_read(),
        want=texts.cache_want(options),
        write=texts.cache_drop(options),
    )
    units.unit(
        name="Start SSSD with its settings",
        unit=unit,
        restart_on=(texts.CONF, texts.ca_path(site.node, options)),
        disruptive=False,  # it is back within a second, with its cached entries
    )


def _lookups(site: Site, options: AccountsOptions) -> None:
    stack = pam.stack(site.node.family, make_home=options.make_home)
    maker = names(site.node.family, "home-maker")
    if options.make_home and maker.packages:
        packages.installed(name="Install the service that creates homes", packages=maker.packages)
        units.unit(name="Start the service that creates homes", unit=maker.unit or "")
    if options.make_home and stack.profile:
        files.file(
            name="Write the PAM profile that creates homes",
            path=texts.PAM_PROFILE,
            content=render("accounts/pam-home.j2"),
        )
    settings.setting(
        name="Add SSSD to PAM", target="PAM", read=stack.read, want=stack.want, write=stack.write
    )
    if stack.profile and not options.make_home:
        files.absent(name="Remove the PAM profile that creates homes", path=texts.PAM_PROFILE)
    if not stack.writes_nsswitch:
        settings.setting(
            name="Look up users in files, then in the directory",
            target=texts.NSSWITCH,
            read=texts.NSSWITCH_READ,
            want=texts.NSSWITCH_RIGHT,
            write=texts.NSSWITCH_WRITE,
        )


def _sshd(site: Site, options: AccountsOptions) -> None:
    text, program = texts.sshd_conf(site.cluster, site.node, options), texts.keys_program(options)
    if program is not None:
        folder = texts.KEYS_PROGRAM.rpartition("/")[0]
        files.directory(name=f"Create {folder}", path=folder)
        files.file(
            name="Write the program that looks up keys in the directory",
            path=texts.KEYS_PROGRAM,
            content=program,
            mode="755",
        )
    if text is None:
        files.absent(name="Remove the sshd settings for directory users", path=SSHD_CONF)
    else:
        files.file(
            name="Write the sshd settings for directory users",
            path=SSHD_CONF,
            content=text,
            validate="sshd -t -f %s",
        )
    units.unit(
        name="Reload sshd",
        unit=names(site.node.family, "openssh").unit or "",
        running=None,
        enabled=None,
        reload_on=(SSHD_CONF,),
    )
    if program is None:
        files.absent(name="Remove the program that looks up keys in the directory", path=texts.KEYS_PROGRAM)


def _sudo(options: AccountsOptions) -> None:
    text = texts.sudoers(options)
    if text is None:
        files.absent(name="Remove the sudo rules for directory groups", path=SUDOERS)
    else:
        files.file(
            name="Write the sudo rules for directory groups",
            path=SUDOERS,
            content=text,
            mode="440",
            validate="visudo -cqf %s",
        )


def _optional(what: str, path: str, text: str | None) -> None:
    if text is None:
        files.absent(name=f"Remove the {what}", path=path)
    else:
        files.file(name=f"Write the {what}", path=path, content=text)
