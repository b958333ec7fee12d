"""Documents of single nodes: health, why, logs, BMCs, firmware."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rackwright.firmware.compare import Verdict
from rackwright.health.guard.would import Episode
from rackwright.health.verdict import HealthResult
from rackwright.logs.report import Line
from rackwright.schemas.base import ClusterName, Document, Finding, Open, Part, Reason
from rackwright.status import Status


class HealthNode(Part):
    """One node."""

    node: str
    status: Status
    action: str = Field(description="What the workload manager's health check would do: none, drain, ...")
    why: str | None = Field(description="Why nothing is known of it; null: something is.")
    taken_at: float | None = Field(description="Unix time.")
    seconds: float | None
    cpu_seconds: float | None
    results: tuple[HealthResult, ...]


class Health(Document):
    """`health`: what the hardware reports, against the declaration."""

    kind: Literal["rackwright.health"]
    cluster: str = ClusterName
    status: Status
    nodes: tuple[HealthNode, ...]
    not_saved: dict[str, str] = Field(description="With `--save`: why a node's document was not written.")


class WouldRecord(Part):
    """What a node would have been drained for."""

    version: Literal[1]
    acts: bool
    since: float
    at: float
    current: Episode | None
    past: tuple[Episode, ...]


class WouldNode(Part):
    """One node."""

    node: str
    status: Status
    why: str | None
    record: WouldRecord | None


class Would(Document):
    """`health --would`: what the health check would have drained while it only observes."""

    kind: Literal["rackwright.health.would"]
    cluster: str = ClusterName
    nodes: tuple[WouldNode, ...]


class WhyPart(Open):
    """One answer; each part has further fields, in docs/health.md."""

    part: str
    unknown: bool
    lines: tuple[str, ...]


class Why(Document):
    """`why`: the state of one node."""

    kind: Literal["rackwright.why"]
    cluster: str = ClusterName
    node: str
    parts: tuple[WhyPart, ...]
    next_step: str


class Job(Part):
    """The job whose lines were asked for; times are Unix times."""

    id: str
    nodes: tuple[str, ...]
    submitted: float | None
    started: float | None
    ended: float | None


class Logs(Document):
    """`logs`: lines of the nodes' journals, oldest first."""

    kind: Literal["rackwright.logs"]
    cluster: str = ClusterName
    store: str
    server: str
    since: float = Field(description="Unix time.")
    until: float
    job: Job | None
    lines: tuple[Line, ...]
    more: bool = Field(description="Whether older lines were left out, to keep to `--lines`.")
    newest: dict[str, float | None]
    unknown: tuple[str, ...]


class BmcEntry(Part):
    """An entry of a BMC's event log."""

    when: str | None
    severity: str
    message: str
    sensor: str | None


class BmcStatusNode(Part):
    """One node; without an answer of its BMC, `findings` alone."""

    node: str
    status: Status
    findings: tuple[Finding, ...]
    power: str | None = None
    health: str | None = None
    watts: float | None = None
    sel_full_percent: float | None = None
    identity: dict[str, Any] | None = None
    power_supplies: tuple[dict[str, Any], ...] | None = None
    fans: tuple[dict[str, Any], ...] | None = None
    temperatures: tuple[dict[str, Any], ...] | None = None
    last_critical: BmcEntry | None = None


class BmcStatus(Document):
    """`bmc status`: what the BMCs report."""

    kind: Literal["rackwright.bmc.status"]
    cluster: str = ClusterName
    nodes: tuple[BmcStatusNode, ...]


class BmcLog(Document):
    """`bmc log`: the newest entries of each event log, or why there are none."""

    kind: Literal["rackwright.bmc.log"]
    cluster: str = ClusterName
    nodes: dict[str, tuple[BmcEntry, ...] | Reason]


class BmcAnswers(Document):
    """`bmc power`, `bmc identify` and `bmc boot-order`: what each BMC answered, or why it did not."""

    kind: Literal["rackwright.bmc.power", "rackwright.bmc.identify", "rackwright.bmc.boot-order"]
    cluster: str = ClusterName
    nodes: dict[str, Annotated[dict[str, str], Field(min_length=1)]] = Field(
        description="By node `power`, `result`, `light` or `boot order`; or `error`."
    )


class FirmwareLine(Part):
    """A version or a BIOS attribute."""

    what: str
    kind: Literal["version", "bios attribute"]
    verdict: Verdict
    found: Any
    declared: Any
    reason: str | None


class FirmwareNode(Part):
    """One node."""

    node: str
    verdict: Verdict
    reason: str | None
    lines: tuple[FirmwareLine, ...]


class FirmwareCheck(Document):
    """`firmware check`: versions and BIOS attributes against the declared ones."""

    kind: Literal["rackwright.firmware.check"]
    cluster: str = ClusterName
    nodes: tuple[FirmwareNode, ...]
