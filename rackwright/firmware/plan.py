"""Which images a node needs, in which order, and what prevents the update. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import FirmwareError
from rackwright.firmware.compare import Line, NodeReport, Verdict
from rackwright.model.cluster import Cluster
from rackwright.model.firmware import Baseline, Release


@dataclass(frozen=True)
class UpdateStep:
    """One image, and what it is to bring to its declared version."""

    image: str | Path
    """A URL or a file."""
    sha256: str | None
    lines: tuple[Line, ...]

    @property
    def of_bmc(self) -> bool:
        """Whether the BMC itself is updated, which restarts it."""
        return any(line.declared_as == "bmc" for line in self.lines)

    @property
    def name(self) -> str:
        """The image's own name."""
        return self.image.name if isinstance(self.image, Path) else self.image.rsplit("/", 1)[-1]

    def __str__(self) -> str:
        what = ", ".join(f"{line.what} {line.found} -> {line.declared}" for line in self.lines)
        return f"{what} ({self.name})"


def steps(baseline: Baseline, lines: Iterable[Line]) -> tuple[UpdateStep, ...]:
    """The images that are needed: first the BMC's, then the BIOS', then others; an image of several parts once."""
    differing: dict[str, list[Line]] = {}
    for line in lines:
        if line.verdict is Verdict.DIFFERS and line.declared_as is not None:
            differing.setdefault(line.declared_as, []).append(line)
    found: dict[str | Path, tuple[Release, list[Line]]] = {}
    for name, release in baseline.releases.items():
        image = release.file or release.url
        if image is not None and name in differing:
            found.setdefault(image, (release, []))[1].extend(differing[name])
    return tuple(UpdateStep(image, release.sha256, tuple(of)) for image, (release, of) in found.items())


def without_image(baseline: Baseline, lines: Iterable[Line]) -> tuple[Line, ...]:
    """What differs and has no image declared."""
    return tuple(
        line
        for line in lines
        if line.verdict is Verdict.DIFFERS
        and line.declared_as is not None
        and not baseline.releases[line.declared_as].has_image
    )


def attributes_to_set(lines: Iterable[Line]) -> dict[str, object]:
    """BIOS attributes that differ, with their declared values."""
    return {line.what: line.declared for line in lines if line.attribute and line.verdict is Verdict.DIFFERS}


def refuse_unknown(reports: Sequence[NodeReport]) -> None:
    """FirmwareError where a BMC did not answer: nothing is changed on part of what was asked for."""
    silent = [one for one in reports if one.unknown]
    if silent:
        raise FirmwareError(
            "Nothing was changed: " + "; ".join((one.reason or one.node).rstrip(".") for one in silent) + ".",
            hint="exclude them from --limit, or check their BMCs: `rackwright bmc status FILE`",
        )


def refuse_attributes(reports: Sequence[NodeReport]) -> None:
    """FirmwareError where a declared BIOS attribute cannot be set, with the BMC's reason."""
    wrong = []
    for one in reports:
        refused = dict(one.reading.refused) if one.reading is not None else {}
        unknown = {
            line.what: line.reason or "unknown"
            for line in one.lines
            if line.attribute and line.verdict is Verdict.UNKNOWN
        }
        wrong += [f"{one.node}: {name}: {why}" for name, why in (unknown | refused).items()]
    if wrong:
        raise FirmwareError(
            "Nothing was changed: " + "; ".join(one.rstrip(".") for one in wrong) + ".",
            hint="correct `bios_attributes` of the SKU; use names and values from the vendor's attribute registry",
        )


def baseline_of(cluster: Cluster, node: str) -> Baseline:
    """What is declared for a node that is in scope."""
    return cluster.firmware[cluster.by_name[node].sku.name]


def planned_updates(cluster: Cluster, reports: Iterable[NodeReport]) -> dict[str, tuple[UpdateStep, ...]]:
    """Node in scope to the images that it needs."""
    return {one.node: steps(baseline_of(cluster, one.node), one.lines) for one in reports if one.lines}


def not_updatable(cluster: Cluster, reports: Iterable[NodeReport]) -> dict[str, tuple[Line, ...]]:
    """Node in scope to what differs and has no image, and what is not known."""
    return {
        one.node: (
            *without_image(baseline_of(cluster, one.node), one.lines),
            *(line for line in one.lines if line.verdict is Verdict.UNKNOWN and not line.attribute),
        )
        for one in reports
        if one.lines
    }


def planned_attributes(cluster: Cluster, reports: Iterable[NodeReport]) -> dict[str, tuple[str, ...]]:
    """Node in scope to its changes as text; pending changes of others are set at the same boot and listed too."""
    found: dict[str, tuple[str, ...]] = {}
    for one in reports:
        if not one.lines or one.reading is None:
            continue
        wanted, declared = attributes_to_set(one.lines), baseline_of(cluster, one.node).bios_attributes
        texts = [f"{name} {one.reading.attributes[name]} -> {value}" for name, value in wanted.items()]
        if texts:
            pending = one.reading.pending.items()
            texts += [
                f"{name} -> {value} (not declared, already pending)"
                for name, value in pending
                if name not in declared
            ]
        found[one.node] = tuple(texts)
    return found
