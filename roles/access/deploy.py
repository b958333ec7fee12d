"""Applies the access role to a node."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.errors import RackwrightError
from rackwright.extra_lines import block, named
from rackwright.model.storage import home_of
from rackwright.operations import files, packages, settings, units, users
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.access import known_hosts, trust
from rackwright.roles.access.options import KEYS, SSHD_CONF, SSHD_FOLDER, SUDOERS, AccessOptions, AdminUser


@deploy("access")
def access(options: AccessOptions) -> None:
    """Admin users, sudo, sshd, and logins from node to node."""
    site = site_of()
    for _, sentence, hint in options.problems(site.cluster):
        raise RackwrightError(sentence, hint=hint)  # last resort: `validate` reports it much earlier
    openssh = names(site.node.family, "openssh")
    packages.installed(name="Install ssh and sudo", packages=openssh.packages)
    files.directory(name="Create the folder for declared keys", path=KEYS)
    for group in host.loop(options.groups):  # type: ignore[no-untyped-call]
        users.group(name=f"Create group {group.name}", group=group.name, gid=group.gid)
    for user in host.loop(options.users):  # type: ignore[no-untyped-call]
        _admin(site, user, options)
    for removed in host.loop(options.removed_users):  # type: ignore[no-untyped-call]
        _removed(removed)
    _sudo(options)
    _node_to_node(site, options)
    content = sshd_conf(site, options)
    files.file(
        name=named("Write sshd's settings", content),
        path=SSHD_CONF,
        content=content,
        validate="sshd -t -f %s",
    )
    # the whole folder: a drop-in that another tool added or removed counts too
    units.unit(
        name="Start sshd with its settings",
        unit=openssh.unit or "",
        reload_on=(SSHD_FOLDER, "/etc/ssh/sshd_config"),
    )


def sshd_conf(site: Site, options: AccessOptions) -> str:
    """sshd's settings on this node."""
    exempt = [network.cidr for network in site.cluster.inner_networks]
    return render(
        "access/sshd.conf.j2",
        options=options,
        exempt=exempt if site.node.os.sshd_has_penalties else (),
        crypto_policies=site.node.family.has_crypto_policies,
        privileged=trust.privileged_users(site.cluster, options),
        extra=block(options.extra.sshd_conf),
    )


def _admin(site: Site, user: AdminUser, options: AccessOptions) -> None:
    users.group(name=f"Create group {user.name}", group=user.name, gid=user.uid)
    numbered = {group.name for group in options.groups} | {other.name for other in options.users}
    others = [group for group in user.groups if group not in numbered]
    for group in host.loop(others):  # type: ignore[no-untyped-call]
        # a system number: the next ordinary one may be that of a user who comes later
        users.group(name=f"Create group {group}", group=group, system=True)
    home, shared = options.home_folder(site.cluster, site.node, user), home_of(site.node)
    users.user(
        name=f"Create user {user.name}",
        user=user.name,
        uid=user.uid,
        group=user.name,
        groups=user.groups,
        shell=user.shell,
        home=home,
        # the server creates homes below a declared filesystem: root of a client may be squashed there
        create_home=shared is None or not home.startswith(f"{shared.path}/"),
    )
    # a user who was removed and is declared again has an expired account; a new one starts unlocked
    settings.setting(
        name=f"Unlock the account of {user.name}",
        target=f"account {user.name}",
        read=f"{_expiry(user.name)} | grep . || echo open",
        want="open",
        write=f"usermod --expiredate '' {quote(user.name)}",
    )
    files.file(
        name=f"Write the keys of {user.name}",
        path=f"{KEYS}/{user.name}",
        content=render("access/authorized_keys.j2", keys=user.authorized_keys),
    )


def _removed(name: str) -> None:
    files.absent(name=f"Remove the keys of {name}", path=f"{KEYS}/{name}")
    # day 1 is long past, and it stops keys too, which a locked password alone does not; a user who
    # is not there needs nothing
    settings.setting(
        name=f"Lock the account of {name}",
        target=f"account {name}",
        read=f"if getent passwd {quote(name)} >/dev/null; then {_expiry(name)}; else echo 1; fi",
        want="1",
        write=f"usermod --lock --expiredate 1 {quote(name)}",
    )


def _expiry(name: str) -> str:
    """Prints field 8 of shadow: the day the account expires, empty for never."""
    return f"getent shadow {quote(name)} | cut -d: -f8"


def _sudo(options: AccessOptions) -> None:
    sudoers = tuple(user.name for user in options.users if user.sudo)
    if sudoers:
        files.file(
            name="Write the sudo rules",
            path=SUDOERS,
            content=render("access/sudoers.j2", users=sudoers),
            mode="440",
            validate="visudo -cqf %s",
        )
    else:
        files.absent(name="Remove the sudo rules", path=SUDOERS)


def _node_to_node(site: Site, options: AccessOptions) -> None:
    files.file(
        name="Write every node's host keys",
        path="/etc/ssh/ssh_known_hosts",
        content=known_hosts.ssh_known_hosts(site.cluster),
    )
    client = "/etc/ssh/ssh_config.d/00-rackwright.conf"
    trusted = "/etc/ssh/shosts.equiv"
    if not options.node_to_node:
        files.absent(name="Remove /etc/ssh/shosts.equiv", path=trusted)
        files.absent(name="Remove the ssh client settings", path=client)
        return
    equivalent = known_hosts.shosts_equiv(site.cluster, site.node)
    files.file(name="Write /etc/ssh/shosts.equiv", path=trusted, content=equivalent)
    files.file(name="Write the ssh client settings", path=client, content=render("access/ssh.conf.j2"))
    if site.node.family.has_selinux:  # confined users may use host-based logins too
        settings.setting(
            name="Allow ssh-keysign in SELinux",
            target="SELinux boolean ssh_keysign",
            read="if selinuxenabled; then getsebool ssh_keysign; else echo 'ssh_keysign --> on'; fi",
            want="ssh_keysign --> on",
            write="setsebool -P ssh_keysign on",
        )
