"""Deploys the drift check on a node, and removes it."""

from __future__ import annotations

import hashlib

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.drift import paths, texts
from rackwright.drift.baseline import kept_of
from rackwright.drift.checker_deploy import install_checker, uninstall_checker
from rackwright.drift.declaration import Declaration, read_declaration
from rackwright.drift.operations import (
    check_user,
    remove_folders,
    remove_made_textfile_folder,
    remove_units,
    remove_user,
    textfile_link,
)
from rackwright.drift.program import program
from rackwright.facts.settings import Answer
from rackwright.operations import files, settings, units
from rackwright.textfiles import TEXTFILES


@deploy("drift")
def install() -> None:
    """Install the declared check; remove what another mode left."""
    site = site_of()
    declared = read_declaration(site.cluster.path)
    if declared is None:
        return
    is_checker = site.node.primary and declared.mode == "push" and declared.on == "head"
    files.directory(name="Make the folder of the drift check", path=paths.FOLDER)
    files.directory(name="Make its state folder", path=paths.HOME)
    files.file(name="Write the program of the check", path=paths.PROGRAM, content=program(), mode="755")
    if declared.mode == "push":
        _remove_timer(declared.textfiles)
        _allow_ssh(site)
    else:
        _remove_ssh(site)
        _run_timer(declared)
    if is_checker:
        install_checker(site, declared)
    elif site.node.primary and not _checker_from_here(site):
        uninstall_checker(site.cluster.name, declared.textfiles)
    _baseline(site)  # last: it fails on a node that has drifted in the meantime


@deploy("drift")
def uninstall() -> None:
    """Remove everything of a drift check from the node."""
    site = site_of()
    declared = read_declaration(site.cluster.path)
    textfiles = declared.textfiles if declared is not None else TEXTFILES
    if site.node.primary and not _checker_from_here(site):
        uninstall_checker(site.cluster.name, textfiles)
    _remove_timer(textfiles)
    _remove_ssh(site)
    remove_made_textfile_folder()
    files.absent(name="Remove the program of the check", path=paths.PROGRAM)
    files.absent(name="Remove the questions", path=paths.QUESTIONS)
    files.absent(name="Remove the expected answers", path=paths.EXPECTED)
    remove_folders(site.cluster.name)


def _checker_from_here(site: Site) -> bool:
    """Whether this node is also the checker of `--on here`, which is installed and removed separately."""
    marker = f"{paths.check_folder(site.cluster.name)}/{paths.INSTALLED_FROM_HERE}"
    found: str | None = host.get_fact(Answer, read=f"[ -e {marker} ] && echo here")
    return found == "here"


def _baseline(site: Site) -> None:
    """Questions, and the expected answers: those that the node gave when the engine found it in sync."""
    known = kept_of(site.cluster, site.node.name)
    if known is None:
        return  # never seen in sync: the program reports that nothing is expected yet
    files.file(
        name="Write the questions",
        path=paths.QUESTIONS,
        content=known.questions,
        mode="600",
        sensitive=True,  # shown as a digest: its diff would be useless
    )
    asked = hashlib.sha256((known.questions + program()).encode()).hexdigest()
    settings.setting(
        name="Store the current answers as the expected ones",
        target="digest of the expected answers",
        read=f"""sed -n 's/^{{"digest": "\\([0-9a-f]*\\)", "asked": "{asked}", .*/\\1/p' {paths.EXPECTED}""",
        want=known.digest,
        write=f"{paths.PROGRAM} --adopt {known.digest}",
    )


def _allow_ssh(site: Site) -> None:
    """A user whose only key may run the check and nothing else."""
    key = texts.public_key(site.secret(paths.KEY_SECRET))
    check_user()
    files.directory(name="Make the folder of its key", path=f"{paths.HOME}/.ssh")
    files.file(
        name="Restrict its key to the check",
        path=paths.AUTHORIZED_KEYS,
        content=texts.authorized_keys(site.cluster, key),
    )
    files.file(
        name="Let it run the program as root",
        path=paths.SUDOERS,
        content=texts.sudoers(),
        mode="440",
        validate="visudo -cqf %s",
    )


def _remove_ssh(site: Site) -> None:
    files.absent(name="Remove the right to run the program", path=paths.SUDOERS)
    files.absent(name="Remove the key", path=f"{paths.HOME}/.ssh")
    remove_user(site.cluster.name)


def _run_timer(declared: Declaration) -> None:
    unit = paths.NODE_UNIT
    textfile_link(declared, paths.NODE_METRICS, paths.HOME)
    service, timer = f"{paths.UNITS}/{unit}.service", f"{paths.UNITS}/{unit}.timer"
    files.file(name="Write the service of the check", path=service, content=texts.node_service(declared))
    files.file(name="Write the timer of the check", path=timer, content=texts.node_timer(declared))
    units.unit(name="Run the timer of the check", unit=f"{unit}.timer", restart_on=(timer,), disruptive=False)


def _remove_timer(textfiles: str) -> None:
    remove_units(paths.NODE_UNIT)
    files.absent(name="Remove the link to its metrics", path=f"{textfiles}/{paths.NODE_METRICS}")
    files.absent(name="Remove its metrics", path=f"{paths.HOME}/{paths.NODE_METRICS}")
    files.absent(name="Remove its state", path=f"{paths.HOME}/last.json")
