"""Compares reported firmware with the declaration. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rackwright.bmc.interface import Firmware
from rackwright.errors import ExitCode
from rackwright.firmware.reading import Reading, named_by, same
from rackwright.model.firmware import Baseline, Release


class Verdict(StrEnum):
    """What is known of one version or setting."""

    AS_DECLARED = "as declared"
    DIFFERS = "differs"
    NOT_DECLARED = "not declared"
    UNKNOWN = "UNKNOWN"
    OUT_OF_SCOPE = "OUT OF SCOPE"


_WORST_FIRST = (
    Verdict.DIFFERS,
    Verdict.UNKNOWN,
    Verdict.AS_DECLARED,
    Verdict.NOT_DECLARED,
    Verdict.OUT_OF_SCOPE,
)


@dataclass(frozen=True)
class Line:
    """One version or BIOS attribute."""

    what: str
    """`bios`, `bmc`, the id of a component, the name of an attribute, or a glob that names nothing."""
    verdict: Verdict
    found: object | None = None
    declared: object | None = None
    reason: str | None = None
    declared_as: str | None = None
    """The key of the baseline that declares it: `bios`, `bmc` or a glob; None for attributes."""
    attribute: bool = False

    def to_json(self) -> dict[str, Any]:
        """As a document."""
        kind = "bios attribute" if self.attribute else "version"
        parts = {"what": self.what, "kind": kind, "verdict": self.verdict.value}
        return {**parts, "found": self.found, "declared": self.declared, "reason": self.reason}


@dataclass(frozen=True)
class NodeReport:
    """One node."""

    node: str
    lines: tuple[Line, ...] = ()
    reason: str | None = None
    """Why it is out of scope, or why its BMC did not answer."""
    hint: str | None = None
    unknown: bool = False
    """Its BMC did not answer."""
    reading: Reading | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of its lines."""
        if self.unknown:
            return Verdict.UNKNOWN
        return min((one.verdict for one in self.lines), key=_WORST_FIRST.index, default=Verdict.OUT_OF_SCOPE)

    def to_json(self) -> dict[str, Any]:
        """As a document."""
        return {
            "node": self.node,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "lines": [one.to_json() for one in self.lines],
        }


def judge(baseline: Baseline, reading: Reading) -> tuple[Line, ...]:
    """Every version and attribute: those that are declared, and components that are not."""
    return (*_own(baseline, reading), *_components(baseline, reading), *_attributes(baseline, reading))


def exit_code(reports: Iterable[NodeReport]) -> ExitCode:
    """3 where something differs, else 4 where something is UNKNOWN."""
    there = {one.verdict for one in reports}
    if Verdict.DIFFERS in there:
        return ExitCode.CHECK_FAILED
    return ExitCode.UNKNOWN if Verdict.UNKNOWN in there else ExitCode.CLEAN


def _own(baseline: Baseline, reading: Reading) -> Iterator[Line]:
    for name, release, found in (("bmc", baseline.bmc, reading.bmc), ("bios", baseline.bios, reading.bios)):
        if release is None:
            yield Line(name, Verdict.NOT_DECLARED, found)
        else:
            yield _version(name, found, release, name)


def _components(baseline: Baseline, reading: Reading) -> Iterator[Line]:
    declared: dict[str, list[str]] = {}
    for glob, release in baseline.components.items():
        named = named_by(glob, reading.components)
        for one in named:
            declared.setdefault(one.id, []).append(glob)
        if not named:
            why = reading.components_error or "the BMC lists no component with this id or name"
            yield Line(glob, Verdict.UNKNOWN, None, release.version, why, glob)
    for one in reading.components:
        globs = declared.get(one.id, [])
        versions = {baseline.components[glob].version for glob in globs}
        if not globs:
            yield Line(one.id, Verdict.NOT_DECLARED, one.version or None, None, _name_of(one))
        elif len(versions) > 1:
            why = f"it is declared twice: by {' and by '.join(globs)}"
            yield Line(one.id, Verdict.UNKNOWN, one.version or None, " or ".join(sorted(versions)), why)
        else:
            yield _version(one.id, one.version or None, baseline.components[globs[0]], globs[0])


def _name_of(one: Firmware) -> str | None:
    return one.name if one.name != one.id else None


def _version(what: str, found: str | None, release: Release, declared_as: str) -> Line:
    if found is None:
        return Line(
            what, Verdict.UNKNOWN, None, release.version, "the BMC reports no version of it", declared_as
        )
    verdict = Verdict.AS_DECLARED if found == release.version else Verdict.DIFFERS
    return Line(what, verdict, found, release.version, None, declared_as)


def _attributes(baseline: Baseline, reading: Reading) -> Iterator[Line]:
    for name, declared in baseline.bios_attributes.items():
        if reading.attributes_error is not None:
            yield Line(name, Verdict.UNKNOWN, None, declared, reading.attributes_error, attribute=True)
        elif name not in reading.attributes:
            why = "the BMC does not list the attribute"
            yield Line(name, Verdict.UNKNOWN, None, declared, why, attribute=True)
        else:
            found = reading.attributes[name]
            verdict = Verdict.AS_DECLARED if same(declared, found) else Verdict.DIFFERS
            yield Line(name, verdict, found, declared, _why(declared, found), attribute=True)


def _why(declared: object, found: object) -> str | None:
    """What is not to be seen when both values are printed."""
    if str(declared).lower() != str(found).lower() or same(declared, found):
        return None
    if isinstance(declared, str) and isinstance(found, str):
        return "only the case of its letters differs"
    return f"the BMC has {_KINDS.get(type(found), 'another type')}, but {_KINDS.get(type(declared), 'another')} is declared"


_KINDS: dict[type, str] = {str: "text (in quotes)", bool: "true or false", int: "a number", float: "a number"}
