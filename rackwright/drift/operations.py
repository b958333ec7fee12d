"""Operations that nodes and the checker share: the user, units, and metrics for node_exporter."""

from __future__ import annotations

from shlex import quote

from rackwright.drift import paths
from rackwright.drift.declaration import Declaration
from rackwright.operations import files, settings, units, users

_NOTHING = "nothing to remove"


def check_user() -> None:
    """The unprivileged user and its group."""
    users.group(name="Make the checking user's group", group=paths.USER, system=True)
    users.user(
        name="Make the checking user",
        user=paths.USER,
        group=paths.USER,
        system=True,
        home=paths.HOME,
        shell="/bin/sh",
        create_home=False,
    )


def textfile_link(declared: Declaration, name: str, state: str) -> None:
    """node_exporter finds the metrics through a link, so that we need no write access to its folder."""
    folder = quote(declared.textfiles)
    # The exporter's user may own it, and could replace it with a link to a folder owned by root.
    foreign = f'[ -L {folder} ] && [ "$(stat -c %u "$(dirname {folder})")" != 0 ]'
    refusal = quote(f"{declared.textfiles} is a link created by a user other than root; remove it")
    settings.setting(
        name="Make node_exporter's textfile folder",
        target=declared.textfiles,
        read=f"if {foreign}; then echo a foreign link; else test -d {folder} && echo there; fi",
        want="there",
        write=f"if {foreign}; then echo {refusal} >&2; exit 1; fi; mkdir -p {folder} && printf %s {folder} >{paths.MADE_TEXTFILES}",
    )
    metrics = quote(f"{state}/{name}")
    # Until the first check, node_exporter would report a dangling link as a broken file. `set -C` follows no link: the
    # state folder of a checker belongs to the checking user.
    settings.setting(
        name="Create an empty metrics file",
        target="the check's metrics",
        read=f"test -e {metrics} && echo there",
        want="there",
        write=f"set -C; umask 022; : > {metrics}",
    )
    files.link(name="Link the metrics", path=f"{declared.textfiles}/{name}", target=f"{state}/{name}")


def remove_units(unit: str) -> None:
    """A service and its timer, and systemd's state of them."""
    units.unit(
        name=f"Stop {unit}.timer",
        unit=f"{unit}.timer",
        running=False,
        enabled=False,
        disruptive=False,
    )
    files.absent(name=f"Remove {unit}.timer", path=f"{paths.UNITS}/{unit}.timer")
    files.absent(name=f"Remove {unit}.service", path=f"{paths.UNITS}/{unit}.service")
    files.absent(name=f"Remove the stamp of {unit}", path=f"/var/lib/systemd/timers/stamp-{unit}.timer")
    settings.setting(
        name=f"Let systemd forget {unit}",
        target=f"{unit} as systemd knows it",
        read=f"systemctl show -p LoadState --value {unit}.service {unit}.timer | sort -u | xargs",
        want="not-found",
        write=f"systemctl stop {unit}.service; systemctl daemon-reload; "
        f"systemctl reset-failed {unit}.service {unit}.timer 2>/dev/null || :",
    )


def remove_made_textfile_folder() -> None:
    """The textfile folder, if we created it and nothing else is in it."""
    settings.setting(
        name="Remove the textfile folder that was created for it",
        target="node_exporter's textfile folder",
        read=f"test -e {paths.MADE_TEXTFILES} && echo made || echo 'not ours'",
        want="not ours",
        write=f'rmdir -p --ignore-fail-on-non-empty "$(cat {paths.MADE_TEXTFILES})"; '
        f"rm -f {paths.MADE_TEXTFILES}",
    )


def remove_folders(cluster: str) -> None:
    """FOLDER and HOME, unless this machine also checks the nodes of another cluster."""
    settings.setting(
        name="Remove the folders of the drift check",
        target=paths.FOLDER,
        read=_unless_shared(cluster, f"[ -e {paths.FOLDER} ] || [ -e {paths.HOME} ]"),
        want=_NOTHING,
        write=f"rm -rf {paths.FOLDER} {paths.HOME}",
    )


def remove_user(cluster: str) -> None:
    """The unprivileged user, unless this machine also checks the nodes of another cluster."""
    settings.setting(
        name="Remove the checking user",
        target=f"user {paths.USER}",
        read=_unless_shared(cluster, f"getent passwd {paths.USER} >/dev/null"),
        want=_NOTHING,
        write=f"userdel {paths.USER} && {{ ! getent group {paths.USER} >/dev/null || groupdel {paths.USER}; }}",
    )


def _unless_shared(cluster: str, there: str) -> str:
    """A command that prints `there` if `there` succeeds and no other cluster is checked from this machine."""
    own = quote(f"{paths.check_folder(cluster)}/")
    shared = f"ls -d {paths.FOLDER}/*/ 2>/dev/null | grep -vqxF {own}"
    return f"if {shared}; then echo {_NOTHING}; elif {there}; then echo there; else echo {_NOTHING}; fi"
