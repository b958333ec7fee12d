"""What `rackwright verify` reports, by status."""

from __future__ import annotations

from tests.racks.site import Site


def results(site: Site, expect: int | None, *options: str) -> dict[str, list[dict[str, str]]]:
    """Results by status."""
    report = site.cli("verify", str(site.file), "--json", *options, expect=expect).json()
    by_status: dict[str, list[dict[str, str]]] = {}
    for result in report["results"]:
        by_status.setdefault(result["status"], []).append(result)
    return by_status


def named(results: list[dict[str, str]]) -> set[tuple[str, str, str]]:
    return {(result["node"], result["role"], result["check"]) for result in results}
