"""BeeGFS' servers on a node: settings, folders prepared once, daemons."""

from __future__ import annotations

from pathlib import PurePosixPath

from pyinfra.context import host

from rackwright.data import Site
from rackwright.operations import files, settings, units
from rackwright.operations.certificates import issue_certificates
from rackwright.roles.beegfs import texts
from rackwright.roles.beegfs.options import AUTH, FOLDER, BeegfsOptions, drop_in


def servers(site: Site, options: BeegfsOptions) -> None:
    """The management daemon, the metadata server, the storage server: those that the node runs."""
    services = options.services(site.node)
    issue_certificates(options)
    for path, content in host.loop(texts.server_files(site.cluster, site.node, options).items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Make the folder of {path}", path=str(PurePosixPath(path).parent))
        files.file(name=f"Write {path}", path=path, content=content)
    if "mgmtd" in services:
        _mgmtd(site, options)
    for service, targets in host.loop(texts.targets(site.node, options).items()):  # type: ignore[no-untyped-call]
        for target in host.loop(targets):  # type: ignore[no-untyped-call]
            settings.setting(
                name=f"Prepare {target.folder} for BeeGFS",
                target=target.folder,
                read=texts.prepared(target),
                want="prepared",
                write=texts.prepare(service, target),
            )
        units.unit(
            name=f"Run beegfs-{service}",
            unit=f"beegfs-{service}.service",
            restart_on=(f"{FOLDER}/beegfs-{service}.conf", drop_in(service), AUTH),
        )


def _mgmtd(site: Site, options: BeegfsOptions) -> None:
    settings.setting(
        name="Make the management daemon's database",
        target=texts.DATABASE,
        read=f"[ -s {texts.DATABASE} ] && echo there",
        want="there",
        write=texts.INIT,
    )
    chains = tuple(one.chain for one in options.certificates(site.cluster, site.node))
    units.unit(
        name="Run beegfs-mgmtd",
        unit="beegfs-mgmtd.service",
        restart_on=(texts.MGMTD, AUTH, *chains),
    )
