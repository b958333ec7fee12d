"""Bit error rates and cables of the active fabric ports, as mlxlink (MFT) or mstlink (mstflint) prints them."""

from __future__ import annotations

import json
import threading
from typing import Any

from rackwright.health.probe.network import RDMA, rdma_names
from rackwright.health.probe.source import Source, Unavailable, number

TOOLS = ("mlxlink", "mstlink")
SECONDS = 6.0
AT_ONCE = 8


def links(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Every active port of an mlx5 device; `tool` is None if neither tool is installed."""
    tool = next((name for name in TOOLS if source.exists(f"/usr/bin/{name}")), None)
    names = [name for name in rdma_names(source) if name.startswith("mlx5_") and active(source, name)]
    if tool is None or not names:
        return {"tool": tool, "ports": []}
    found: dict[str, dict[str, Any]] = {}

    def read(some: list[str]) -> None:
        for name in some:
            found[name] = port(source, tool, name)

    # One call takes up to a second, and a node has up to 16 ports.
    threads = [
        threading.Thread(target=read, args=(names[at::AT_ONCE],), daemon=True) for at in range(AT_ONCE)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"tool": tool, "ports": [found[name] for name in names]}


def active(source: Source, name: str) -> bool:
    return "ACTIVE" in (source.maybe(f"{RDMA}/{name}/ports/1/state") or "")


def port(source: Source, tool: str, name: str) -> dict[str, Any]:
    """One port; `why` is the reason if it could not be read."""
    try:
        parsed = parse(source.run([tool, "-d", name, "-c", "-m", "--json"], SECONDS))
    except Unavailable as error:
        return {"device": name, "why": str(error), "state": None, "effective_ber": None, "raw_ber": None}
    return {"device": name, "why": None, **parsed}


def parse(text: str) -> dict[str, Any]:
    """Read `mlxlink -c -m --json`. mlxlink prints an error rate of 0 as 15E-255, and N/A if it does not count."""
    try:
        output = json.loads(text)["result"]["output"]
        counters, operational = output["Physical Counters and BER Info"], output["Operational Info"]
        module = output.get("Module Info")
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"mlxlink printed no counters: {error!r}") from None
    if not isinstance(counters, dict) or not isinstance(operational, dict):
        raise Unavailable(f"mlxlink printed no counters: {str(counters)[:60]!r}")
    module = module if isinstance(module, dict) else {}  # N/A for a copper cable
    return {
        "effective_ber": rate(counters, "Effective Physical BER"),
        "raw_ber": rate(counters, "Raw Physical BER"),
        "symbol_ber": rate(counters, "Symbol BER"),
        "link_downs": number(str(counters.get("Link Down Counter"))),
        "state": operational.get("State"),
        "fec": operational.get("FEC"),
        "module_c": number(str(module.get("Temperature [C]"))),
        "serial": module.get("Vendor Serial Number"),
    }


def rate(counters: dict[str, Any], name: str) -> float | None:
    value = number(str(counters.get(name)))
    return float(value) if value is not None else None
