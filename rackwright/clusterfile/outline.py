"""The top level of the file: which sections exist, and whether each has the right type."""

from __future__ import annotations

from rackwright.clusterfile.file import ClusterFile
from rackwright.clusterfile.report import Report
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data

VERSION = 1

_LISTS = ("nodes",)
_MAPPINGS_OF_MANY = ("networks", "skus", "roles")


def read_outline(report: Report) -> dict[str, Data]:
    """The sections that exist and have the right type; mistakes are reported."""
    data = report.document.data
    if not isinstance(data, dict):
        report.add((), "The cluster file must be a mapping of sections.", "start with `version: 1`")
        return {}
    fields = ClusterFile.model_fields
    sections: dict[str, Data] = {}
    for key, value in data.items():
        if key not in fields:
            report.add(
                (key,),
                f"Unknown section `{short(key)}`.",
                suggest(key, fields, what="sections"),
                key=True,
            )
        elif key != "version" and _has_shape(report, key, value):
            sections[key] = value
    for key, field in fields.items():
        if key not in data and field.is_required():
            hint = "add `version: 1`" if key == "version" else None
            report.add((key,), f"The section `{key}` is missing.", hint, key=True)
    if "version" in data and data["version"] != VERSION:
        report.add(("version",), f"Unsupported file format version; rackwright reads version {VERSION}.")
    return sections


def _has_shape(report: Report, key: str, value: Data) -> bool:
    required = ClusterFile.model_fields[key].is_required()
    if key in _LISTS:
        if not isinstance(value, list):
            report.add((key,), "Expected a list.", "write one `- nodes: ...` entry per group")
            return False
        if not value:
            report.add((key,), "The cluster has no nodes.", "e.g. `- nodes: gpu[001-128]`")
        return bool(value)
    if value is None and not required:
        return False
    if not isinstance(value, dict):
        report.add((key,), "Expected a mapping.", "write `key: value` lines below it")
        return False
    if key in _MAPPINGS_OF_MANY and required and not value:
        report.add((key,), f"The section `{key}` is empty.")
        return False
    return True
