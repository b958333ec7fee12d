"""The agent's orders: disks, layout, image, and the files that make the node.

The files are only what a first login needs - name, network, the administrator's key, sudo - since the first
apply does the rest. They depend only on the declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.errors import InstallError
from rackwright.install.image import RootImage
from rackwright.install.port import Port, networkd
from rackwright.install.verdict import Verdict
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import Encryption, Install

_ADMIN_ID = 1000
_LISTED = 20000
"""Last-change day of the administrator's shadow entry, in days since 1970; there never was a password."""


def orders(
    cluster: Cluster,
    node: Node,
    run: str,
    image: RootImage,
    public_key: str,
    verdict: Verdict,
    recovery: str | None,
) -> dict[str, Any]:
    """The `install` object of the protocol.

    + recovery: passphrase of the encrypted root, if the TPM or Tang server fails; None: not encrypted
    """
    install = _of(node)
    encryption = None
    if install.encryption is not Encryption.NONE:
        encryption = {"kind": install.encryption.value, "tang": install.tang, "recovery_key": recovery}
    return {
        "node": node.name,
        "run": run,
        "disks": [
            {"path": one.disk.path, "serial": one.serial, "signatures": list(one.disk.signatures)}
            for one in verdict.chosen
        ],
        "mirror": install.mirror,
        "volumes": install.volumes.value,
        "encryption": encryption,
        "image": {"size": image.size, "sha256": image.sha256, "name": image.file.name},
        **node_files(cluster, node, image.accounts(), public_key),
        "kernel_arguments": kernel_arguments(install, run),
        "secure_boot": install.secure_boot,
        "console": install.console,
    }


def kernel_arguments(install: Install, run: str) -> str:
    """Arguments of the installed kernel; the run id distinguishes it from an older installation on the same disk."""
    console = () if install.console is None else ("console=tty0", f"console={install.console}")
    return " ".join((*console, *install.kernel_arguments, f"rackwright.run={run}"))


def node_files(
    cluster: Cluster, node: Node, accounts: Mapping[str, str], public_key: str
) -> dict[str, list[dict[str, Any]]]:
    """The node's identity: `folders` not owned by root, then `files`, as in the protocol."""
    user, home = cluster.ssh.user, f"/home/{cluster.ssh.user}"
    sshd = f"Port {cluster.ssh.port}\nPermitRootLogin no\nPasswordAuthentication no\n"
    address = cluster.management_address(node)
    hosts = (
        f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{address} {node.fqdn} {node.name}\n"
    )
    made = [
        _file("/etc/hostname", f"{node.name}\n"),
        _file("/etc/hosts", hosts),
        _file("/etc/resolv.conf", ""),  # an unreachable resolver would cost 20 s per lookup
        _file(f"/etc/sudoers.d/90-{user}", f"{user} ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440),
        _file("/etc/ssh/sshd_config.d/90-install.conf", sshd, 0o600),
        *_network(cluster, node),
    ]
    ids, added = _administrator(user, home, accounts)
    made += [
        _file("/etc/" + name, text, 0o640 if "shadow" in name else 0o644, gid=_shadow_group(accounts, name))
        for name, text in added.items()
    ]
    made.append(_file(f"{home}/.ssh/authorized_keys", f"{public_key}\n", 0o600, *ids))
    folders = [
        {"path": path, "mode": mode, "uid": ids[0], "gid": ids[1]}
        for path, mode in ((home, 0o750), (f"{home}/.ssh", 0o700))
    ]
    return {"folders": folders, "files": made}


def _administrator(
    user: str, home: str, accounts: Mapping[str, str]
) -> tuple[tuple[int, int], dict[str, str]]:
    """IDs of the administrator, and the account files to write: none if the image has the account."""
    for line in accounts["passwd"].splitlines():
        fields = line.split(":")
        if fields[0] == user:
            return (int(fields[2]), int(fields[3])), {}
    taken = {
        line.split(":")[2] for name in ("passwd", "group") for line in accounts[name].splitlines() if line
    }
    number = next(one for one in range(_ADMIN_ID, 60000) if str(one) not in taken)
    added = {
        "passwd": f"{user}:x:{number}:{number}::{home}:/bin/bash\n",
        "group": f"{user}:x:{number}:\n",
        # "*" means no valid password but, unlike "!", not a locked account
        "shadow": f"{user}:*:{_LISTED}:0:99999:7:::\n",
        "gshadow": f"{user}:*::\n",
    }
    return (number, number), {name: accounts[name] + line for name, line in added.items()}


def _shadow_group(accounts: Mapping[str, str], name: str) -> int:
    if "shadow" not in name:
        return 0
    found = (line.split(":")[2] for line in accounts["group"].splitlines() if line.startswith("shadow:"))
    return int(next(found, "0"))


def _network(cluster: Cluster, node: Node) -> list[dict[str, Any]]:
    """systemd-networkd files of the management port, with VLAN and bond as declared."""
    if node.os.network != "networkd":
        raise InstallError(
            f"{node.name} runs {node.os}, which uses {node.os.network}: it cannot be installed from an image.",
            hint=f"set `install: {{installer: {node.os.installer}}}`",
        )
    install = _of(node)
    macs = (str(node.mac), *install.bond)
    port = Port(macs, install.vlan, cluster.management_address(node), cluster.management, ())
    return [_file(path, text) for path, text in networkd(port).items()]


def _of(node: Node) -> Install:
    if node.install is None:
        raise InstallError(
            f"{node.name} has no `install` section.", hint="e.g. `install: {image: images/worker, ...}`"
        )
    return node.install


def _file(path: str, content: str, mode: int = 0o644, uid: int = 0, gid: int = 0) -> dict[str, Any]:
    return {"path": path, "content": content, "mode": mode, "uid": uid, "gid": gid}
