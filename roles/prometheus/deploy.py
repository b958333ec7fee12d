"""Applies the prometheus role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import files
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.roles.prometheus import texts
from rackwright.roles.prometheus.options import PrometheusOptions


@deploy("prometheus")
def prometheus(options: PrometheusOptions) -> None:
    """The package, targets and rules, then the settings that name them, checked before they land."""
    site = site_of()
    cluster, node = site.cluster, site.node
    install_exporter(options, texts.arguments(cluster, node, options))
    _passwords(site, options)
    files.directory(
        name="Create the folder for samples",
        path=options.samples,
        mode="750",
        owner="prometheus",
        group="prometheus",
    )
    files.directory(name="Create the folder for targets and rules", path=texts.folder(node, options))
    targets = texts.target_files(cluster, node, options)
    for path, text in host.loop(targets.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
    rules = texts.rule_files(cluster, node, options)
    for path, text in host.loop(rules.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, validate="promtool check rules %s")
    conf = texts.conf(node, options)
    files.file(
        name="Write Prometheus' settings",
        path=conf,
        content=texts.config_yml(cluster, node, options),
        validate="promtool check config %s",
    )
    run_exporter(options, reload_on=(conf, *rules, *targets))


def _passwords(site: Site, options: PrometheusOptions) -> None:
    user = options.names(site.node).settings["user"]
    wanted = {texts.password_file(secret): secret for secret in options.secrets}
    wanted |= {texts.login_file(login): login.stored_as for login in options.logins}
    for path, secret in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Write {path}",
            path=path,
            content=site.secret(secret).reveal(),
            mode="640",
            group=user,
            sensitive=True,
        )
