"""Every document that a command prints, by name: `verify` has `"kind": "rackwright.verify"`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from rackwright.clusterfile.json_schema import cluster_schema
from rackwright.plan.document import plan_schema
from rackwright.schemas import acceptance, files, measured, mirror, nodes, pictures, plans
from rackwright.schemas.base import Document, check, schema_of

_MODELS: tuple[tuple[str, type[Document]], ...] = (
    ("validate FILE --json", files.Validate),
    ("show FILE --json", files.Show),
    ("map FILE --json", pictures.Map),
    ("catalog --json", files.Catalog),
    ("lock FILE --json", files.Lock),
    ("bundle FILE --json", mirror.Bundle),
    ("render FILE --node NODE --json", files.Render),
    ("discover FILE --json", files.Discover),
    ("decommission FILE --json", files.Certificates),
    ("apply FILE --json", plans.Apply),
    ("runs --json", plans.Runs),
    ("runs ID --json", plans.OneRun),
    ("secrets list FILE --json", files.Secrets),
    ("secrets show-recipients FILE --json", files.Recipients),
    ("drift FILE --json", plans.Drift),
    ("verify FILE --json", measured.Verify),
    ("why FILE NODE --json", nodes.Why),
    ("logs FILE --json", nodes.Logs),
    ("health FILE --json", nodes.Health),
    ("health FILE --would --json", nodes.Would),
    ("fabric show FILE --json", measured.Fabric),
    ("fabric check FILE --json", measured.FabricCheck),
    ("storage show FILE --json", measured.StorageShow),
    ("storage bench|checkpoint FILE --json", measured.Storage),
    ("burnin FILE --json", measured.Burnin),
    ("burnin compare FILE --json", measured.Compared),
    ("accept FILE, as report.json", acceptance.Accept),
    ("bmc status FILE --json", nodes.BmcStatus),
    ("bmc log FILE --json", nodes.BmcLog),
    ("bmc power|identify|boot-order FILE --json", nodes.BmcAnswers),
    ("firmware check FILE --json", nodes.FirmwareCheck),
    ("drill alerts FILE --json", files.Drill),
    ("lab status FILE --json", files.LabStatus),
)


def _kinds(model: type[Document]) -> tuple[str, ...]:
    kinds: tuple[str, ...] = get_args(model.model_fields["kind"].annotation)
    return kinds


DOCUMENTS: dict[str, tuple[str, type[Document]]] = {
    kind.removeprefix("rackwright."): (command, model) for command, model in _MODELS for kind in _kinds(model)
}
"""Name -> (the command that prints it, its model)."""

_OTHERS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "cluster": ("the cluster file", cluster_schema),
    "plan": ("plan FILE --json", plan_schema),
}


def names() -> dict[str, str]:
    """The command of each document by its name."""
    return {
        **{name: command for name, (command, _) in _OTHERS.items()},
        **{name: command for name, (command, _) in DOCUMENTS.items()},
    }


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document; KeyError if there is none."""
    if name in _OTHERS:
        return _OTHERS[name][1]()
    return schema_of(DOCUMENTS[name][1], f"rackwright {name}")


def check_document(name: str, text: str) -> None:
    """ValueError with the first mistake, if this JSON is not the document of that name."""
    check(DOCUMENTS[name][1], text)
