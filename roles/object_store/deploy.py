"""Applies the object_store role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.facts.settings import Answer
from rackwright.operations import files, packages, settings, units
from rackwright.osfamily.names import names
from rackwright.roles.object_store import texts
from rackwright.roles.object_store.options import UNITS, ObjectStoreOptions


@deploy("object_store")
def object_store(options: ObjectStoreOptions) -> None:
    """Tools, what login shells have, and a service for each mounted bucket."""
    site = site_of()
    for software in host.loop(options.software):  # type: ignore[no-untyped-call]
        packages.installed(name=f"Install {software}", packages=names(site.node.family, software).packages)
    files.file(
        name="Set the object store endpoints in login shells",
        path=texts.PROFILE,
        content=texts.profile(site.node, options),
    )
    wrapper = texts.wrapper(site.node, options)
    if wrapper is None:
        files.absent(name=f"Remove {texts.WRAPPER}", path=texts.WRAPPER, marker=texts.MARKER)
    else:
        files.file(
            name="Hide AWS variables from rclone",
            path=texts.WRAPPER,
            content=wrapper,
            mode="755",
            marker=texts.MARKER,
        )
    there: str | None = host.get_fact(Answer, read=texts.of_ours())
    for name in host.loop(texts.leftovers(there, options)):  # type: ignore[no-untyped-call]
        # by a separate command: a plan shows the text of a removed file, and this one holds keys
        settings.setting(
            name=f"Remove {name}, no longer declared",
            target=f"{name}.service",
            read=texts.present(name),
            want="gone",
            write=texts.remove(name),
            disruptive=True,
        )
    for path in host.loop(options.mounts):  # type: ignore[no-untyped-call]
        _mount(site, options, path)


def _mount(site: Site, options: ObjectStoreOptions, path: str) -> None:
    mount, unit = options.mounts[path], options.unit_of(path)
    keys = texts.keys_path(options, path)
    for folder, mode in ((texts.FOLDER.rpartition("/")[0], "755"), (texts.FOLDER, "700")):
        files.directory(name=f"Create {folder}", path=folder, mode=mode)
    files.file(
        name=f"Write the keys for {path}",
        path=keys,
        content=texts.keys(mount, lambda secret: site.secret(secret).reveal()),
        mode="600",
        sensitive=True,
    )
    text = texts.unit(site.node, options, path)
    files.file(name=f"Write the service for {path}", path=f"{UNITS}/{unit}", content=text)
    if mount.cache is not None:
        files.directory(name=f"Create {mount.cache}", path=mount.cache, mode="700")
    units.unit(name=f"Mount {path}", unit=unit, restart_on=(keys, f"{UNITS}/{unit}"))
