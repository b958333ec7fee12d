"""Bit error rates of the fabric ports."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.node_records import LinkPort
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Finding, fail, warn
from rackwright.status import Status


@check(
    "fabric", "No active fabric port has a high bit error rate", reads=("links",), applies=scope.rdma,
    needs=("hardware",), limits=("ber_effective_warn", "ber_effective_fail", "ber_raw_warn"),
    remedy="Clean and reseat the cable at both ends, then replace it. If the same port fails again, suspect the NIC or switch port.",
    source="ibdiagnet and OCI oci-dr-hpc: 1e-12; NVIDIA deepops: 1e-9; judged where mlxlink or mstlink is installed",
)  # fmt: skip
def rdma_ber(expected: Expected, document: Document) -> Iterator[Finding]:
    section = document.links
    most, high = expected.limit("ber_effective_fail"), expected.limit("ber_effective_warn")
    raw = expected.limit("ber_raw_warn")
    if section.tool is None:
        yield Finding(Status.OUT_OF_SCOPE, "neither mlxlink (MFT) nor mstlink (mstflint) is installed")
        return

    def judge(port: LinkPort) -> Finding | None:
        if port.why is not None:
            raise Unreadable(f"{port.device}: {port.why}")
        if port.state != "Active":
            return fail(f"{port.device}: the link is in state {port.state}")
        evidence = f"{port.device}: effective BER {port.effective_ber:g}, raw BER {port.raw_ber:g}"
        if port.effective_ber > most:
            return fail(f"{evidence} (most {most:g} effective)")
        if port.effective_ber > high or port.raw_ber > raw:
            return warn(f"{evidence} (a good link: {high:g} effective, {raw:g} raw)")
        return None

    ports = section.ports
    if not ports:
        raise Unreadable("no fabric port is active")
    yield from each(ports, judge, f"{len(ports)} ports")
