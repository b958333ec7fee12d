"""A program that serves metrics: its package, certificate, users, command line and unit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from rackwright.data import site_of
from rackwright.exporters import FOLDER, ExporterOptions, drop_in, web_config
from rackwright.operations import files, packages, units
from rackwright.operations.certificates import issue_certificates
from rackwright.textfiles import TEXTFILES

_AROUND_TEXTFILES = str(PurePosixPath(TEXTFILES).parent)


def install_exporter(
    options: ExporterOptions, arguments: Sequence[str] = (), packages_at: tuple[str, ...] | None = None
) -> None:
    """The package and all that the unit reads, the unit itself not yet: `run_exporter` follows, after the role's own files.

    + arguments: of the program, besides its address and its users
    + packages_at: `name=version` of what is installed and held, or nothing; None: the distribution's, at any version
    """
    site = site_of()
    node, what = site.node, options.names(site.node)
    path = options.drop_in(node)
    # before the unit it belongs to: systemd 252 overlooks a folder made after it first saw the unit
    files.directory(
        name=f"Make the folder of {options.role}'s unit settings", path=str(PurePosixPath(path).parent)
    )
    files.file(
        name=f"Write the command line of {options.role}",
        path=path,
        content=drop_in(site.cluster, node, options, arguments),
    )
    if packages_at is None or packages_at:
        packages.installed(
            name=f"Install {options.role}",
            packages=what.packages if packages_at is None else packages_at,
            start_daemons=False,
            hold=packages_at is not None,
        )
    # the package has given it to the user of all exporters, who could then put a link in place of root's textfiles
    files.directory(name=f"Let root own the folder around data of {options.role}", path=_AROUND_TEXTFILES)
    files.directory(name="Make the folder of exporters", path=FOLDER)
    files.directory(
        name=f"Make the folder of {options.role}",
        path=options.folder,
        mode="750",
        group=what.settings["user"],
    )
    issue_certificates(options)  # the package has made the user
    files.file(
        name=f"Write who may read {options.role}",
        path=options.web_config,
        content=web_config(site.cluster, node, options, lambda name: site.secret(name).reveal()),
        mode="640",
        group=what.settings["user"],
        sensitive=True,
    )


def run_exporter(
    options: ExporterOptions, *, restart_on: Sequence[str] = (), reload_on: Sequence[str] = ()
) -> None:
    """Its unit, with further files that it reads when it starts or is reloaded; a restart disturbs no job."""
    node = site_of().node
    units.unit(
        name=f"Run {options.role}",
        unit=options.unit(node),
        restart_on=(options.drop_in(node), *restart_on),
        reload_on=tuple(reload_on),
        disruptive=False,
    )
