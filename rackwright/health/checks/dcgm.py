"""DCGM: its health watches and the last diagnostic."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.dcgm_records import DcgmIncident, DiagResult
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, unknown, warn
from rackwright.status import Status

HEALTHY, WARNING, FAILURE = "Healthy", "Warning", "Failure"
SYSTEMS = {
    "PCIe system": Action.REBOOT,
    "NVLINK system": Action.RESET_GPU,
    "Memory system": Action.RESET_GPU,
    "SM system": Action.RESET_GPU,
    "InfoROM system": Action.RMA,
    "Driver": Action.REBOOT,
}
"""The action for a failure of each system; for any other (thermal, power, ConnectX), a drain."""
PASSED = ("pass", "skip", "skipped", "not run")
AHEAD_SECONDS = 60.0
"""How much newer than the document a file may be."""
MONITOR, CONFIGURATION, RESET = 1, 5, 6
"""dcgmErrorSeverity_enum: the GPU can work; a setting is wrong; drain and reset."""


def declared(expected: Expected) -> bool:
    """A container has no host engine, even if the lab simulates GPUs."""
    return scope.gpus(expected) and expected.dcgm is not None and expected.platform != "container"


@check(
    "gpu", "DCGM's health watches report no incident", reads=("dcgm",), applies=declared,
    remedy="Run `dcgmi health -c`. PCIe and driver incidents: reboot. Memory and NVLink: reset the GPU. InfoROM: RMA.",
    source="NVIDIA DCGM health watches; OCI oci-hpc: IMEX and a failure without an incident are warnings",
)  # fmt: skip
def dcgm_health(expected: Expected, document: Document) -> Iterator[Finding]:
    section = document.dcgm

    def judge(incident: DcgmIncident) -> Finding | None:
        said = f"{incident.entity}, {incident.system}: {incident.text or incident.health}"
        if (
            incident.health == WARNING or "imex" in incident.text.lower()
        ):  # DCGM watches IMEX where none is used
            return warn(said)
        if incident.health == FAILURE:
            return fail(said, SYSTEMS.get(incident.system))
        return None if incident.health == HEALTHY else unknown(said)

    if section.overall not in (HEALTHY, WARNING, FAILURE):
        yield unknown(f"DCGM reports the health {section.overall!r}")
    elif section.overall != HEALTHY and not section.incidents:
        yield warn(f"DCGM reports {section.overall} without an incident")
    yield from each(section.incidents, judge, HEALTHY)


@check(
    "gpu", "No test of DCGM's last diagnostic failed", reads=("dcgm_diag",), applies=declared,
    limits=("dcgm_diag_age_s",), remedy="Follow the test's advice, then rerun `dcgmi diag -r 3`. If the same GPU fails again, open an RMA.",
    source="the result of `dcgmi diag -j` that the site keeps in dcgm-diag.json; DCGM's error severities",
)  # fmt: skip
def dcgm_diag(expected: Expected, document: Document) -> Iterator[Finding]:
    section, most = document.dcgm_diag, expected.limit("dcgm_diag_age_s")
    results = section.results
    if section.at is None:
        yield Finding(Status.OUT_OF_SCOPE, "the node has no saved dcgmi diag result")
        return
    age = document.taken_at - section.at
    if age < -AHEAD_SECONDS:
        yield unknown(f"the last dcgmi diag is dated {-age:.0f} s ahead of the node's clock")
        return
    if age > most:
        yield Finding(
            Status.OUT_OF_SCOPE, f"the last dcgmi diag was {age / 3600:.0f} h ago (most {most / 3600:g} h)"
        )
        return

    if all(result.status != "pass" for result in results):
        yield unknown(f"none of {len(results)} tests passed")
    yield from each(results, judge_result, f"{len(results)} results")


def judge_result(result: DiagResult) -> Finding | None:
    """The finding of one `dcgmi diag` result; None if the test passed or does not apply."""
    if result.status in PASSED:
        return None
    said = f"{result.entity}: {result.test}: {result.text or result.status}"
    if result.status == "warn" or result.severity in (MONITOR, CONFIGURATION):
        return warn(said)
    if result.status != "fail":
        return unknown(said)
    return fail(said, Action.RESET_GPU if result.severity == RESET else None)
