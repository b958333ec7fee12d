"""Runs on the node: reads from NICs what is declared of them, and sets what differs. Standard library alone, Python 3.9.

    roce.py read   prints JSON: {device: {"values": {key: text}, "unreadable": {key: why}}}
    roce.py wrong  prints `as declared`, or a line for each key of a device that differs
    roce.py apply  sets what differs; with --wait N, waits for the devices for N seconds first

The settings file has `backend` and for each device `netdev` (null: what sysfs has), `port`, `priority` and
`wanted` (key: text).
Keys: dcbx, trust, pfc (priorities with commas), dscp.N (its priority), prio_buffer and buffer_size (eight with commas), np, rp,
cnp_dscp, cnp_priority, traffic_class, default_tos.

Sources, read 2026-11-25. dcb: dcb-app(8), dcb-pfc(8), dcb-dcbx(8), dcb-buffer(8) of iproute2; Linux's mlx5/core/en_dcbnl.c takes DSCP
entries alone, and trusts DSCP as soon as there is one; mlx5_ib's cong.c has the CNP settings in debugfs. mlnx_qos: what it
prints in public issues and guides, several that agree. The rest: Documentation/ABI/testing/configfs-rdma_cm, and
/sys/class/net/*/ecn and /sys/class/infiniband/*/tc of NVIDIA's driver.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache

from rackwright.roles.roce.node_device import Device, content, place, tool
from rackwright.roles.roce.node_readings import (
    NOT_SET,
    UnreadableError,
    as_wanted,
    dcb_buffers,
    dcb_dscp,
    dcb_mode,
    last_number,
    mlnx_qos,
    priorities,
)
from rackwright.roles.roce.node_writers import write

SETTINGS = "/etc/rackwright/roce.json"


def from_dcb(device: Device) -> dict[str, Callable[[], str]]:
    """How each key is read with dcb and the kernel's own files."""
    netdev = device.netdev

    @cache
    def app() -> dict[str, str]:
        return dcb_dscp(tool("dcb", "-N", "app", "show", "dev", netdev, "dscp-prio"))

    read: dict[str, Callable[[], str]] = {
        "dcbx": lambda: dcb_mode(tool("dcb", "dcbx", "show", "dev", netdev)),
        "trust": lambda: "dscp" if app() else "pcp",
        "pfc": lambda: priorities(tool("dcb", "pfc", "show", "dev", netdev, "prio-pfc")),
        "cnp_dscp": lambda: content(device.cc + "/np_cnp_dscp"),
        "cnp_priority": lambda: content(device.cc + "/np_cnp_prio"),
    }

    @cache
    def buffers() -> dict[str, str]:
        return dcb_buffers(tool("dcb", "-j", "buffer", "show", "dev", netdev))

    for key in ("prio_buffer", "buffer_size"):
        read[key] = lambda key=key: buffers()[key]  # type: ignore[misc]
    for key in device.wanted:
        if key.startswith("dscp."):
            read[key] = lambda number=key[5:]: app().get(number, NOT_SET)  # type: ignore[misc]
    return read


def from_mlnx_qos(device: Device) -> dict[str, Callable[[], str]]:
    """How each key is read with mlnx_qos and the files of NVIDIA's driver."""
    ecn = f"/sys/class/net/{device.netdev}/ecn"

    @cache
    def printed() -> dict[str, str]:
        return mlnx_qos(tool("mlnx_qos", "-i", device.netdev))

    def qos(key: str) -> str:
        found = printed()
        if key not in found:
            raise UnreadableError("mlnx_qos does not print it")
        return found[key]

    read: dict[str, Callable[[], str]] = {
        key: (lambda key=key: qos(key))  # type: ignore[misc]
        for key in device.wanted
        if key in ("dcbx", "trust", "pfc", "prio_buffer", "buffer_size") or key.startswith("dscp.")
    }
    read.update(
        {
            "np": lambda: content(f"{ecn}/roce_np/enable/{device.priority}"),
            "rp": lambda: content(f"{ecn}/roce_rp/enable/{device.priority}"),
            "cnp_dscp": lambda: content(ecn + "/roce_np/cnp_dscp"),
            "cnp_priority": lambda: content(ecn + "/roce_np/cnp_802p_prio"),
            "traffic_class": lambda: last_number(content(f"{device.folder}/tc/{device.port}/traffic_class")),
        }
    )
    return read


def default_tos(device: Device) -> str:
    if not place("/sys/kernel/config/rdma_cm").is_dir():
        raise UnreadableError("/sys/kernel/config/rdma_cm is missing: configfs or the module rdma_cm")
    if not place(device.cm).is_dir():
        return NOT_SET
    return content(f"{device.cm}/ports/{device.port}/default_roce_tos")


def read_device(device: Device, backend: str) -> tuple[dict[str, str], dict[str, str]]:
    """Values by key, and why others cannot be read."""
    values: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    try:
        readers = from_dcb(device) if backend == "dcb" else from_mlnx_qos(device)
    except UnreadableError as error:
        return {}, {key: str(error) for key in device.wanted}
    readers["default_tos"] = lambda: default_tos(device)
    for key in device.wanted:
        try:
            if key not in readers:
                raise UnreadableError(f"the backend {backend} does not show it")
            values[key] = readers[key]()
            if key == "buffer_size":
                values[key] = as_wanted(values[key], device.wanted[key])
        except UnreadableError as error:
            unreadable[key] = str(error)
    return values, unreadable


def differences(device: Device, backend: str) -> list[str]:
    """Keys that are not as wanted, in the order in which they are set; one that cannot be read is one of them."""
    values, _ = read_device(device, backend)
    return [key for key, value in device.wanted.items() if values.get(key) != value]


def wrong(devices: list[Device], backend: str) -> list[str]:
    found = []
    for device in devices:
        values, unreadable = read_device(device, backend)
        for key in differences(device, backend):
            there = values.get(key, f"unreadable ({unreadable.get(key)})")
            found.append(f"{device.name}: {key} is {there}, not {device.wanted[key]}")
    return found


def apply(devices: list[Device], backend: str, wait: int) -> list[str]:
    """What could not be set."""
    end = time.monotonic() + wait
    while time.monotonic() < end and not all(place(device.folder).exists() for device in devices):
        time.sleep(1)
    failed = []
    for device in devices:
        for key in differences(device, backend):
            try:
                write(device, backend, key, device.wanted[key])
            except (UnreadableError, OSError) as error:
                failed.append(f"{device.name}: {key} cannot be set: {error}")
    return failed or wrong(devices, backend)


def main(words: list[str]) -> int:
    settings = json.loads(content(SETTINGS))
    backend = settings["backend"]
    devices = [Device(name, entry) for name, entry in settings["devices"].items()]
    if words[:1] == ["read"]:
        found = {}
        for device in devices:
            values, unreadable = read_device(device, backend)
            found[device.name] = {"values": values, "unreadable": unreadable}
        print(json.dumps(found))
        return 0
    if words[:1] == ["wrong"]:
        print("\n".join(wrong(devices, backend)) or "as declared")
        return 0
    wait = int(words[2]) if words[1:2] == ["--wait"] else 0
    failed = apply(devices, backend, wait)
    if failed:
        print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UnreadableError as error:
        sys.exit(str(error))
