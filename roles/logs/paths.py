"""Where the files of the logs role are, on every node and on the server."""

from __future__ import annotations

from typing import Any, Literal

from rackwright.logs import keeper
from rackwright.logs.entries import MARK_UNIT
from rackwright.roles.logs.stores import ElasticStore, JournalStore, LokiStore, OpensearchStore

FOLDER = "/etc/rackwright/logs"
CA = f"{FOLDER}/ca.crt"
"""The site's CA alone: who may send, and whom senders trust."""
SENDER_KEY, SENDER_CHAIN = f"{FOLDER}/sender.key", f"{FOLDER}/sender.crt"
SERVER_KEY, SERVER_CHAIN = f"{FOLDER}/server.key", f"{FOLDER}/server.crt"

UNITS = "/etc/systemd/system"
DROP_IN = "90-rackwright.conf"
UPLOAD = "systemd-journal-upload.service"
UPLOAD_CONF = f"/etc/systemd/journal-upload.conf.d/{DROP_IN}"
REMOTE_CONF = f"/etc/systemd/journal-remote.conf.d/{DROP_IN}"
PACKAGED_SOCKET, PACKAGED_REMOTE = "systemd-journal-remote.socket", "systemd-journal-remote.service"
"""The distribution's, which accept anyone where systemd was built without GnuTLS; rackwright's replace them."""
SOCKET, GATE_UNIT = "rackwright-logs-gate.socket", "rackwright-logs-gate.service"
RECEIVER_UNIT = "rackwright-logs-receiver.service"
GATE = "/usr/libexec/rackwright/logs-gate"
RECEIVER_ADDRESS, RECEIVER_PORT = "127.0.0.1", 19531
"""In a separate network namespace."""
GATE_STATE = "rackwright-logs-gate"
SOURCES = f"/var/lib/{GATE_STATE}/sources.json"
JOURNALS = "/var/log/journal/remote"
"""Where systemd-journal-remote keeps files by itself, and `journalctl --merge` finds them."""
AUDIT = "/var/log/rackwright-audit"
KEEPER = "/usr/libexec/rackwright/logs-keeper"
KEEPER_UNIT, KEEPER_TIMER = "rackwright-logs-keeper.service", "rackwright-logs-keeper.timer"
MARK_TIMER = "rackwright-logs-mark.timer"
LOKI_GRPC = 9095
"""Loki's own default (server.grpc_listen_port)."""
ALLOY_UNIT, LOKI_UNIT, FILEBEAT_UNIT = "alloy.service", "loki.service", "filebeat.service"
RSYSLOG_UNIT = "rackwright-logs-rsyslog.service"
RSYSLOG_CONF = f"{FOLDER}/rsyslog.conf"
SEARCH_PROGRAM = "/usr/libexec/rackwright/logs-objects"
SEARCH_LOGIN = f"{FOLDER}/manages.json"
SAVED_OBJECTS = f"{FOLDER}/saved-objects.ndjson"


def drop_in(unit: str) -> str:
    """Our settings of a unit."""
    return f"{UNITS}/{unit}.d/{DROP_IN}"


OWN_UNITS = (MARK_UNIT, MARK_TIMER, SOCKET, GATE_UNIT, RECEIVER_UNIT, KEEPER_UNIT, KEEPER_TIMER, RSYSLOG_UNIT)
UNIT_FILES = (
    *(f"{UNITS}/{unit}" for unit in OWN_UNITS),
    *map(drop_in, (UPLOAD, ALLOY_UNIT, LOKI_UNIT, FILEBEAT_UNIT)),
)
"""All that the role writes below `UNITS`, with any store."""


def reader(
    store: JournalStore | LokiStore | ElasticStore | OpensearchStore, url: str
) -> tuple[Literal["journal", "loki", "search"], dict[str, Any]]:
    """Kind of rackwright.logs' reader, and what it has to know on the server."""
    if isinstance(store, JournalStore):
        return "journal", {"folder": JOURNALS, "sources": SOURCES, "audit": AUDIT, "last": keeper.LAST}
    if isinstance(store, LokiStore):
        return "loki", {"url": url, "ca": CA, "key": SENDER_KEY, "certificate": SENDER_CHAIN}
    return "search", {"urls": list(store.urls), "ca": store.ca, "login": SEARCH_LOGIN, "prefix": store.prefix}
