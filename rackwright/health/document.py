"""The probe's document, typed: one class per section, values checked when read."""

from __future__ import annotations

from typing import Any, TypeVar

from rackwright.health.amd_records import (
    AmdBadPagesSection,
    AmdGpuSection,
    AmdMetricsSection,
    AmdTopologySection,
)
from rackwright.health.bmc_records import BmcSection
from rackwright.health.dcgm_records import DcgmSection, DiagSection
from rackwright.health.gpu_records import GpuSection, NvlinkSection, PciSection, TopologySection
from rackwright.health.kernel_records import KernelLogSection
from rackwright.health.node_records import (
    ArraysSection,
    BluefieldsSection,
    ClockSection,
    CpuSection,
    DriverSection,
    FirmwareSection,
    InfinibandSection,
    LinksSection,
    MemorySection,
    MountsSection,
    NamingSection,
    NetworkSection,
    NvmeSection,
    PackagesSection,
    ProcessesSection,
    ServicesSection,
    SystemSection,
)
from rackwright.health.records import WHOLE_MAX, Record, Unreadable, describe, is_time

SCHEMA = "rackwright-probe"
VERSION = 1
SNAPSHOTS_MAX = 200
"""A node keeps about fifty."""

S = TypeVar("S", bound=Record)


def _is_snapshot(one: Any) -> bool:  # noqa: ANN401 - unchecked until here
    if not isinstance(one, dict) or not is_time(one.get("at")):
        return False
    changed = one.get("changed")
    return isinstance(changed, dict) and all(
        type(value) is int and abs(value) < WHOLE_MAX for value in changed.values()
    )


class Document:
    """One probe document, possibly malformed; reading a missing section raises Unreadable."""

    def __init__(self, raw: Any) -> None:  # noqa: ANN401 - unchecked until here
        self._raw = raw

    @property
    def node(self) -> str:
        """The node's own host name."""
        name = self._sections and self._raw.get("node")
        if not isinstance(name, str):
            raise Unreadable("the document has no node name")
        return name

    @property
    def taken_at(self) -> float:
        """When it was taken, seconds since the epoch by the node's clock."""
        at: Any = self._sections and self._raw.get("taken_at")
        if not is_time(at):
            raise Unreadable("the document has no time")
        return float(at)

    @property
    def _sections(self) -> dict[str, Any]:
        if not isinstance(self._raw, dict) or self._raw.get("schema") != SCHEMA:
            raise Unreadable("not a document of rackwright's probe")
        if self._raw.get("version") != VERSION:
            raise Unreadable(
                f"the document has version {describe(self._raw.get('version'))}; this rackwright reads version {VERSION}"
            )
        sections = self._raw.get("sections")
        if not isinstance(sections, dict):
            raise Unreadable("the document has no sections")
        return sections

    def has(self, name: str) -> bool:
        """Whether the probe was asked to read this section."""
        try:
            return name in self._sections
        except Unreadable:
            return True  # then every check reports the error

    def _section(self, name: str, kind: type[S]) -> S:
        section = self._sections.get(name)
        if not isinstance(section, dict):
            raise Unreadable(f"the document has no section {name}")
        if section.get("ok") is not True:
            why = section.get("why")
            raise Unreadable(f"{name}: {why if isinstance(why, str) else 'not read'}")
        return kind(section.get("data"), name)

    @property
    def snapshots(self) -> list[dict[str, Any]]:
        """Counters of earlier passes (`rackwright.health.history`); empty if the node keeps none."""
        try:
            history = self._sections.get("history")
        except Unreadable:
            return []
        found = history.get("data") if isinstance(history, dict) else None
        snapshots = found.get("snapshots") if isinstance(found, dict) else None
        if not isinstance(snapshots, list) or len(snapshots) > SNAPSHOTS_MAX:
            return []
        if not all(_is_snapshot(one) for one in snapshots):
            return []
        return snapshots

    @property
    def gpus(self) -> GpuSection:
        return self._section("gpus", GpuSection)

    @property
    def nvlink(self) -> NvlinkSection:
        return self._section("nvlink", NvlinkSection)

    @property
    def topology(self) -> TopologySection:
        return self._section("topology", TopologySection)

    @property
    def amd_gpus(self) -> AmdGpuSection:
        return self._section("amd_gpus", AmdGpuSection)

    @property
    def amd_metrics(self) -> AmdMetricsSection:
        return self._section("amd_metrics", AmdMetricsSection)

    @property
    def amd_bad_pages(self) -> AmdBadPagesSection:
        return self._section("amd_bad_pages", AmdBadPagesSection)

    @property
    def amd_topology(self) -> AmdTopologySection:
        return self._section("amd_topology", AmdTopologySection)

    @property
    def dcgm(self) -> DcgmSection:
        return self._section("dcgm", DcgmSection)

    @property
    def dcgm_diag(self) -> DiagSection:
        return self._section("dcgm_diag", DiagSection)

    @property
    def pci(self) -> PciSection:
        return self._section("pci", PciSection)

    @property
    def driver(self) -> DriverSection:
        return self._section("driver", DriverSection)

    @property
    def packages(self) -> PackagesSection:
        return self._section("packages", PackagesSection)

    @property
    def infiniband(self) -> InfinibandSection:
        return self._section("infiniband", InfinibandSection)

    @property
    def links(self) -> LinksSection:
        return self._section("links", LinksSection)

    @property
    def bluefields(self) -> BluefieldsSection:
        return self._section("bluefields", BluefieldsSection)

    @property
    def network(self) -> NetworkSection:
        return self._section("network", NetworkSection)

    @property
    def cpu(self) -> CpuSection:
        return self._section("cpu", CpuSection)

    @property
    def memory(self) -> MemorySection:
        return self._section("memory", MemorySection)

    @property
    def firmware(self) -> FirmwareSection:
        return self._section("firmware", FirmwareSection)

    @property
    def nvme(self) -> NvmeSection:
        return self._section("nvme", NvmeSection)

    @property
    def arrays(self) -> ArraysSection:
        return self._section("arrays", ArraysSection)

    @property
    def mounts(self) -> MountsSection:
        return self._section("mounts", MountsSection)

    @property
    def system(self) -> SystemSection:
        return self._section("system", SystemSection)

    @property
    def naming(self) -> NamingSection:
        return self._section("naming", NamingSection)

    @property
    def processes(self) -> ProcessesSection:
        return self._section("processes", ProcessesSection)

    @property
    def clock(self) -> ClockSection:
        return self._section("clock", ClockSection)

    @property
    def services(self) -> ServicesSection:
        return self._section("services", ServicesSection)

    @property
    def kernel_log(self) -> KernelLogSection:
        return self._section("kernel_log", KernelLogSection)

    @property
    def bmc(self) -> BmcSection:
        return self._section("bmc", BmcSection)
