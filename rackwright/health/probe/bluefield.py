"""BlueField-3 cards and the mode each runs in, as mlxconfig (MFT) or mstconfig (mstflint) prints it.

INTERNAL_CPU_OFFLOAD_ENGINE decides on BlueField-3: DISABLED(1) is NIC mode, ENABLED(0) with INTERNAL_CPU_MODEL
EMBEDDED_CPU(1) is DPU mode (NVIDIA DOCA, BlueField Modes of Operation, with Mellanox nic-configuration-operator,
pull request 97; columns and values as in mstflint's own parser and in OpenShift's log of a BlueField-3 B3220, all
read 2026-11-23). A setting takes effect with the next power cycle: `Current` is what the card does now.
"""

from __future__ import annotations

import re
import threading
from typing import Any

from rackwright.health.probe.pci import DEVICES, MELLANOX
from rackwright.health.probe.source import Source, Unavailable

BLUEFIELD_3 = "a2dc"
"""PCI device ID of its ports; one function is one port (pci.ids)."""
TOOLS = ("mlxconfig", "mstconfig")
SECONDS = 6.0
AT_ONCE = 8
ENGINE, MODEL = "INTERNAL_CPU_OFFLOAD_ENGINE", "INTERNAL_CPU_MODEL"
NOW, NEXT = "Current", "Next Boot"


def bluefields(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Every BlueField-3 card with its number of ports; `tool` is None if neither tool is installed."""
    tool = next((name for name in TOOLS if source.exists(f"/usr/bin/{name}")), None)
    ports: dict[str, list[str]] = {}
    names = source.names(DEVICES)
    if not names:
        raise Unavailable(f"{DEVICES}: no device")
    for name in names:
        vendor = source.maybe(f"{DEVICES}/{name}/vendor")
        if vendor is None:
            raise Unavailable(f"{DEVICES}/{name}/vendor: not read")
        if vendor == f"0x{MELLANOX}" and source.text(f"{DEVICES}/{name}/device") == f"0x{BLUEFIELD_3}":
            ports.setdefault(name.rpartition(".")[0], []).append(name)
    found: dict[str, dict[str, Any]] = {}

    def ask(slots: list[str]) -> None:
        for slot in slots:
            found[slot] = card(source, tool, ports[slot])

    # One call takes up to two seconds, and a node has up to 16 cards.
    slots = list(ports)
    threads = [threading.Thread(target=ask, args=(slots[at::AT_ONCE],), daemon=True) for at in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"tool": tool, "cards": [found[slot] for slot in slots]}


def card(source: Source, tool: str | None, functions: list[str]) -> dict[str, Any]:
    """One card, queried at its first function; `why` is the reason if its mode could not be read."""
    fields: dict[str, Any] = {"address": functions[0], "ports": len(functions)}
    fields.update(why=None, mode=None, next_mode=None)
    if tool is None:
        return fields
    try:
        text = source.run([tool, "-e", "-d", functions[0], "q", MODEL, ENGINE], SECONDS)
        return {**fields, **parse(text)}
    except Unavailable as error:
        return {**fields, "why": str(error)}


def parse(text: str) -> dict[str, str]:
    """Read `mlxconfig -e q`: the mode now and after the next power cycle, `nic` or `dpu`."""
    head = next((line for line in text.splitlines() if line.startswith("Configurations:")), "")
    columns = re.findall(r"Default|Current|Next Boot", head)
    values: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.lstrip("* \t").split()
        if words and words[0] in (ENGINE, MODEL):
            values[words[0]] = words[1:]
    if NOW not in columns or any(len(values.get(name, ())) != len(columns) for name in (ENGINE, MODEL)):
        raise Unavailable(f"it printed no {ENGINE} and {MODEL} with their current values")
    found = {}
    for key, column in (("mode", NOW), ("next_mode", NEXT)):
        at = columns.index(column) if column in columns else columns.index(NOW)
        found[key] = mode(values[ENGINE][at], values[MODEL][at])
    return found


def mode(engine: str, model: str) -> str:
    """The mode that these two settings make."""
    if engine == "DISABLED(1)":
        return "nic"
    if engine == "ENABLED(0)" and model == "EMBEDDED_CPU(1)":
        return "dpu"
    raise Unavailable(f"{ENGINE} {engine} with {MODEL} {model} is neither NIC mode nor DPU mode")
