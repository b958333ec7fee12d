"""Brings a node to what an installed drift check needs there, and takes it away again."""

from __future__ import annotations

import hashlib
from shlex import quote

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.drift import places, texts
from rackwright.drift.baseline import kept_of
from rackwright.drift.declaration import Declaration, read_declaration
from rackwright.drift.on_checker import checker, no_checker
from rackwright.drift.placing import remove_units, textfile_link
from rackwright.drift.program import program
from rackwright.facts.settings import Answer
from rackwright.operations import files, settings, units, users


@deploy("drift")
def drift() -> None:
    """The check as declared; what another mode left is removed."""
    site = site_of()
    declared = read_declaration(site.cluster.path)
    if declared is None:
        return
    asks = site.node.primary and declared.mode == "push" and declared.on == "head"
    files.directory(name="Make the folder of the drift check", path=places.FOLDER)
    files.directory(name="Make its state folder", path=places.HOME)
    files.file(name="Write the program that answers", path=places.PROGRAM, content=program(), mode="755")
    if declared.mode == "push":
        _no_timer(declared.textfiles)
        _answers_ssh(site)
    else:
        _no_ssh(site)
        _timer(declared)
    if asks:
        checker(site, declared)
    elif site.node.primary and not _asks_for_others(site):
        no_checker(site.cluster.name, declared.textfiles)
    _baseline(site)  # last: it fails on a node that has drifted meanwhile


@deploy("drift")
def no_drift() -> None:
    """Nothing of a drift check is left on the node."""
    site = site_of()
    declared = read_declaration(site.cluster.path)
    textfiles = declared.textfiles if declared is not None else places.TEXTFILES
    if site.node.primary and not _asks_for_others(site):
        no_checker(site.cluster.name, textfiles)
    _no_timer(textfiles)
    _no_ssh(site)
    _remove_made_folder()
    files.absent(name="Remove the program that answers", path=places.PROGRAM)
    files.absent(name="Remove what the node is asked", path=places.QUESTIONS)
    files.absent(name="Remove the expected answers", path=places.EXPECTED)
    settings.setting(
        name="Remove the folders of the drift check",
        target=places.FOLDER,
        read=_unless_shared(site, f"[ -e {places.FOLDER} ] || [ -e {places.HOME} ]"),
        want="nothing to remove",
        write=f"rm -rf {places.FOLDER} {places.HOME}",
    )


def _asks_for_others(site: Site) -> bool:
    """Whether this node is the machine of `--on here` as well, which looks after that side itself."""
    marker = f"{places.check_folder(site.cluster.name)}/{places.HERE}"
    found: str | None = host.get_fact(Answer, read=f"[ -e {marker} ] && echo here")
    return found == "here"


def _unless_shared(site: Site, there: str) -> str:
    """Tells whether something is there that this machine does not need to ask another cluster's nodes."""
    own = quote(f"{places.check_folder(site.cluster.name)}/")
    shared = f"ls -d {places.FOLDER}/*/ 2>/dev/null | grep -vqxF {own}"
    return f"if {shared}; then echo nothing to remove; elif {there}; then echo there; else echo nothing to remove; fi"


def _baseline(site: Site) -> None:
    """Questions, and the answers expected: those the node gave when the engine found it in sync."""
    known = kept_of(site.cluster, site.node.name)
    if known is None:
        return  # never seen in sync: the program says that it knows nothing yet
    files.file(
        name="Write what the node is asked",
        path=places.QUESTIONS,
        content=known.questions,
        mode="600",
        sensitive=True,  # shown as a digest: nobody reads a diff of it
    )
    asked = hashlib.sha256((known.questions + program()).encode()).hexdigest()
    settings.setting(
        name="Keep today's answers as the expected ones",
        target="digest of the expected answers",
        read=f"""sed -n 's/^{{"digest": "\\([0-9a-f]*\\)", "asked": "{asked}", .*/\\1/p' {places.EXPECTED}""",
        want=known.digest,
        write=f"{places.PROGRAM} --adopt {known.digest}",
    )


def _answers_ssh(site: Site) -> None:
    """A user whose one key may ask for the check."""
    key = texts.public_key(site.secret(places.KEY_SECRET))
    users.group(name="Make the checking user's group", group=places.USER, system=True)
    users.user(
        name="Make the checking user",
        user=places.USER,
        group=places.USER,
        system=True,
        home=places.HOME,
        shell="/bin/sh",
        create_home=False,
    )
    files.directory(name="Make the folder of its key", path=f"{places.HOME}/.ssh")
    files.file(
        name="Write what its key may do",
        path=places.AUTHORIZED_KEYS,
        content=texts.authorized_keys(site.cluster, key),
    )
    files.file(
        name="Let it run the program as root",
        path=places.SUDOERS,
        content=texts.sudoers(),
        mode="440",
        validate="visudo -cqf %s",
    )


def _no_ssh(site: Site) -> None:
    files.absent(name="Take the right to run the program", path=places.SUDOERS)
    files.absent(name="Take the key", path=f"{places.HOME}/.ssh")
    settings.setting(
        name="Remove the checking user",
        target=f"user {places.USER}",
        read=_unless_shared(site, f"getent passwd {places.USER} >/dev/null"),
        want="nothing to remove",
        write=f"userdel {places.USER} && {{ ! getent group {places.USER} >/dev/null || groupdel {places.USER}; }}",
    )


def _timer(declared: Declaration) -> None:
    unit = places.NODE_UNIT
    textfile_link(declared, places.NODE_METRICS, places.HOME)
    service, timer = f"{places.UNITS}/{unit}.service", f"{places.UNITS}/{unit}.timer"
    files.file(name="Write the service of the check", path=service, content=texts.node_service(declared))
    files.file(name="Write the timer of the check", path=timer, content=texts.node_timer(declared))
    units.unit(name="Run the timer of the check", unit=f"{unit}.timer", restart_on=(timer,), disruptive=False)


def _no_timer(textfiles: str) -> None:
    remove_units(places.NODE_UNIT)
    files.absent(name="Remove the link to its metrics", path=f"{textfiles}/{places.NODE_METRICS}")
    files.absent(name="Remove its metrics", path=f"{places.HOME}/{places.NODE_METRICS}")
    files.absent(name="Remove its memory", path=f"{places.HOME}/last.json")


def _remove_made_folder() -> None:
    settings.setting(
        name="Remove the textfile folder that was made for it",
        target="node_exporter's textfile folder",
        read=f"test -e {places.MADE_TEXTFILES} && echo made || echo 'not ours'",
        want="not ours",
        write=f'rmdir -p --ignore-fail-on-non-empty "$(cat {places.MADE_TEXTFILES})"; '
        f"rm -f {places.MADE_TEXTFILES}",
    )
