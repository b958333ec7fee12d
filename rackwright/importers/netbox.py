"""NetBox: the JSON of its REST API for devices, and optionally for interfaces and cables, read from files.

Read after the documents of NetBox 3.7 and 4.x: `role` (`device_role` before 3.6, gone in 4.0), `device_type.model`,
`rack.name`, `position` (a number with halves), `primary_ip4.address` and `oob_ip.address` with prefix lengths,
`platform`, `status.value`. A page of the API (`results`), a list and one object are all read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.boundary import read_json
from rackwright.errors import RackwrightError
from rackwright.importers.columns import field_of_variable
from rackwright.importers.netbox_ports import Ports, read_ports
from rackwright.importers.records import MAX_BYTES, Cell, Field, Record, Source, counted, quoted, read_text

Json = Mapping[str, Any]
ACTIVE = "active"
_LEFT_OVER = (
    *(
        "tags",
        "tenant",
        "asset_tag",
        "location",
        "cluster",
        "virtual_chassis",
        "parent_device",
        "comments",
        "description",
    ),
    *("local_context_data", "primary_ip6"),
)
_ALL = "ask for all with `?limit=0`, e.g. `curl -H 'Authorization: Token ...' 'https://netbox/api/dcim/devices/?limit=0'`"


def read_netbox(devices: Path, *, interfaces: Path | None = None, cables: Path | None = None) -> Source:
    """The active devices of an export. Raises RackwrightError where a file is not such a document."""
    source = Source("NetBox export", [devices.name])
    ports = Ports()
    for path, kind in ((interfaces, "interfaces"), (cables, "cables")):
        if path is not None:
            source.files.append(path.name)
            read_ports(ports, _objects(path), kind, path.name)
    statuses: dict[str, list[str]] = {}
    found = _objects(devices)
    for number, device in enumerate(found, 1):
        where = f"{devices.name}: device {device.get('id', number)}"
        status = _text(device, "status", "value") or _text(device, "status") or ACTIVE
        if status != ACTIVE:
            statuses.setdefault(status, []).append(str(device.get("name") or where))
        else:
            source.records.append(_record(device, where, ports, source))
    for status, names in statuses.items():
        source.ignored.append(
            f"{counted(len(names), 'device')} of status {quoted(status)}: "
            f"{', '.join(quoted(name) for name in names)}"
        )
    source.ignored += ports.ignored
    source.ignored += _left_over(found)
    return source


def _left_over(devices: Sequence[Json]) -> Iterator[str]:
    """What devices have and no node: a line for all; and sites, of which a cluster has one."""
    fields = [key for key in _LEFT_OVER if any(device.get(key) for device in devices)]
    if fields:
        yield f"fields of devices that a cluster file has nothing of: {', '.join(fields)}"
    sites = Counter(site for device in devices if (site := _text(device, "site", "name")))
    if len(sites) > 1:
        names = ", ".join(
            f"{quoted(name)} ({counted(count, 'device')})" for name, count in sites.most_common(6)
        )
        yield f"sites of devices: all are in one cluster file: {names}"


def _objects(path: Path) -> list[Json]:
    try:
        data = read_json(read_text(path), MAX_BYTES)
    except ValueError as error:
        raise RackwrightError(f"{path} is not JSON: {error}", hint=_ALL) from None
    if isinstance(data, dict) and "results" in data:
        if data.get("next"):
            raise RackwrightError(
                f"{path} is one page of several: {data.get('count')} objects in all.", hint=_ALL
            )
        data = data["results"]
    found = data if isinstance(data, list) else [data]
    if not all(isinstance(one, dict) and "id" in one for one in found):
        raise RackwrightError(f"{path} is not an answer of NetBox's REST API.", hint=_ALL)
    return found


def _record(device: Json, where: str, ports: Ports, source: Source) -> Record:
    record = Record(where)
    _put(record, "name", device.get("name"), where)
    _put(record, "roles", _role(device), f"{where}, role")
    _put(record, "os", _text(device, "platform", "name"), f"{where}, platform")
    _put(record, "serial", device.get("serial"), f"{where}, serial")
    _put(record, "rack", _text(device, "rack", "name"), f"{where}, rack")
    _put(record, "position", device.get("position"), f"{where}, position")
    _put(record, "address", _text(device, "primary_ip4", "address"), f"{where}, primary_ip4")
    _put(record, "bmc", _text(device, "oob_ip", "address"), f"{where}, oob_ip")
    maker = _text(device, "device_type", "manufacturer", "name") or ""
    model = _text(device, "device_type", "model")
    _put(
        record,
        "sku",
        model if model is None or model.startswith(maker) else f"{maker} {model}",
        f"{where}, device_type",
    )
    if "address" not in record.cells:
        kind = "IPv6 only" if device.get("primary_ip6") else "none"
        record.notes["address"] = f"primary_ip4: {kind}"
    if record.cells.get("name") is None and _text(device, "display"):
        record.notes["name"] = "the device has no name"
    _custom_fields(record, device, where, source)
    ports.add_to(record, device)
    return record


def _role(device: Json) -> str | None:
    """The role's slug, which does not change with its name's spelling."""
    for key in ("role", "device_role"):
        found = _text(device, key, "slug") or _text(device, key, "name")
        if found is not None:
            return found
    return None


def _custom_fields(record: Record, device: Json, where: str, source: Source) -> None:
    fields = device.get("custom_fields")
    for name, value in fields.items() if isinstance(fields, dict) else ():
        field = field_of_variable(str(name))
        if value in (None, "", [], {}):
            continue
        if field is None or field in record.cells or isinstance(value, dict | list):
            line = f"custom field {quoted(str(name))}: a cluster file has nothing of it, or has it from elsewhere"
            if line not in source.ignored:
                source.ignored.append(line)
        else:
            _put(record, field, value, f"{where}, custom field {name}")


def _put(record: Record, field: Field, value: object, where: str) -> None:
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        record.cells[field] = Cell(str(value).strip(), where)


def _text(data: Any, *path: str) -> str | None:  # noqa: ANN401 - JSON data
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, str) and data.strip() else None
