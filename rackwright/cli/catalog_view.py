"""A catalogue entry and the shared tables as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rackwright.burnin.floors import sku_floor
from rackwright.catalog.addons import AddonTable
from rackwright.catalog.kernels import KernelTable
from rackwright.catalog.tables import (
    CudaTable,
    DriverTable,
    MigTable,
    SecurityTable,
    Table,
    XidTable,
)
from rackwright.catalog.unknown import unknown_fields
from rackwright.model.sku import BusbwFloor, Sku, Source


def aligned(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Rows as lines with aligned columns; the last column is as wide as it likes."""
    listed = list(rows)
    widths = [max(len(cell) for cell in column) for column in zip(*listed, strict=True)][:-1]
    for row in listed:
        cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        yield "  ".join(cells).rstrip()


def sku_list(skus: Iterable[Sku]) -> Iterator[str]:
    """One line for each entry."""
    rows = [("SKU", "GPUS", "DESCRIPTION")]
    for sku in skus:
        gpus = "-" if sku.gpus is None else f"{sku.gpus.count} x {sku.gpus.model}"
        rows.append((sku.name, gpus, sku.description))
    return aligned(rows)


def sku_lines(sku: Sku) -> Iterator[str]:
    """An entry: every figure, what is published side by side, the sources, and what is not known."""
    yield f"{sku.name}: {sku.description}"
    yield ""
    rows = [
        (path, str(value))
        for path, value in _leaves("", sku.model_dump(mode="json", exclude=_APART))
        if value not in (None, [])
    ]
    yield from (f"  {line}" for line in aligned(rows))
    yield from _floor_lines(sku)
    if sku.host_varies:
        yield "\nThe board is cited; CPUs, memory, ports and drives are an example: declare your own."
    for published in sku.published:
        yield f"\n{published.field}: {published.chosen}"
        yield from (f"  published: {value}" for value in published.values)
        yield f"  chosen because: {published.reason}"
    yield "\nNot known: " + (", ".join(unknown_fields(sku)) or "nothing that this catalogue asks for")
    yield "\nSources:"
    yield from _source_lines(sku.sources)


_APART = {"name", "description", "sources", "published", "floors", "busbw_floors", "host_varies"}


def _floor_lines(sku: Sku) -> Iterator[str]:
    if not sku.floors and not sku.busbw_floors:
        return
    yield "\nFloors:"
    for floor in sku.busbw_floors:
        yield f"  nccl_busbw_gbs, {_nodes(floor)}: {floor.busbw_gbs:g}"
        yield from _source_lines((floor.source,), indent=4)
    last = max((floor.nodes_max or 0 for floor in sku.busbw_floors), default=0)
    beyond = (
        (nodes, sku_floor(sku, nodes)) for nodes in (4, 8, 16, 32, 64, 128, 256, 1024) if nodes > last > 0
    )
    shown = ", ".join(f"{nodes} nodes {floor.busbw_gbs:g}" for nodes, floor in beyond if floor is not None)
    if shown:
        yield f"  nccl_busbw_gbs, by interpolation and arithmetic: {shown}"
    for other in sku.floors:
        yield f"  {other.metric}: {other.floor:g}"
        yield from _source_lines((other.source,), indent=4)


def _nodes(floor: BusbwFloor) -> str:
    if floor.nodes_max is None:
        return f"{floor.nodes_min} or more nodes"
    if floor.nodes_max == floor.nodes_min:
        return f"{floor.nodes_min} node{'' if floor.nodes_min == 1 else 's'}"
    return f"{floor.nodes_min} to {floor.nodes_max} nodes"


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON data
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for position, inner in enumerate(value):
            words = [f"{key} {_plain(part)}" for key, part in inner.items() if part not in (None, [])]
            yield f"{path}[{position}]", ", ".join(words)
    else:
        yield path, _plain(value)


def _plain(value: Any) -> Any:  # noqa: ANN401
    return " ".join(str(part) for part in value) if isinstance(value, list) and value else value


def _source_lines(sources: Iterable[Source], indent: int = 2) -> Iterator[str]:
    return (f"{' ' * indent}- {source.text} (read {source.read})" for source in sources)


def table_lines(table: Table) -> Iterator[str]:
    """A shared table with its sources."""
    yield table.about
    yield ""
    yield from aligned(_rows(table))
    yield "\nSources:"
    yield from _source_lines(table.sources)


def _addon_rows(table: AddonTable) -> Iterator[tuple[str, ...]]:
    yield "ADD-ON", "VERSION", "KUBERNETES", "FROM"
    for addon in table.rows:
        since = "-" if addon.kubernetes_from is None else f"1.{addon.kubernetes_from}+"
        chart = None if addon.chart is None else f"{addon.chart.repository} {addon.chart.name}"
        yield addon.name, addon.version, since, addon.manifest or chart or "-"


def _rows(table: Table) -> Iterator[tuple[str, ...]]:
    match table:
        case XidTable():
            yield "XID", "ACTION", "DRAIN", "VENDOR", "MEANING"
            for xid in table.rows:
                others = f" [{'; '.join(xid.published)}]" if xid.published else ""
                drain = "yes" if xid.drain else "no"
                yield str(xid.code), xid.action, drain, xid.vendor or "-", xid.meaning + others
        case AddonTable():
            yield from _addon_rows(table)
        case MigTable():
            yield "GPU", "BALANCED", "PROFILES (most of each)"
            for gpu in table.rows:
                balanced = "-" if gpu.balanced is None else _counts(gpu.balanced)
                yield gpu.gpu, balanced, _counts({profile.name: profile.most for profile in gpu.profiles})
        case CudaTable():
            yield "CUDA", "CAME WITH", "NEEDS"
            floors = {floor.major: floor.driver for floor in table.floors}
            for cuda in table.rows:
                update = f" Update {cuda.update}" if cuda.update else ""
                needs = f">= {floors.get(int(cuda.release.split('.')[0]), 'not known')}"
                yield cuda.release + update, cuda.driver, needs
            yield "", "", ""
            yield "CAPABILITY", "FIRST DRIVER", "FIRST CUDA"
            for kind in table.capabilities:
                yield kind.capability, kind.first_driver or "-", kind.first_cuda
        case KernelTable():
            yield "OS", "CPU", "KERNEL", "VERSION", "READ"
            for archive in table.rows:
                for kernel in archive.kernels:
                    names = ", ".join(str(os) for os in archive.os)
                    yield names, archive.cpu, kernel.release, kernel.version, archive.read.isoformat()
        case DriverTable():
            yield "BRANCH", "KIND", "END OF LIFE", "CUDA", "NOTE"
            for row in table.rows:
                default = "default: " + table.default_reason if row.branch == table.default_branch else ""
                yield (
                    row.branch,
                    row.kind,
                    row.end_of_life or "-",
                    row.cuda or "-",
                    row.note or default or "-",
                )
        case SecurityTable():
            yield "COMPONENT", "BRANCH", "AT LEAST", "ADVISORY"
            for least in table.rows:
                yield least.component, least.branch or "-", least.version, least.advisory


def _counts(counts: dict[str, int]) -> str:
    return " ".join(f"{most}x{name}" for name, most in counts.items())
