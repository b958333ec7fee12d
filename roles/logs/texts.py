"""The files of the central journal, whole. Pure: what is applied is what is verified.

Keys: journal-upload.conf(5), journal-remote.conf(5) of systemd 257, units of 252 and 257 (read 2026-11-27).
"""

from __future__ import annotations

import json

from rackwright.logs import gate, keeper
from rackwright.logs.entries import MARK_UNIT
from rackwright.model.cluster import Cluster, Node
from rackwright.node_programs import one_text
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.logs import paths
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.stores import JournalStore, size_bytes
from rackwright.textfiles import TEXTFILES

OFFLINE = "(certificate of the site's CA)\n"
PYTHON = "/usr/bin/python3"
KEEPER_MINUTES = 5
MARK_MINUTES = 5
CONNECTIONS = 4
"""Of one node at once: one is its uploader's, another may be of the one before that has not ended yet."""


def mark_files() -> dict[str, str]:
    """Units of the line that every node writes from time to time."""
    return {
        f"{paths.UNITS}/{MARK_UNIT}": render("logs/mark.service.j2"),
        f"{paths.UNITS}/{paths.MARK_TIMER}": render("logs/mark.timer.j2", minutes=MARK_MINUTES),
    }


def sender_files(cluster: Cluster, options: LogsOptions) -> dict[str, str]:
    """What a node's uploader reads."""
    return {
        paths.UPLOAD_CONF: render(
            "logs/journal-upload.conf.j2",
            url=options.url(cluster),
            unit=paths.UPLOAD,
            chain=paths.SENDER_CHAIN,
            ca=paths.CA,
        ),
        paths.drop_in(paths.UPLOAD): render("logs/journal-upload-unit.conf.j2", key=paths.SENDER_KEY),
    }


def server_files(cluster: Cluster, node: Node, store: JournalStore) -> dict[str, str]:
    """What the receiver on the server and the gate before it are."""
    of = names(node.family, "journal-remote")
    common = {"cluster": cluster.name, "user": of.settings["user"], "receiver": paths.RECEIVER_UNIT}
    return {
        paths.REMOTE_CONF: render(
            "logs/journal-remote.conf.j2",
            # the keeper comes first
            max_use=f"{size_bytes(store.max_use) * 5 // 4 >> 20}M",
            keep_free=f"{size_bytes(store.keep_free) >> 21}M",
            max_file=store.max_file,
            keeper=paths.KEEPER_UNIT,
        ),
        f"{paths.UNITS}/{paths.RECEIVER_UNIT}": render(
            "logs/receiver.service.j2",
            **common,
            gate=paths.GATE_UNIT,
            program=of.paths["program"],
            address=paths.RECEIVER_ADDRESS,
            port=paths.RECEIVER_PORT,
            folder=paths.JOURNALS,
        ),
        f"{paths.UNITS}/{paths.SOCKET}": render(
            "logs/gate.socket.j2",
            cluster=cluster.name,
            address=cluster.management_address(node),
            port=store.port,
        ),
        f"{paths.UNITS}/{paths.GATE_UNIT}": render(
            "logs/gate.service.j2",
            **common,
            socket=paths.SOCKET,
            command=f"{PYTHON} -IS {paths.GATE}",
            state=paths.GATE_STATE,
        ),
        gate.SETTINGS: gate_settings(cluster),
    }


def gate_settings(cluster: Cluster) -> str:
    """Input of the gate: who may send, and where connections go."""
    found = {
        "nodes": sorted(node.name for node in cluster.nodes if "logs" in node.options),
        "ca": paths.CA,
        "chain": paths.SERVER_CHAIN,
        "key": paths.SERVER_KEY,
        "receiver": paths.RECEIVER_ADDRESS,
        "receiver_port": paths.RECEIVER_PORT,
        "sources": paths.SOURCES,
        "at_once": CONNECTIONS,
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def keeper_files(cluster: Cluster, options: LogsOptions, store: JournalStore) -> dict[str, str]:
    """Settings and units of what removes old lines and keeps the audit trail."""
    return {
        keeper.SETTINGS: keeper_settings(options, store),
        f"{paths.UNITS}/{paths.KEEPER_UNIT}": render(
            "logs/keeper.service.j2",
            cluster=cluster.name,
            command=f"{PYTHON} -IS {paths.KEEPER}",
            paths=(paths.JOURNALS, paths.AUDIT, keeper.STATE),
            optional_paths=(TEXTFILES,),
        ),
        f"{paths.UNITS}/{paths.KEEPER_TIMER}": render(
            "logs/keeper.timer.j2", cluster=cluster.name, minutes=KEEPER_MINUTES
        ),
    }


def keeper_settings(options: LogsOptions, store: JournalStore) -> str:
    """What the keeper reads."""
    found = {
        "folder": paths.JOURNALS,
        "sources": paths.SOURCES,
        "audit": paths.AUDIT,
        "days": options.retention_days,
        "audit_days": options.audit_retention_days,
        "max_bytes": size_bytes(store.max_use),
        "keep_free_bytes": size_bytes(store.keep_free),
        "textfiles": TEXTFILES,
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def programs() -> dict[str, str]:
    """What runs on the server."""
    found = {paths.GATE: "rackwright.logs.gate", paths.KEEPER: "rackwright.logs.keeper"}
    return {path: f"#!{PYTHON} -IS\n{one_text(entry)}" for path, entry in found.items()}
