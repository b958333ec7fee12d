"""rackwright catalog: the shipped catalogue with its sources and the figures it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated

import typer

from rackwright.catalog import table_files
from rackwright.catalog.read import catalogue
from rackwright.catalog.tables import Table
from rackwright.catalog.unknown import unknown_fields
from rackwright.cli.catalog_view import sku_lines, sku_list, table_lines
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.documents.nearest import suggest
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.sku import Sku


class TableName(StrEnum):
    """The shared tables that can be printed."""

    XID = "xid"
    MIG = "mig"
    CUDA = "cuda"
    DRIVERS = "drivers"
    SECURITY = "security"
    KERNELS = "kernels"
    ADDONS = "addons"


_TABLES: dict[TableName, Callable[[], Table]] = {
    TableName.XID: table_files.xid_table,
    TableName.MIG: table_files.mig_table,
    TableName.CUDA: table_files.cuda_table,
    TableName.DRIVERS: table_files.driver_table,
    TableName.SECURITY: table_files.security_table,
    TableName.KERNELS: table_files.kernel_table,
    TableName.ADDONS: table_files.addon_table,
}


class SkuAndTable(RackwrightError):  # noqa: N818 - reads as a sentence
    """Both a SKU and a table were requested."""

    exit_code = ExitCode.USAGE


def catalog_command(
    sku: Annotated[
        str | None,
        typer.Argument(
            metavar="[SKU]", help="A node model; none: list them.", autocompletion=lambda: list(catalogue())
        ),
    ] = None,
    table: Annotated[TableName | None, typer.Option("--table", help="A shared table instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Print the catalogue: node models with every figure's source, or one of the shared tables.

    SKUs in the cluster file override these; `rackwright show` prints which one is used. The
    JSON has `skus` (names with descriptions), or `sku` (the entry, as in the
    catalogue's files) and `unknown` (paths without a known value), or `table` (`about`, `sources`, `rows`).
    """
    if sku is not None and table is not None:
        raise SkuAndTable("SKU and --table exclude each other.", hint="give one of them")
    if table is not None:
        content = _TABLES[table]()
        _print({"table": content.model_dump(mode="json")}, table_lines(content), as_json)
        return
    entries = catalogue()
    if sku is None:
        listed = [{"name": name, "description": entry.description} for name, entry in entries.items()]
        _print({"skus": listed}, sku_list(entries.values()), as_json)
        return
    if sku not in entries:
        raise RackwrightError(
            f"The catalogue has no SKU {sku}.", hint=suggest(sku, entries, what="the catalogue's entries")
        )
    _print(_entry(entries[sku]), sku_lines(entries[sku]), as_json)


def _entry(sku: Sku) -> dict[str, object]:
    return {"sku": sku.model_dump(mode="json"), "unknown": list(unknown_fields(sku))}


def _print(content: dict[str, object], lines: Iterable[str], as_json: bool) -> None:
    if as_json:
        print_document("catalog", content)
    else:
        say("\n".join(lines))
