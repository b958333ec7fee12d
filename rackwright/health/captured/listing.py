"""Files of sysfs saved as lines `PATH: VALUE`, as `grep -r . DIR` prints them too."""

from __future__ import annotations

import re
from typing import Any

from rackwright.health.captured.reading import Context, Reading
from rackwright.health.probe import network, storage
from rackwright.health.probe.source import Source, Unavailable

_LINE = re.compile(r"^\s*(/?[\w.@+-]+(?:/[\w.:@+-]+?)+):\s*(.*)$")
_RDMA = re.compile(r"^/?[\w./-]+/ports/\d+/(?:state|phys_state|rate|link_layer|counters)\b", re.MULTILINE)
_MD = re.compile(r"^\s*/?[\w./-]*\bmd[\w-]*/md/(?:array_state|level|degraded)\s*:", re.MULTILINE)
_DEVICE_FILES = {"board": "board_id", "firmware": "fw_ver", "node_guid": "node_guid"}
_PORT_FILES = {
    "state": "state", "physical": "phys_state", "rate_gbps": "rate", "layer": "link_layer", "lid": "lid",
    "sm_lid": "sm_lid",
}  # fmt: skip


class Listing(Source):
    """The files of a listing, below the folder they come from."""

    def __init__(self, text: str, folder: str) -> None:
        super().__init__()
        self._files: dict[str, str] = {}
        for line in text.splitlines():
            found = _LINE.match(line)
            if found:
                path = found.group(1).rpartition(folder + "/")[2].lstrip("/")
                self._files[f"{folder}/{path}"] = found.group(2)

    def text(self, path: str) -> str:
        if path not in self._files:
            raise Unavailable(f"{path}: not in the capture")
        return self._files[path]

    def data(self, path: str, offset: int, size: int) -> bytes:
        return self.text(path).encode()[offset : offset + size]

    def names(self, path: str) -> list[str]:
        inside = (name[len(path) + 1 :] for name in self._files if name.startswith(path + "/"))
        return sorted({name.split("/")[0] for name in inside})

    def exists(self, path: str) -> bool:
        return path in self._files or bool(self.names(path))

    def target(self, path: str) -> str | None:
        return None

    def run(self, arguments: list[str], seconds: float) -> str:
        raise Unavailable(f"`{' '.join(arguments)}`: not in the capture")


def is_infiniband(text: str) -> bool:
    """Below /sys/class/infiniband."""
    return _RDMA.search(text) is not None


def infiniband(text: str, context: Context) -> Reading:
    """Every RDMA device; fields that were not saved are left out."""
    source = Listing(text, network.RDMA)
    found = network.infiniband(source, {})
    for device in found["devices"]:
        at = f"{network.RDMA}/{device['name']}"
        del device["address"]
        _leave_out(source, device, at, _DEVICE_FILES)
        for port in device["ports"]:
            inside = f"{at}/ports/{port['port']}"
            _leave_out(source, port, inside, _PORT_FILES)
            _leave_out(source, port, inside, {"gids": "gids", "pkeys": "pkeys"})
            counters = {name: name for name in port["counters"]}
            _leave_out(source, port["counters"], inside + "/counters", counters)
            if not port["counters"]:
                del port["counters"]
    return Reading({"infiniband": found})


def _leave_out(source: Listing, section: dict[str, Any], at: str, files: dict[str, str]) -> None:
    for key, file in files.items():
        if key in section and not source.exists(f"{at}/{file}"):
            del section[key]


def is_arrays(text: str) -> bool:
    """Below /sys/block, of md."""
    return _MD.search(text) is not None


def arrays(text: str, context: Context) -> Reading:
    """Every md array."""
    return Reading({"arrays": storage.arrays(Listing(text, "/sys/block"), {})})
