"""Documents of NetBox's REST API, written for these tests after the shapes that NetBox 3.7 and 4.2 document.

None was recorded from a server. 3.7 has `role` and its old name `device_role`, and nested objects without
descriptions; 4.x has `role` alone, `family` as an object, and MAC addresses as objects beside `mac_address`.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
URL = "https://netbox.example.com/api"


def nested(number: int, name: str, *, key: str = "name", four: bool, **more: object) -> Json:
    """A nested object as a device has it."""
    slug = name.lower().replace(" ", "-")
    found: Json = {
        "id": number,
        "url": f"{URL}/dcim/x/{number}/",
        "display": name,
        key: name,
        "slug": slug,
        **more,
    }
    return found | ({"description": ""} if four else {})


def address(number: int, text: str | None, *, four: bool) -> Json | None:
    """A nested address."""
    if text is None:
        return None
    family: object = {"value": 4, "label": "IPv4"} if four else 4
    return {
        "id": number,
        "url": f"{URL}/ipam/ip-addresses/{number}/",
        "display": text,
        "family": family,
        "address": text,
    }


def device(
    number: int,
    name: str | None,
    *,
    four: bool = True,
    role: str = "GPU node",
    model: str = "DGX H100",
    maker: str = "NVIDIA",
    primary: str | None = None,
    oob: str | None = None,
    rack: str | None = None,
    position: float | None = None,
    serial: str = "",
    platform: str | None = "Ubuntu 24.04",
    status: str = "active",
    custom: Json | None = None,
) -> Json:
    """One device with every key that the API answers and that is about a node, and some others."""
    the_role = nested(7, role, four=four)
    return {
        "id": number,
        "url": f"{URL}/dcim/devices/{number}/",
        "display": name or f"{maker} {model} ({number})",
        "name": name,
        "device_type": nested(3, model, key="model", four=four, manufacturer=nested(2, maker, four=four)),
        "role": the_role,
        **({} if four else {"device_role": the_role}),
        "tenant": None,
        "platform": None if platform is None else nested(5, platform, four=four),
        "serial": serial,
        "asset_tag": None,
        "site": nested(1, "DC West", four=four),
        "location": None,
        "rack": None if rack is None else nested(9, rack, four=four),
        "position": position,
        "face": {"value": "front", "label": "Front"} if position is not None else None,
        "parent_device": None,
        "status": {"value": status, "label": status.capitalize()},
        "airflow": None,
        "primary_ip": address(2 * number, primary, four=four),
        "primary_ip4": address(2 * number, primary, four=four),
        "primary_ip6": None,
        "oob_ip": address(2 * number + 1, oob, four=four),
        "cluster": None,
        "tags": [],
        "custom_fields": custom or {},
        "interface_count": 10,
    }


def page(objects: list[Json]) -> Json:
    """One page that has all."""
    return {"count": len(objects), "next": None, "previous": None, "results": objects}


def interface(
    number: int,
    of: Json,
    name: str,
    kind: str,
    *,
    mac: str | None = None,
    mgmt_only: bool = False,
    peer: str | None = None,
    four: bool = True,
) -> Json:
    """One interface of a device, with the device at the other end of its cable."""
    end = {"id": 1, "device": {"id": 900, "name": peer}, "name": "1/1", "cable": number, "_occupied": True}
    return {
        "id": number,
        "device": {"id": of["id"], "url": of["url"], "display": of["display"], "name": of["name"]},
        "name": name,
        "type": {"value": kind, "label": kind},
        "enabled": True,
        "mgmt_only": mgmt_only,
        "mac_address": mac,
        **(
            {"primary_mac_address": None if mac is None else {"id": number, "mac_address": mac}}
            if four
            else {}
        ),
        "connected_endpoints": None if peer is None else [end],
        "connected_endpoints_type": None if peer is None else "dcim.interface",
    }


def cable(number: int, of: Json, port: str, peer: str, peer_port: str) -> Json:
    """One cable between interfaces of two devices."""

    def end(device_id: int, name: str, at: str) -> Json:
        thing = {"id": number, "device": {"id": device_id, "name": name}, "name": at, "cable": number}
        return {"object_type": "dcim.interface", "object_id": number, "object": thing}

    return {
        "id": number,
        "type": "mmf",
        "a_terminations": [end(900, peer, peer_port)],
        "b_terminations": [end(of["id"], of["name"], port)],
        "status": {"value": "connected", "label": "Connected"},
    }
