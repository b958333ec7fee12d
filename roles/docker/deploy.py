"""Applies the docker role to a node."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.settings import Answer
from rackwright.model.proxy import proxy_variables
from rackwright.operations import files, packages, settings, units, users
from rackwright.operations.docker_archive import docker_archive
from rackwright.operations.registry_files import registry_files
from rackwright.render import render
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.docker.settings import (
    CONF,
    DROP_IN,
    LOGINS,
    STARTED,
    STARTED_READ,
    UNIT,
    daemon_json,
    declared,
    logins,
    loses_containers,
    names,
    needs_restart,
)


@deploy("docker")
def docker(options: DockerOptions) -> None:
    """Settings first, so that the package starts the daemon with them; then the engine and its group."""
    site = site_of()
    if options.source == "docker":
        docker_archive(site, options.repository)
    users.group(name="Create group docker", group="docker", system=True)
    files.directory(name="Create Docker's folder", path="/etc/docker")
    # dockerd gives it 710, so that users cannot read the layers of others
    files.directory(name="Create Docker's data folder", path=options.data_root, mode="710")
    files.file(name="Write daemon.json", path=CONF, content=daemon_json(site.cluster, site.node, options))
    files.directory(name="Create the folder for Docker's unit settings", path=DROP_IN.rpartition("/")[0])
    files.file(
        name="Write Docker's unit settings",
        path=DROP_IN,
        content=render(
            "docker/unit.conf.j2",
            conf=CONF,
            started=STARTED,
            proxy=proxy_variables(site.cluster, site.node),
        ),
    )
    registry_files(options, LOGINS, logins(options, lambda name: site.secret(name).reveal()))
    packages.installed(name="Install Docker", packages=names(site.node, options).packages)
    started: str | None = host.get_fact(Answer, read=STARTED_READ)
    wanted = declared(site.cluster, site.node, options)
    restart = needs_restart(started, wanted)
    units.unit(
        name="Start Docker with its settings",
        unit=UNIT,
        restart_on=(DROP_IN, CONF) if restart else (DROP_IN,),
        reload_on=() if restart else (CONF,),
        disruptive=loses_containers(started, wanted),
    )
    members = ",".join(sorted(options.users))
    settings.setting(
        name="Set the members of group docker",
        target="members of group docker (each is root on this node)",
        read="getent group docker | cut -d: -f4 | tr , '\\n' | sort | paste -sd, | grep . || echo none",
        want=members or "none",
        write=f"gpasswd --members {quote(members)} docker",
    )
