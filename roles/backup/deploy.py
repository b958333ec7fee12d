"""Applies the backup role to a head."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.backup import places
from rackwright.data import Site, site_of
from rackwright.operations import files, packages, settings, units
from rackwright.osfamily.names import names
from rackwright.roles.backup import texts
from rackwright.roles.backup.options import BackupOptions
from rackwright.secrets.store import store_of

FOLDERS = {
    places.FOLDER: "755",
    places.STATE: "700",
    places.SITE: "700",
    places.METRICS_FOLDER: "755",
    places.PROGRAM.rpartition("/")[0]: "755",
}
"""Mode by path; root owns them all."""
# systemd ignores a line that it cannot read, and the timer would never elapse
_CALENDAR = 'systemd-analyze calendar "$(sed -n s/^OnCalendar=//p %s)" >/dev/null'


@deploy("backup")
def backup(options: BackupOptions) -> None:
    """After the roles whose state is backed up; the first backup is made at once."""
    site = site_of()
    store = None if site.offline else store_of(site.cluster)
    recipients = texts.recipients_of(store, options)
    packages.installed(name="Install age", packages=names(site.node.family, "backup").packages)
    for path, mode in host.loop(FOLDERS.items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {path}", path=path, mode=mode)
    for name, text in host.loop(texts.site_files(site.cluster, store).items()):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Copy {name} for backups",
            path=f"{places.SITE}/{name}",
            content=text,
            mode="600",
            sensitive=True,
        )
    _programs(site, options, recipients)
    units.unit(
        name="Start the backup timer",
        unit=places.TIMER,
        restart_on=(f"{texts.UNITS}/{places.TIMER}",),
        disruptive=False,
    )
    settings.setting(
        name="Make the first backup",
        target="the first backup",
        read=f"test -s {quote(places.LAST)} && echo tried",
        want="tried",
        write=f"{quote(places.PROGRAM)} --first",
    )


def _programs(site: Site, options: BackupOptions, recipients: frozenset[str]) -> None:
    cluster, node = site.cluster, site.node
    files.file(name="Write the backup program", path=places.PROGRAM, content=texts.program(), mode="755")
    files.file(
        name="Write the backup recipients",
        path=places.RECIPIENTS,
        content=texts.recipients_file(recipients),
    )
    files.file(
        name="Write the backup settings",
        path=places.SETTINGS,
        content=texts.settings(cluster, node, options, recipients),
    )
    files.file(
        name="Write the backup service",
        path=f"{texts.UNITS}/{places.SERVICE}",
        content=texts.service(cluster, options),
    )
    files.file(
        name="Write the backup timer",
        path=f"{texts.UNITS}/{places.TIMER}",
        content=texts.timer(cluster, options),
        validate=_CALENDAR,
    )
