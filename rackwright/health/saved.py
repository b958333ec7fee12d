"""Judges saved input: a document of the probe, or the output of a tool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rackwright.boundary import printable
from rackwright.catalog.read import catalogue
from rackwright.clusterfile.load import load_cluster
from rackwright.documents.nearest import suggest
from rackwright.errors import RackwrightError
from rackwright.health.captured.drives import as_json
from rackwright.health.captured.judged import judge_capture
from rackwright.health.captured.kinds import KINDS, Kind, kind_of, read_capture
from rackwright.health.declare import expected_of, expected_of_sku
from rackwright.health.expected import Expected
from rackwright.health.probe.source import Unavailable
from rackwright.health.run import FleetHealth, NodeHealth, judge_saved

CAPTURE_MAX_CHARACTERS = 64 * 2**20
"""Enough for a year of kernel log."""


def judged(text: str, file: Path | None, sku: str | None, gpus: int | None) -> FleetHealth:
    """Judge a saved document or a capture by a SKU or by the node of a cluster file.

    `gpus` is the number of GPUs in a capture, if it intentionally has fewer than the SKU.
    """
    if len(text) > CAPTURE_MAX_CHARACTERS:
        raise RackwrightError(f"It is larger than {CAPTURE_MAX_CHARACTERS >> 20} MiB, the most that is read.")
    if as_json(text) is not None and kind_of(text) is None:
        expected = _of_sku(sku) if file is None else _of_node(text, file)
        return FleetHealth("a saved document", (judge_saved(expected, text),))
    if file is not None:
        raise RackwrightError("A capture has no node name.", hint="give --sku instead of FILE")
    expected = _of_sku(sku)
    kind = kind_of(text)
    if kind is None:
        known = ", ".join(one.name for one in KINDS)
        raise RackwrightError(
            "This is neither a document of `rackwright health --save` nor a known kind of capture.",
            hint=f"known captures: {known}",
        )
    return _capture(expected, text, kind, gpus)


def _capture(expected: Expected, text: str, kind: Kind, gpus: int | None) -> FleetHealth:
    if gpus is not None and expected.gpus is not None:
        expected = replace(expected, gpus=replace(expected.gpus, count=gpus))
    try:
        capture = read_capture(text, kind)
    except (Unavailable, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        why = printable(str(error) or type(error).__name__, 300)
        raise RackwrightError(f"This looks like {kind.name}, but cannot be parsed: {why}.") from None
    results = judge_capture(expected, capture)
    held = ", ".join(capture.sections)
    if not results:
        raise RackwrightError(f"No check of SKU {expected.sku} uses the content of {kind.name} ({held}).")
    node = NodeHealth("capture", capture.document, tuple(results))
    return FleetHealth(f"a capture of {kind.name}; only its {held} is judged", (node,))


def _of_sku(name: str | None) -> Expected:
    if name is None:
        raise RackwrightError(
            "There is nothing to judge the document by.", hint="give --sku NAME, or the cluster file"
        )
    found = catalogue().get(name)
    if found is None:
        raise RackwrightError(
            f"The catalogue has no SKU {name}.", hint=suggest(name, catalogue(), what="SKUs")
        )
    return expected_of_sku(found)


def _of_node(text: str, file: Path) -> Expected:
    cluster = load_cluster(file)
    parsed = as_json(text)
    name = parsed.get("node") if isinstance(parsed, dict) else None
    if not isinstance(name, str):
        raise RackwrightError("The document has no node name.", hint="give --sku instead of FILE")
    node = cluster.by_name.get(name.split(".")[0])
    if node is None:
        raise RackwrightError(
            f"Cluster {cluster.name} has no node {printable(name, 100)}.",
            hint=suggest(name, cluster.by_name, what="nodes"),
        )
    return expected_of(cluster, node)
