"""AMD GPUs as amd-smi prints them. ROCm 7 wraps the list that ROCm 6 prints in `gpu_data`."""

from __future__ import annotations

import json
from typing import Any

from rackwright.health.probe.source import Source, Unavailable, number

SECONDS = 10.0
NO_PAGES = "No bad pages found."


def gpus(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The identity of every GPU and the limits of its board."""
    return {"gpus": [what_it_is(entry) for entry in ask(source, "static")]}


def metrics(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Temperatures, the PCIe link and RAS error counters of every GPU."""
    return {"gpus": [measured(entry) for entry in ask(source, "metric")]}


def bad_pages(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """By GPU: the number of memory pages that are retired, pending, and could not be retired."""
    return {
        "gpus": [
            {
                "index": entry["gpu"],
                "retired": pages(entry.get("retired")),
                "pending": pages(entry.get("pending")),
                "unreservable": pages(entry.get("un_res")),
            }
            for entry in ask(source, "bad-pages")
        ]
    }


def topology(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The kind of link between each pair of GPUs."""
    return {
        "gpus": [
            {
                "index": entry["gpu"],
                "address": address(entry.get("bdf")),
                "links": [
                    {
                        "address": address(link.get("bdf")),
                        "type": word(link.get("link_type")),
                        "status": word(link.get("link_status")),
                    }
                    for link in objects(entry.get("links"))
                ],
            }
            for entry in ask(source, "topology")
        ]
    }


def ask(source: Source, command: str) -> list[dict[str, Any]]:
    """The entries of one amd-smi command, one for each GPU or partition of a GPU."""
    return entries(source.run(["amd-smi", command, "--json"], SECONDS), command)


def entries(text: str, command: str) -> list[dict[str, Any]]:
    """Read `amd-smi COMMAND --json`; raises Unavailable for other output.

    Warnings may precede the JSON, and CPUs are listed beside the GPUs where the amd_hsmp driver is loaded.
    """
    lines = text.splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if line[:1] in ("[", "{")), len(lines))
    try:
        parsed, _ = json.JSONDecoder().raw_decode("".join(lines[first:]))
    except ValueError as error:
        raise Unavailable(f"`amd-smi {command} --json` did not print JSON: {error}") from None
    listed = parsed.get("gpu_data", [parsed]) if isinstance(parsed, dict) else parsed
    found = [entry for entry in objects(listed) if type(entry.get("gpu")) is int]
    if not found:
        raise Unavailable(f"`amd-smi {command} --json` lists no GPU")
    return found


def what_it_is(entry: dict[str, Any]) -> dict[str, Any]:
    """One GPU of `amd-smi static`."""
    asic, bus, limit = part(entry, "asic"), part(entry, "bus"), part(entry, "limit")
    return {
        "index": entry["gpu"],
        "address": address(bus.get("bdf")),
        "name": word(asic.get("market_name")),
        "pci_id": (word(asic.get("device_id")) or "").lower().replace("0x", "") or None,
        "driver": word(part(entry, "driver").get("version")),
        "memory_mib": figure(part(entry, "vram").get("size")),
        "width_max": figure(bus.get("max_pcie_width")),
        "speed_max_gts": figure(bus.get("max_pcie_speed")),
        "hotspot_limit_c": figure(limit.get("slowdown_hotspot_temperature")),
        "memory_limit_c": figure(limit.get("slowdown_vram_temperature")),
        "bad_page_threshold": figure(part(entry, "ras").get("bad_page_threshold")),
    }


def measured(entry: dict[str, Any]) -> dict[str, Any]:
    """One GPU of `amd-smi metric`."""
    temperature, pcie, ecc = part(entry, "temperature"), part(entry, "pcie"), part(entry, "ecc")
    return {
        "index": entry["gpu"],
        "hotspot_c": figure(temperature.get("hotspot")),
        "memory_c": figure(temperature.get("mem")),
        "width": figure(pcie.get("width")),
        "speed_gts": figure(pcie.get("speed")),
        "uncorrectable": figure(ecc.get("total_uncorrectable_count")),
        "deferred": figure(ecc.get("total_deferred_count")),
        "correctable": figure(ecc.get("total_correctable_count")),
    }


def pages(value: Any) -> int | None:  # noqa: ANN401
    """The number of listed pages; amd-smi prints a single page as an object instead of a list."""
    if value == NO_PAGES:
        return 0
    return len(objects([value] if isinstance(value, dict) else value)) or None


def objects(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def part(entry: dict[str, Any], name: str) -> dict[str, Any]:
    """A group of fields; empty if amd-smi prints N/A for the whole group."""
    value = entry.get(name)
    return value if isinstance(value, dict) else {}


def figure(value: Any) -> Any:  # noqa: ANN401 - a number or None
    """A number, with or without a unit."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str):
        return number(value)
    return value if type(value) in (int, float) else None


def word(value: Any) -> str | None:  # noqa: ANN401
    return value if isinstance(value, str) and value not in ("", "N/A") else None


def address(value: Any) -> str | None:  # noqa: ANN401
    return value.lower() if isinstance(value, str) and value.count(":") == 2 else None
