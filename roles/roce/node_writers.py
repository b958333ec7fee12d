"""Sets what a NIC is to have. Part of the program on the node: see node.py."""

from __future__ import annotations

from rackwright.roles.roce.node_device import Device, place, put, tool


def buffer_words(device: Device) -> list[str]:
    """Both at once: a lossless priority cannot be in a buffer that has no size yet."""
    words = []
    for key, word in (("prio_buffer", "prio-buffer"), ("buffer_size", "buffer-size")):
        if key in device.wanted:
            words += [
                word,
                *(f"{number}:{value}" for number, value in enumerate(device.wanted[key].split(","))),
            ]
    return words


def write_dcb(device: Device, key: str, value: str) -> None:
    netdev = device.netdev
    if key == "dcbx":
        tool("dcb", "dcbx", "set", "dev", netdev, "host", "ieee")
    elif key == "pfc":
        on = value.split(",")
        states = [f"{number}:{'on' if str(number) in on else 'off'}" for number in range(8)]
        tool("dcb", "pfc", "set", "dev", netdev, "prio-pfc", *states)
    elif key.startswith("dscp."):
        tool("dcb", "app", "replace", "dev", netdev, "dscp-prio", f"{key[5:]}:{value}")
    elif key in ("prio_buffer", "buffer_size"):
        tool("dcb", "buffer", "set", "dev", netdev, *buffer_words(device))
    elif key == "cnp_dscp":
        put(device.cc + "/np_cnp_dscp", value)
    elif key == "cnp_priority":
        put(device.cc + "/np_cnp_prio", value)


def write_mlnx_qos(device: Device, key: str, value: str) -> None:
    netdev, ecn = device.netdev, f"/sys/class/net/{device.netdev}/ecn"
    files = {
        "np": f"{ecn}/roce_np/enable/{device.priority}",
        "rp": f"{ecn}/roce_rp/enable/{device.priority}",
        "cnp_dscp": ecn + "/roce_np/cnp_dscp",
        "cnp_priority": ecn + "/roce_np/cnp_802p_prio",
        "traffic_class": f"{device.folder}/tc/{device.port}/traffic_class",
    }
    if key in files:
        put(files[key], value)
    elif key == "dcbx":
        tool("mlnx_qos", "-i", netdev, "--dcbx", "os")
    elif key == "trust":
        tool("mlnx_qos", "-i", netdev, "--trust", value)
    elif key == "pfc":
        states = ["1" if str(number) in value.split(",") else "0" for number in range(8)]
        tool("mlnx_qos", "-i", netdev, "--pfc", ",".join(states))
    elif key in ("prio_buffer", "buffer_size"):
        both = (("--prio2buffer", "prio_buffer"), ("--buffer_size", "buffer_size"))
        tool(
            "mlnx_qos",
            "-i",
            netdev,
            *(f"{word}={device.wanted[at]}" for word, at in both if at in device.wanted),
        )
    elif key.startswith("dscp."):
        tool("mlnx_qos", "-i", netdev, "--dscp2prio", f"set,{key[5:]},{value}")


def write(device: Device, backend: str, key: str, value: str) -> None:
    if key == "default_tos":
        place(device.cm).mkdir(exist_ok=True)  # configfs: this makes its files appear
        put(f"{device.cm}/ports/{device.port}/default_roce_tos", value)
    elif backend == "dcb":
        write_dcb(device, key, value)
    else:
        write_mlnx_qos(device, key, value)
