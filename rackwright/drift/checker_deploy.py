"""Deploys the checker of push mode: on the primary head (`--on head`), or on this machine (`--on here`)."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.drift import paths
from rackwright.drift.checker_files import CheckerFile, checker_files, checker_folders, expected_path
from rackwright.drift.declaration import Declaration
from rackwright.drift.operations import (
    check_user,
    remove_folders,
    remove_made_textfile_folder,
    remove_units,
    remove_user,
    textfile_link,
)
from rackwright.facts.settings import Answer
from rackwright.operations import files, units


@deploy("drift")
def install_here(declared: Declaration) -> None:
    """This machine becomes the checker."""
    site = site_of()
    check_user()
    for path in (paths.FOLDER, paths.HOME):
        files.directory(name=f"Make {path}", path=path)
    marker = CheckerFile(f"{paths.check_folder(site.cluster.name)}/{paths.INSTALLED_FROM_HERE}")
    install_checker(site, declared, marker)


@deploy("drift")
def uninstall_here(declared: Declaration) -> None:
    """This machine is no longer a checker. The user stays while it checks another cluster or is a node itself."""
    cluster = site_of().cluster.name
    uninstall_checker(cluster, declared.textfiles)
    used: str | None = host.get_fact(
        Answer, read=f"ls -d {paths.FOLDER}/*/ {paths.QUESTIONS} | grep -vxF {paths.check_folder(cluster)}/"
    )
    if used is None:
        remove_made_textfile_folder()
        remove_folders(cluster)
        remove_user(cluster)


def install_checker(site: Site, declared: Declaration, *more: CheckerFile) -> None:
    """The checker's files, its units, and a running timer."""
    cluster = site.cluster
    for folder in host.loop(checker_folders(cluster)):  # type: ignore[no-untyped-call]
        files.directory(
            name=f"Make {folder.path}",
            path=folder.path,
            mode=folder.mode,
            owner=folder.owner,
            group=folder.group,
        )
    there: str | None = host.get_fact(Answer, read=f"cat {expected_path(cluster)}")
    for file in host.loop([*more, *checker_files(cluster, declared, site.secret, there)]):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Write {file.path}",
            path=file.path,
            content=file.content,
            mode=file.mode,
            owner=file.owner,
            group=file.group,
            sensitive=file.sensitive,
        )
    textfile_link(declared, paths.metrics_name(cluster.name), paths.state_of(cluster.name))
    unit = paths.check_unit(cluster.name)
    units.unit(
        name="Run the timer of the checker",
        unit=f"{unit}.timer",
        restart_on=(f"{paths.UNITS}/{unit}.timer",),
        disruptive=False,
    )


def uninstall_checker(cluster: str, textfiles: str) -> None:
    """Remove everything of this cluster's checker."""
    remove_units(paths.check_unit(cluster))
    link = f"{textfiles}/{paths.metrics_name(cluster)}"
    files.absent(name="Remove the link to the checker's metrics", path=link)
    files.absent(name="Remove the checker's files", path=paths.check_folder(cluster))
    files.absent(name="Remove the checker's state of the cluster", path=paths.state_of(cluster))
