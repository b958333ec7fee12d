"""Queries many BMCs in parallel for firmware and BIOS settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rackwright.bmc.fleet import ask_all
from rackwright.errors import BmcError, FirmwareError
from rackwright.firmware.compare import NodeReport, judge
from rackwright.firmware.reading import Reading, read
from rackwright.model.bmc import BmcProtocol
from rackwright.model.cluster import Cluster, Node

_WITHIN_SECONDS = 480
"""For one BMC: an inventory may have a hundred entries, each a request, and a slow BMC takes a second for one."""


def survey(cluster: Cluster, nodes: Sequence[Node], *, rules: bool = False) -> tuple[NodeReport, ...]:
    """Every node compared with the baseline of its SKU.

    + rules: ask why declared BIOS attributes cannot be set, too
    """
    if not cluster.firmware:
        raise FirmwareError(
            f"{cluster.path} declares no firmware.",
            hint="e.g. `firmware: {SKU: {bios: 2.6.6}}` with a SKU of its nodes: docs/firmware.md",
        )
    asked = [node for node in nodes if out_of_scope(cluster, node) is None]

    answers: dict[str, Reading | BmcError] = {}
    for sku in dict.fromkeys(node.sku.name for node in asked):
        alike = [node for node in asked if node.sku.name == sku]
        ask = partial(read, baseline=cluster.firmware[sku], rules=rules)
        answers |= ask_all(cluster, alike, ask, within=_WITHIN_SECONDS)
    return tuple(report_of(cluster, node, answers.get(node.name)) for node in nodes)


def out_of_scope(cluster: Cluster, node: Node) -> str | None:
    """Why nothing can be compared; None: it can."""
    if node.sku.name not in cluster.firmware:
        return f"no firmware is declared for SKU {node.sku.name}"
    if node.bmc is None:
        return "no `bmc` is declared"
    if node.bmc.protocol is BmcProtocol.IPMI:
        return "IPMI has no standard for firmware and BIOS settings"
    return None


def report_of(cluster: Cluster, node: Node, answer: Reading | BmcError | None) -> NodeReport:
    """One node judged by its BMC's answer."""
    if answer is None:
        return NodeReport(node.name, reason=out_of_scope(cluster, node) or "its BMC was not queried")
    if isinstance(answer, BmcError):
        return NodeReport(node.name, reason=answer.message, hint=answer.hint, unknown=True)
    return NodeReport(node.name, judge(cluster.firmware[node.sku.name], answer), reading=answer)
