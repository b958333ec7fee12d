"""Removes the display-only GPU from documents: nvidia-smi lists it among the others, but it runs no compute jobs.

An example is DGX Station A100, whose nvidia-smi lists four A100 and, as index 3, NVIDIA DGX Display (10de:1fb0).
"""

from __future__ import annotations

from typing import Any

from rackwright.health.expected import Expected


def computing(expected: Expected, raw: Any) -> Any:  # noqa: ANN401 - unchecked input
    """The document without the declared display GPU; unchanged if none is declared or found."""
    display = expected.gpus.display_pci_id if expected.gpus is not None else None
    if display is None or not isinstance(raw, dict) or not isinstance(raw.get("sections"), dict):
        return raw
    vendor, _, device = display.partition(":")
    sections = dict(raw["sections"])
    gpus, pci = _data(sections, "gpus"), _data(sections, "pci")
    gone = [one for one in _records(gpus, "gpus") if one.get("pci_id") == device]
    indices = {one.get("index") for one in gone}
    on_bus = [
        one for one in _records(pci, "devices") if (one.get("vendor"), one.get("device")) == (vendor, device)
    ]
    taken = sum(one.get("driver") == "nvidia" for one in on_bus)
    _replace(
        sections, "gpus", gpus, gpus=_without(gpus, "gpus", gone), attached=_less(gpus, "attached", len(gone))
    )
    _replace(
        sections,
        "pci",
        pci,
        devices=_without(pci, "devices", on_bus),
        nvidia_gpus=_less(pci, "nvidia_gpus", taken),
    )
    links = _data(sections, "nvlink")
    its_links = [one for one in _records(links, "gpus") if one.get("index") in indices]
    _replace(sections, "nvlink", links, gpus=_without(links, "gpus", its_links))
    table = _data(sections, "topology")
    if isinstance(table.get("matrix"), dict):
        names = {f"GPU{index}" for index in indices}
        _replace(sections, "topology", table, matrix=_smaller(table["matrix"], names))
    return {**raw, "sections": sections}


def _data(sections: dict[str, Any], name: str) -> dict[str, Any]:
    section = sections.get(name)
    data = section.get("data") if isinstance(section, dict) and section.get("ok") is True else None
    return data if isinstance(data, dict) else {}


def _replace(sections: dict[str, Any], name: str, data: dict[str, Any], **values: Any) -> None:  # noqa: ANN401
    """Change values that the section has; ignore the others."""
    if data:
        changed = {key: value for key, value in values.items() if key in data}
        sections[name] = {**sections[name], "data": {**data, **changed}}


def _records(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = data.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _without(data: dict[str, Any], key: str, gone: list[dict[str, Any]]) -> Any:  # noqa: ANN401
    found = data.get(key)
    return [one for one in found if one not in gone] if isinstance(found, list) else found


def _less(data: dict[str, Any], key: str, count: int) -> Any:  # noqa: ANN401
    found = data.get(key)
    return found - count if type(found) is int else found


def _smaller(matrix: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {
        name: {other: cell for other, cell in row.items() if other not in names}
        if isinstance(row, dict)
        else row
        for name, row in matrix.items()
        if name not in names
    }
