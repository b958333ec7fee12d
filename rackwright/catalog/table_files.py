"""Reads the shared tables, each once, on first use."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TypeVar

from rackwright.catalog.addons import AddonTable
from rackwright.catalog.kernels import KernelTable
from rackwright.catalog.offers import OfferTable, PackageTable
from rackwright.catalog.tables import (
    CudaTable,
    DriverTable,
    MigTable,
    PairTable,
    SecurityTable,
    Table,
    XidTable,
)
from rackwright.documents.document import parse_document

TableT = TypeVar("TableT", bound=Table)


def _read(name: str, model: type[TableT]) -> TableT:
    file = files("rackwright.catalog").joinpath("tables", f"{name}.yaml")
    return model.model_validate(parse_document(file.read_bytes(), file.name).data)


@cache
def xid_table() -> XidTable:
    """XID actions."""
    return _read("xid", XidTable)


@cache
def mig_table() -> MigTable:
    """MIG profiles."""
    return _read("mig", MigTable)


@cache
def driver_table() -> DriverTable:
    """Driver branches and architecture rules."""
    return _read("drivers", DriverTable)


@cache
def cuda_table() -> CudaTable:
    """CUDA releases and their drivers."""
    return _read("cuda", CudaTable)


@cache
def security_table() -> SecurityTable:
    """Minimum-security versions."""
    return _read("security", SecurityTable)


@cache
def pair_table() -> PairTable:
    """Driver packages and kernel headers, known good and known bad."""
    return _read("pairs", PairTable)


@cache
def offer_table() -> OfferTable:
    """What package sources carry."""
    return _read("offers", OfferTable)


@cache
def kernel_table() -> KernelTable:
    """Kernels of the distributions."""
    return _read("kernels", KernelTable)


@cache
def package_table() -> PackageTable:
    """Package names by family and source."""
    return _read("packages", PackageTable)


@cache
def addon_table() -> AddonTable:
    """Add-ons of Kubernetes."""
    return _read("addons", AddonTable)
