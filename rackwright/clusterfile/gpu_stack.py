"""The `gpu_stack:` section and contradictions in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.yaml_data import Data
from rackwright.model.gpu_stack import GpuStack


def read_gpu_stack(report: Report, raw: Data, file: Path) -> GpuStack | None:
    """The section, with index paths made absolute against the cluster file's folder; None if absent."""
    if raw is None:
        return None
    stack = read_section(report, GpuStack, raw, ("gpu_stack",))
    if stack is None:
        return None
    for path, message, hint in _contradictions(stack):
        if report.clean(("gpu_stack", *path)):
            report.add(("gpu_stack", *path), message, hint)
    folder = file.absolute().parent
    index = tuple(place if urlsplit(place).scheme else str(folder / place) for place in stack.package_index)
    return stack.model_copy(update={"package_index": index})


def _contradictions(stack: GpuStack) -> Iterator[tuple[tuple[str | int, ...], str, str | None]]:
    driver = stack.driver
    if driver.branch and driver.version and driver.version.split(".")[0] != driver.branch:
        yield (
            ("driver", "version"),
            f"The version does not belong to branch {driver.branch}.",
            "set only one of `branch` and `version`",
        )
    if stack.doca is not None and stack.ofed != "doca":
        yield ("doca",), "A DOCA release needs `ofed: doca`, but `ofed` is `inbox`.", "set `ofed: doca`"
    if stack.mok_enrolled and not stack.secure_boot:
        yield (
            ("mok_enrolled",),
            "`mok_enrolled` has no effect without Secure Boot.",
            "set `secure_boot: true`",
        )
    for position, place in enumerate(stack.package_index):
        parts = urlsplit(place)
        if parts.scheme not in ("", "http", "https", "file") or (
            parts.scheme in ("http", "https") and not parts.hostname
        ):
            yield (
                ("package_index", position),
                "Not a path or a valid http or https URL.",
                "e.g. `http://mirror.example.com/cuda/ubuntu2404/x86_64/Packages.gz`",
            )
