"""Stored burn-ins, for comparison with the next."""

from __future__ import annotations

from rackwright.burnin.report import Previous
from rackwright.errors import BurninError
from rackwright.result_store import ResultStore

RESULTS = ResultStore("burnin", BurninError)


def previous(
    cluster: str, *, engine: str, nodes: tuple[str, ...], size: int, busbw_gbs: float
) -> Previous | None:
    """The last stored run of the same engine, nodes and size, compared; None if there is none.

    Only runs with a figure count.
    """
    wanted = {"engine": engine, "nodes": list(nodes), "size": size}
    for document in reversed(RESULTS.all(cluster)):
        groups = document.get("groups")
        for group in groups if isinstance(groups, list) else []:
            figure = group.get("busbw_gbs") if isinstance(group, dict) else None
            if not isinstance(figure, int | float):
                continue
            if figure and all(group.get(key) == value for key, value in wanted.items()):
                change = 100 * (busbw_gbs - figure) / figure
                return Previous(str(document.get("started")), float(figure), round(change, 1))
    return None
