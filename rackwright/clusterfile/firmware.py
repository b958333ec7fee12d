"""Declared firmware by SKU: checks it, and makes image paths absolute."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.document import DataPath
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.firmware import Baseline, Release, matches
from rackwright.model.sku import Sku


def read_firmware(report: Report, raw: Data, skus: Mapping[str, Sku], folder: Path) -> dict[str, Baseline]:
    """The section, by SKU name."""
    found: dict[str, Baseline] = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        path = ("firmware", name)
        if name not in skus and report.clean(("skus",)):
            report.add(path, f"SKU {short(name)} does not exist.", suggest(name, skus, what="SKUs"), key=True)
        baseline = read_section(report, Baseline, entry, path)
        _check_globs(report, entry, (*path, "components"))
        _check_files(report, entry, path, folder)
        if baseline is not None:
            found[name] = _resolved(baseline, folder)
    return found


def _check_globs(report: Report, entry: Data, path: DataPath) -> None:
    """Report globs that match every component, and pairs of globs that overlap."""
    globs = list(_mapping(_mapping(entry).get("components")))
    for glob in globs:
        if not glob.strip("*?"):
            report.add((*path, glob), f"`{glob}` matches every component.", "e.g. `HGX_FW_GPU_*`", key=True)
    named = [glob for glob in globs if glob.strip("*?")]
    for one, other in combinations(named, 2):
        if matches(other, one) or matches(one, other):
            report.add(
                (*path, other),
                f"`{other}` and `{one}` match the same component.",
                "declare each component once",
                key=True,
            )


def _check_files(report: Report, entry: Data, path: DataPath, folder: Path) -> None:
    """Report missing image files, also for releases that have other mistakes."""
    given = _mapping(entry)
    releases: dict[DataPath, Data] = {(name,): given.get(name) for name in ("bios", "bmc")}
    releases |= {("components", glob): one for glob, one in _mapping(given.get("components")).items()}
    for below, release in releases.items():
        file = _mapping(release).get("file")
        if not isinstance(file, str) or (folder / Path(file).expanduser()).is_file():
            continue
        where = (*path, *below, "file")
        report.add(where, f"{folder / file} does not exist.", "the path is relative to the cluster file")


def _mapping(value: Data) -> dict[str, Data]:
    return value if isinstance(value, dict) else {}


def _resolved(baseline: Baseline, folder: Path) -> Baseline:
    """The baseline with absolute paths."""

    def absolute(release: Release | None) -> Release | None:
        if release is None or release.file is None:
            return release
        return release.model_copy(update={"file": folder / release.file.expanduser()})

    components = {glob: absolute(one) for glob, one in baseline.components.items()}
    own = {name: absolute(getattr(baseline, name)) for name in ("bios", "bmc")}
    return baseline.model_copy(update={**own, "components": components})
