"""Site-wide sections: ssh, mirrors, burn-in and SKUs."""

from __future__ import annotations

import re
from pathlib import Path

from rackwright.catalog.read import catalogue
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.yaml_data import Data
from rackwright.model.settings import Burnin, Mirrors, Ssh
from rackwright.model.sku import Sku, SkuEntry
from rackwright.model.text import label_mistake

_NCCL_NAME = re.compile(r"(NCCL|UCX|OMPI_MCA|CUDA|UCC|SHARP)_[A-Z0-9_a-z]+")


def read_skus(report: Report, raw: Data) -> dict[str, Sku]:
    """The catalogue with the site's SKUs merged over it."""
    skus = dict(catalogue())
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        path = ("skus", name)
        wrong = label_mistake(name)
        if wrong is not None:
            report.add(path, wrong, key=True)
        section = read_section(report, SkuEntry, entry, path)
        if section is not None:
            skus[name] = Sku(name=name, **dict(section))
    return skus


def read_ssh(report: Report, raw: Data, file: Path) -> Ssh | None:
    """SSH settings, with paths made absolute against the cluster file's folder."""
    if raw is None:
        return None
    ssh = read_section(report, Ssh, raw, ("ssh",))
    if ssh is None:
        return None
    if ssh.user == "root":
        report.add(
            ("ssh", "user"),
            "rackwright logs in as an unprivileged user and uses sudo; it never logs in as root.",
            "name an unprivileged user, e.g. `admin`",
        )
    folder = file.absolute().parent
    return ssh.model_copy(
        update={
            "key": None if ssh.key is None else folder / ssh.key.expanduser(),
            "known_hosts": folder / ssh.known_hosts.expanduser(),
        }
    )


def read_mirrors(report: Report, raw: Data) -> Mirrors:
    """The site's mirrors."""
    return read_section(report, Mirrors, raw, ("mirrors",)) or Mirrors()


def read_burnin(report: Report, raw: Data) -> Burnin:
    """The burn-in settings."""
    burnin = read_section(report, Burnin, raw, ("burnin",)) or Burnin()
    path = ("burnin", "floor_busbw_gbs")
    if (
        burnin.floor_busbw_gbs is not None
        and burnin.floor_source is None
        and report.clean(("burnin", "floor_source"))
    ):
        report.add(path, "A floor needs a source.", "e.g. `floor_source: measured here, 2026-11-20`")
    if burnin.floors_by_nodes and burnin.floor_source is None and report.clean(("burnin", "floor_source")):
        report.add(
            ("burnin", "floors_by_nodes"),
            "Floors need a source.",
            "e.g. `floor_source: measured here, 2026-11-20`",
        )
    declared = burnin.floor_busbw_gbs is not None or burnin.floors_by_nodes
    by_nodes = ("burnin", "floors_by_nodes")
    if burnin.floor_source is not None and not declared and report.clean(path) and report.clean(by_nodes):
        report.add(("burnin", "floor_source"), "A floor source needs a floor.", "add `floor_busbw_gbs`")
    if burnin.max_bytes is not None and burnin.max_bytes < burnin.min_bytes:
        report.add(("burnin", "max_bytes"), f"`max_bytes` is less than `min_bytes` ({burnin.min_bytes}).")
    for name in burnin.nccl_env:
        if not _NCCL_NAME.fullmatch(name):
            report.add(
                ("burnin", "nccl_env", name),
                "Not a variable of NCCL, UCX, Open MPI, CUDA, UCC or SHARP.",
                "e.g. `NCCL_IB_HCA`",
                key=True,
            )
    return burnin
