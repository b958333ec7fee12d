"""Small specs to test with."""

from pathlib import Path
from typing import Any

from rackwright.lab.spec import NodeSpec, RackSpec


def node(number: int, **changes: Any) -> NodeSpec:
    """A node of the test network."""
    plain = {
        "name": f"node{number}",
        "address": f"10.0.0.{10 + number}",
        "prefix_length": 24,
        "image": "debian-13",
        "cpus": 2,
        "memory_mib": 1024,
        "mtu": 1500,
    }
    return NodeSpec(**(plain | changes))


def rack(folder: Path, **changes: Any) -> RackSpec:
    """A rack of one node whose files are in `folder`."""
    plain = {
        "name": "unit",
        "nodes": (node(1),),
        "bridge_address": "10.0.0.1/24",
        "apt_proxy": "http://10.0.0.1:3142",
        "admin_user": "ops",
        "key": folder / "key",
        "known_hosts": folder / "known_hosts",
        "ssh_port": 22,
    }
    return RackSpec(**(plain | changes))
