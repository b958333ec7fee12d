"""Applies the logs role to a node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from pyinfra.api.deploy import deploy
from pyinfra.api.exceptions import OperationError
from pyinfra.context import host

from rackwright.certificates.read import pem
from rackwright.data import Site, site_of
from rackwright.logs import gate, keeper, objects
from rackwright.model.services import IssuesCertificates
from rackwright.operations import files, packages, settings, units
from rackwright.operations.certificates import issue_certificates
from rackwright.operations.package_archive import package_archive
from rackwright.osfamily.names import names
from rackwright.roles.logs import loki_texts, paths, search_texts, texts
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.stores import ElasticStore, JournalStore, LokiStore, OpensearchStore, SearchStore

_OF_SERVER = (paths.SOCKET, paths.GATE_UNIT, paths.RECEIVER_UNIT, paths.KEEPER_TIMER)


@deploy("logs")
def logs(options: LogsOptions) -> None:
    """What a node sends with; on the server, where lines are kept."""
    site = site_of()
    files.directory(name="Create the folder for logs", path=paths.FOLDER)
    _write(texts.mark_files())
    units.unit(
        name="Start time marks in the journal",
        unit=paths.MARK_TIMER,
        restart_on=(f"{paths.UNITS}/{paths.MARK_TIMER}",),
        disruptive=False,
    )
    _central_journal(site, options)
    _loki(site, options)
    _elastic(site, options)
    _opensearch(site, options)


def _central_journal(site: Site, options: LogsOptions) -> None:
    store = options.store
    if not isinstance(store, JournalStore):
        _leave(paths.UPLOAD)
        _run_none(*_OF_SERVER)
        return
    packages.installed(
        name="Install systemd-journal-remote",
        packages=names(site.node.family, "journal-remote").packages,
        start_daemons=False,
    )
    for unit in host.loop((paths.PACKAGED_SOCKET, paths.PACKAGED_REMOTE)):  # type: ignore[no-untyped-call]
        units.unit(name=f"Mask {unit}", unit=unit, masked=True, disruptive=False)
    _trust(site)
    issue_certificates(options)  # the package has made the receiver's user
    if options.is_server(site.node):
        _receive(site, options, store)
    else:
        _run_none(*_OF_SERVER)
    _send(site, options)


def _write(contents: Mapping[str, str], mode: str = "644") -> None:
    for path, content in host.loop(contents.items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create the folder for {path}", path=str(PurePosixPath(path).parent))
        files.file(name=f"Write {path}", path=path, content=content, mode=mode)


def _leave(unit: str) -> None:
    """A packaged unit that the role used for another store, recognised by rackwright's drop-in."""
    drop_in = paths.drop_in(unit)
    settings.setting(
        name=f"Stop using {unit}",
        target=f"{unit} as the role logs had it",
        read=f"test -e {drop_in} && echo there || echo gone",
        want="gone",
        write=f"systemctl disable --now {unit} && rm -f {drop_in} && systemctl daemon-reload",
    )


def _run_none(*unwanted: str) -> None:
    """Rackwright's units for another store, or for the server where this node was it."""
    for unit in host.loop(unwanted):  # type: ignore[no-untyped-call]
        units.unit(name=f"Stop {unit}", unit=unit, running=False, enabled=False, disruptive=False)


def _trust(site: Site) -> None:
    """The site's CA alone: what else the site trusts must not send lines."""
    ca = site.node.offers(IssuesCertificates)
    if ca is None:
        raise OperationError(f"no role issues certificates for {site.node.name}")
    text = texts.OFFLINE
    if not site.offline:
        text = pem(ca.issuer(site.cluster, site.secret(ca.key_secret).reveal()).certificate)
    files.file(name="Write the list of nodes that may send logs", path=paths.CA, content=text, sensitive=True)


def _receive(site: Site, options: LogsOptions, store: JournalStore) -> None:
    _write(texts.programs(), mode="755")
    _write(texts.server_files(site.cluster, site.node, store))
    units.unit(
        name="Start receiving logs",
        unit=paths.RECEIVER_UNIT,
        restart_on=(paths.REMOTE_CONF, f"{paths.UNITS}/{paths.RECEIVER_UNIT}"),
        disruptive=False,
    )
    units.unit(
        name="Start the log receiver",
        unit=paths.SOCKET,
        restart_on=(f"{paths.UNITS}/{paths.SOCKET}",),
        disruptive=False,
    )
    units.unit(
        name="Start the log gate",
        unit=paths.GATE_UNIT,
        running=None,  # the socket starts it
        enabled=None,
        restart_on=(
            gate.SETTINGS,
            paths.GATE,
            f"{paths.UNITS}/{paths.GATE_UNIT}",
            paths.CA,
            paths.SERVER_CHAIN,
        ),
        disruptive=False,
    )
    for path in host.loop((paths.AUDIT, keeper.STATE)):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {path}", path=path, mode="700")
    _write(texts.keeper_files(site.cluster, options, store))
    units.unit(
        name="Start the timer that limits the central journal",
        unit=paths.KEEPER_TIMER,
        restart_on=(f"{paths.UNITS}/{paths.KEEPER_TIMER}",),
        disruptive=False,
    )


def _send(site: Site, options: LogsOptions) -> None:
    written = texts.sender_files(site.cluster, options)
    _write(written)
    units.unit(
        name="Start sending the journal",
        unit=paths.UPLOAD,
        restart_on=(*written, paths.CA, paths.SENDER_CHAIN),
        disruptive=False,
        retries=True,  # the server may come up later
    )


def _loki(site: Site, options: LogsOptions) -> None:
    """Alloy on every node, Loki on the server, both from the declared archive and no other."""
    store, node = options.store, site.node
    if not isinstance(store, LokiStore):
        _leave(paths.ALLOY_UNIT)
        _leave(paths.LOKI_UNIT)
        return
    if store.archive is not None:
        package_archive(site, "grafana", store.archive)
    packages.installed(
        name="Install Alloy and, on the server, Loki",
        packages=options.pinned(node),
        hold=True,
        start_daemons=False,
    )
    _trust(site)
    issue_certificates(options)  # the packages have made their users
    if options.is_server(node):
        loki = names(node.family, "loki")
        user = loki.settings["user"]
        files.directory(name="Create Loki's folder", path=store.folder, mode="750", owner=user, group=user)
        files.file(
            name="Write Loki's settings",
            path=loki.paths["conf"],
            content=loki_texts.loki_config(site.cluster, node, options, store),
            validate="loki -config.file=%s -verify-config",
        )
        drop_in = paths.drop_in(paths.LOKI_UNIT)
        _write({drop_in: loki_texts.loki_unit()})
        units.unit(
            name="Start Loki",
            unit=paths.LOKI_UNIT,
            restart_on=(loki.paths["conf"], drop_in, paths.CA, paths.SERVER_CHAIN),
            disruptive=False,
        )
    else:
        _leave(paths.LOKI_UNIT)
    _alloy(site, options)


def _alloy(site: Site, options: LogsOptions) -> None:
    """What sends a node's journal to Loki."""
    node = site.node
    conf, drop_in = names(node.family, "alloy").paths["conf"], paths.drop_in(paths.ALLOY_UNIT)
    _write({drop_in: loki_texts.alloy_unit()})
    files.file(
        name="Write the log sender's settings",
        path=conf,
        content=loki_texts.alloy_config(site.cluster, node, options),
        validate="alloy fmt %s >/dev/null",
    )
    units.unit(
        name="Start sending the journal with Alloy",
        unit=paths.ALLOY_UNIT,
        restart_on=(conf, drop_in, paths.CA, paths.SENDER_CHAIN),
        disruptive=False,
    )


def _elastic(site: Site, options: LogsOptions) -> None:
    """Filebeat on every node; on the server what sets up the cluster."""
    store, node = options.store, site.node
    if not isinstance(store, ElasticStore):
        _leave(paths.FILEBEAT_UNIT)
        return
    if store.archive is not None:
        package_archive(site, "elastic", store.archive)
    packages.installed(name="Install Filebeat", packages=options.pinned(node), hold=True, start_daemons=False)
    _set_up_search(site, options, store)
    conf, drop_in = names(node.family, "filebeat").paths["conf"], paths.drop_in(paths.FILEBEAT_UNIT)
    _write({drop_in: search_texts.filebeat_unit()})
    files.file(
        name="Write the log sender's settings",
        path=conf,
        content=search_texts.filebeat_yml(node, store, lambda name: site.secret(name).reveal()),
        mode="600",
        sensitive=True,
        validate="filebeat test config -c %s >/dev/null",
    )
    units.unit(
        name="Start sending the journal with Filebeat",
        unit=paths.FILEBEAT_UNIT,
        restart_on=(conf, drop_in),
        disruptive=False,
    )


def _opensearch(site: Site, options: LogsOptions) -> None:
    """rsyslog on every node; on the server what sets up the cluster."""
    store, node = options.store, site.node
    if not isinstance(store, OpensearchStore):
        _run_none(paths.RSYSLOG_UNIT)
        return
    packages.installed(
        name="Install the OpenSearch output of rsyslog",
        packages=names(node.family, "rsyslog-elasticsearch").packages,
        start_daemons=False,
    )
    _set_up_search(site, options, store)
    unit = f"{paths.UNITS}/{paths.RSYSLOG_UNIT}"
    _write({unit: search_texts.rsyslog_unit(node)})
    files.directory(
        name="Create the folder for rsyslog's queue", path=search_texts.RSYSLOG_FOLDER, mode="700"
    )
    files.file(
        name="Write the log sender's settings",
        path=paths.RSYSLOG_CONF,
        content=search_texts.rsyslog_conf(node, store, lambda name: site.secret(name).reveal()),
        mode="600",
        sensitive=True,
        validate="rsyslogd -N1 -f %s",
    )
    units.unit(
        name="Start sending the journal with rsyslog",
        unit=paths.RSYSLOG_UNIT,
        restart_on=(paths.RSYSLOG_CONF, unit),
        disruptive=False,
    )


def _set_up_search(site: Site, options: LogsOptions, store: SearchStore) -> None:
    """Templates come before the first line: a data stream made without them would have fields of any type."""
    if not options.is_server(site.node):
        return
    _write({paths.SEARCH_PROGRAM: search_texts.objects_program()}, mode="755")
    files.file(
        name="Write the login that sets up the search cluster",
        path=paths.SEARCH_LOGIN,
        content=search_texts.login(store, lambda name: site.secret(name).reveal()),
        mode="600",
        sensitive=True,
    )
    _write(
        {
            objects.SETTINGS: search_texts.objects_settings(site.cluster, options, store),
            paths.SAVED_OBJECTS: search_texts.saved_ndjson(store),
        }
    )
    settings.setting(
        name="Set up the search cluster",
        target="templates, pipeline, policies and saved objects",
        read=f"{paths.SEARCH_PROGRAM} --check",
        want=objects.AS_DECLARED,
        write=f"{paths.SEARCH_PROGRAM} --apply",
    )
