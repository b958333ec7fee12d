"""Applies the ray role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import files, packages, units, users
from rackwright.operations.certificates import issue_certificates
from rackwright.operations.python_environments import locked_environment
from rackwright.osfamily.names import names
from rackwright.roles.ray import places, texts
from rackwright.roles.ray.options import RayOptions


@deploy("ray")
def ray(options: RayOptions) -> None:
    """User, environment, files; on the head Redis; then Ray's unit, which reads them all."""
    site = site_of()
    users.group(name="Make Ray's group", group=places.USER, gid=options.uid)
    users.user(
        name="Make Ray's user",
        user=places.USER,
        uid=options.uid,
        group=places.USER,
        shell="/usr/sbin/nologin",
        home=options.state,
        system=True,
        create_home=False,
    )
    locked_environment(options)
    for path in host.loop((places.ETC, places.PROGRAMS)):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {path}", path=path)
    files.directory(  # Ray opens the folders that it makes in it to everyone
        name="Create the folder of Ray's sessions",
        path=options.state,
        mode="750",
        owner=places.USER,
        group=places.USER,
    )
    issue_certificates(options)
    programs = texts.programs()
    for path, text in host.loop(programs.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode="755")
    if options.is_head(site.node):
        _redis(site, options)
    written = texts.files(site.cluster, site.node, options)
    for path, text in host.loop(written.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
    secret = texts.secret_files(site.node, options, lambda name: site.secret(name).reveal())
    for path, text in host.loop(secret.items()):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Write {path}", path=path, content=text, mode="640", group=places.USER, sensitive=True
        )
    chains = [one.chain for one in options.certificates(site.cluster, site.node)]
    started_with = [path for path in (*written, *programs) if path not in (places.PROVE, texts.TMPFILES)]
    units.unit(
        name="Start Ray",
        unit=options.unit(site.node),
        restart_on=(*started_with, *secret, *chains, f"{places.ENVIRONMENTS}/current/requirements.txt"),
    )


@deploy("ray")
def leaves(options: RayOptions) -> None:
    """A node whose workload is another one now runs no raylet; Ray's environment stays."""
    units.unit(name="Stop Ray, which has no node here", unit=places.WORKER_UNIT, running=False, enabled=False)


def _redis(site: Site, options: RayOptions) -> None:
    what = names(site.node.family, "redis")
    packages.installed(name="Install Redis", packages=what.packages, start_daemons=False)
    units.unit(name="Mask the package's own Redis", unit=what.unit or "", masked=True)
    user = what.settings["user"]
    files.directory(
        name="Create the folder of Redis' data", path=places.REDIS_DATA, mode="750", owner=user, group=user
    )
    files.file(
        name="Write Redis' settings",
        path=places.REDIS_CONF,
        content=texts.redis_conf(options, lambda name: site.secret(name).reveal()),
        mode="640",
        group=user,
        sensitive=True,
    )
    units.unit(name="Start Redis", unit=places.REDIS_UNIT, restart_on=(places.REDIS_CONF,))
