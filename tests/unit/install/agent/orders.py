"""Install objects for tests, as a head sends them."""

from __future__ import annotations

from typing import Any

from rackwright.install.agent.order import Order, parse

RUN = "k3x9ab12"


def install_object(**changes: Any) -> dict[str, Any]:
    """One disk, plain; `changes` replace or add members."""
    return {
        "node": "worker1",
        "run": RUN,
        "disks": [{"path": "/dev/nvme0n1", "serial": "S1", "signatures": []}],
        "mirror": False,
        "volumes": "plain",
        "encryption": None,
        "image": {"size": 100, "sha256": "0" * 64, "name": "root.tar.zst"},
        "files": [{"path": "/etc/hostname", "content": "worker1\n", "mode": 0o644, "uid": 0, "gid": 0}],
        "kernel_arguments": f"console=ttyS0,115200 rackwright.run={RUN}",
        "secure_boot": False,
        "console": "ttyS0,115200",
        **changes,
    }


def order(**changes: Any) -> Order:
    """The same, read."""
    return parse(install_object(**changes), RUN)


def mirrored(**changes: Any) -> Order:
    """Two disks."""
    disks = [{"path": path, "serial": path[-1], "signatures": []} for path in ("/dev/sda", "/dev/sdb")]
    return order(mirror=True, disks=disks, **changes)
