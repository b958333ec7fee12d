"""Machines that boot over the network, and a server of them that answers nothing by itself."""

from __future__ import annotations

from rackwright.install.netboot import NetbootMedium
from rackwright.install.record import Record
from rackwright.model.install import BootWay
from tests.unit.install.site import changed, mac, make_worker

WORKERS = [changed(make_worker(number), boot=BootWay.PXE) for number in (1, 2)]
BY_HTTP = [changed(make_worker(number), boot=BootWay.HTTP) for number in (3, 4)]
NODES = {node.name: node for node in (*WORKERS, *BY_HTTP)}
HERE = "127.0.0.1"


def medium(server, number):
    node = server.cluster.by_name[f"worker{number}"]
    return NetbootMedium(node, server.cluster, server.network, server)


def record(number, **more):
    return Record(f"worker{number}", run=f"run{number}", mode="install", mac=mac(number), serial="S", **more)


def served(server):
    return {path.name for path in (server.folder / "tftp/grub/mac").iterdir()}


def hosts(server):
    return (server.folder / "hosts").read_text()
