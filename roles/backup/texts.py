"""The files of the backup role, whole. Pure: what is applied is what is verified."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path

from rackwright.backup import places
from rackwright.model.backups import parts_of
from rackwright.model.cluster import Cluster, Node
from rackwright.model.storage import Filesystem, mount_of
from rackwright.node_programs import BACKUP, one_text
from rackwright.render import render
from rackwright.roles.backup.options import BackupOptions
from rackwright.secrets.identity import load_identities
from rackwright.secrets.store import SecretStore

_LINE = 64
"""Characters a line of an armored age file (age-encryption.org/v1, "ASCII armor")."""
UNITS = "/etc/systemd/system"
PYTHON = "/usr/bin/python3"


def program() -> str:
    """What the timer starts."""
    return f"#!{PYTHON} -IS\n{one_text(BACKUP)}"


def settings(cluster: Cluster, node: Node, options: BackupOptions, recipients: Iterable[str]) -> str:
    """What the program reads."""
    found = {
        "cluster": cluster.name,
        "node": node.name,
        "place": options.folder(cluster),
        "mount": _mount(node, options.filesystem(node)),
        "textfiles": options.textfile_dir,
        "keep": options.keep,
        "keep_weekly": options.keep_weekly,
        "recipients": sorted(recipients),
        "parts": [part.to_json() for part in parts_of(cluster, node)],
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _mount(node: Node, filesystem: Filesystem | None) -> dict[str, object] | None:
    """Where a filesystem has to be mounted, and its types; None where the place is on the node's own."""
    if filesystem is None or node.name in filesystem.server_nodes:
        return None
    mount = mount_of(node, filesystem)
    return {"path": filesystem.path, "types": list(mount.types or (mount.type,)) if mount is not None else []}


def recipients_file(recipients: Iterable[str]) -> str:
    """age's -R file."""
    return "# Written by rackwright.\n" + "".join(f"{key}\n" for key in sorted(recipients))


def recipients_of(store: SecretStore | None, options: BackupOptions) -> frozenset[str]:
    """Who can decrypt backups: who can decrypt the secrets store, and who is declared.

    `store` None: nothing is looked up, as in `rackwright render`.
    """
    if store is None:
        return frozenset(options.recipients)
    if store.path.exists():
        return store.content().recipients | frozenset(options.recipients)
    mine = str(load_identities()[0].to_public())
    return frozenset({mine, *store.file.team(), *options.recipients})


def service(cluster: Cluster, options: BackupOptions) -> str:
    """The unit that makes a backup."""
    return render(
        "backup/service.j2",
        cluster=cluster.name,
        command=f"{PYTHON} -IS {places.PROGRAM}",
        place=options.place,
        minutes=options.time_limit_minutes,
    )


def timer(cluster: Cluster, options: BackupOptions) -> str:
    """The unit that starts it."""
    return render("backup/timer.j2", cluster=cluster.name, every=options.every)


def site_files(cluster: Cluster, store: SecretStore | None) -> dict[str, str]:
    """Text by name of what a control node needs; the store as an armored age file. Private keys are not among them.

    `store` None: placeholders, as in `rackwright render`.
    """
    found = {cluster.path.name: _text(cluster.path)}
    others = {
        cluster.lock_path.name: cluster.lock_path,
        "known_hosts": cluster.ssh.known_hosts,
    }
    if store is None:
        found[f"{cluster.name}.secrets.age"] = "(the encrypted secrets store)\n"
    else:
        found[store.path.name] = armored(store.path)
        others[store.file.recipients_path.name] = store.file.recipients_path
    found |= {name: text for name, path in others.items() if (text := _text(path))}
    return {name: text for name, text in sorted(found.items()) if text}


def armored(path: Path) -> str:
    """An age file as text, which age and rackwright read as well; a placeholder where a plan of a new cluster has none."""
    try:
        encoded = base64.b64encode(path.read_bytes()).decode()
    except FileNotFoundError:
        return "(the first apply makes it)\n"
    lines = [encoded[start : start + _LINE] for start in range(0, len(encoded), _LINE)]
    return "\n".join(["-----BEGIN AGE ENCRYPTED FILE-----", *lines, "-----END AGE ENCRYPTED FILE-----", ""])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
