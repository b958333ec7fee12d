"""Applies the home role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.quotas import Limits
from rackwright.model.storage import FilesystemKind
from rackwright.node_programs import one_text
from rackwright.operations import files, quotas, settings, units
from rackwright.roles.home import layout, paths
from rackwright.roles.home.options import HomeOptions


@deploy("home")
def home(options: HomeOptions) -> None:
    """Homes and their quotas on the node that creates them; clients only allow their programs to use them."""
    site = site_of()
    makes = layout.made_by(site.cluster, site.node, options)
    if makes:
        for folder in ("/etc/rackwright", "/usr/local/libexec"):
            files.directory(name=f"Create {folder}", path=folder)
        # before the program, which the timer may start at any time: an older one leaves alone what it does not know
        files.file(
            name="Write the list of homes",
            path=paths.SETTINGS,
            content=layout.settings(site.cluster, site.node, options),
        )
        files.file(
            name="Write the program that creates homes",
            path=paths.PROGRAM,
            content=one_text("rackwright.roles.home.node"),
        )
        settings.setting(
            name="Create the homes of declared users",
            target="homes of declared users",
            read=f"{paths.RUN} wrong",
            want=paths.AS_DECLARED,
            write=f"{paths.RUN} make",
        )
    else:
        for path in host.loop((paths.PROGRAM, paths.SETTINGS)):  # type: ignore[no-untyped-call]
            files.absent(name=f"Remove {path}", path=path)
    _members(options if makes else HomeOptions(), layout.mounts(site.cluster, site.node, options))
    for one, _ in host.loop(makes):  # type: ignore[no-untyped-call]
        mounted = layout.quota_on(site.node, one, options)
        if one.quota is not None and mounted is not None:
            quotas.user_quotas(
                name=f"Set the quotas on {one.name}",
                path=mounted,
                default=Limits(*layout.limit(one.quota)),
                users={uid: Limits(*given) for uid, given in layout.limits(site.cluster, one).items()},
            )
    # The targeted policy's boolean for confined programs and homes on NFS. unconfirmed: not tried on a node of that family
    if site.node.family.has_selinux and any(
        one.kind is FilesystemKind.NFS for one in layout.filesystems(site.node)
    ):
        settings.setting(
            name="Allow homes on NFS in SELinux",
            target="SELinux boolean use_nfs_home_dirs",
            read="if selinuxenabled; then getsebool use_nfs_home_dirs; else echo 'use_nfs_home_dirs --> on'; fi",
            want="use_nfs_home_dirs --> on",
            write="setsebool -P use_nfs_home_dirs on",
        )


def _members(options: HomeOptions, mounts: tuple[str, ...]) -> None:
    """The timer that makes homes of new members of groups; without groups there is none."""
    if not options.groups:
        units.unit(
            name="Stop the timer for new group members", unit=paths.TIMER, running=False, enabled=False
        )
    for path, content in host.loop(layout.units(options, mounts).items()):  # type: ignore[no-untyped-call]
        if content is None:
            files.absent(name=f"Remove {path}", path=path)
        else:
            files.file(name=f"Write {path}", path=path, content=content)
    if options.groups:
        units.unit(
            name="Start the timer for new group members",
            unit=paths.TIMER,
            restart_on=(paths.TIMER_PATH,),
            disruptive=False,
        )
