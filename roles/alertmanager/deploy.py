"""Applies the alertmanager role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.model.monitoring import SERVER_SECRET
from rackwright.operations import files, settings
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.roles.alertmanager import texts
from rackwright.roles.alertmanager.options import AlertmanagerOptions
from rackwright.roles.alertmanager.settings import alertmanager_yml


@deploy("alertmanager")
def alertmanager(options: AlertmanagerOptions) -> None:
    """The package, what its settings name, then the settings, checked before they land."""
    site = site_of()
    cluster, node = site.cluster, site.node
    user = options.names(node).settings["user"]
    install_exporter(options, texts.arguments(cluster, node, options))
    files.directory(
        name="Create the folder for silences",
        path=options.names(node).paths["data"],
        mode="750",
        owner=user,
        group=user,
    )
    _secrets(site, options, user)
    readable = texts.readable_files(cluster, node, options)
    for path, text in host.loop(readable.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
    gossip = texts.gossip_file(options)
    if gossip not in readable:
        files.absent(name="Remove the certificates for the pair", path=gossip)
    conf = texts.conf(node, options)
    files.file(
        name="Write Alertmanager's settings",
        path=conf,
        content=alertmanager_yml(cluster, node, options),
        validate="amtool check-config %s",
    )
    run_exporter(
        options,
        restart_on=(gossip,) if gossip in readable else (),
        reload_on=(conf, texts.notifications_file(options)),
    )


def _secrets(site: Site, options: AlertmanagerOptions, user: str) -> None:
    files.file(
        name="Write the password root uses for Alertmanager",
        path=texts.password_file(options),
        content=site.secret(SERVER_SECRET).reveal(),
        mode="600",
        sensitive=True,
    )
    folder = texts.secrets_folder(options)
    files.directory(name="Create the folder for secrets", path=folder, mode="750", group=user)
    for secret in host.loop(options.supplied_secrets):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Write the secret {secret}",
            path=texts.secret_file(options, secret),
            content=site.secret(secret).reveal(),
            mode="640",
            group=user,
            sensitive=True,
        )
    settings.setting(
        name="Remove secrets of former receivers",
        target=folder,
        read=f"found=$({texts.strange_secrets(options)}); echo ${{found:-none}}",
        want="none",
        write=texts.remove_strange_secrets(options),
    )
