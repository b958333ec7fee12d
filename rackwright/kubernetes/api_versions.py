"""API versions that depend on the server's release: one entry for each kind that moved."""

from __future__ import annotations


def minor(version: str) -> int:
    """20 of `1.20.2`."""
    return int(version.split(".")[1])


def disruption_budgets(version: str) -> str:
    """Of PodDisruptionBudget: v1 from 1.21 on; v1beta1 is gone from 1.25 on (deprecation guide, read 2026-11-28)."""
    return "policy/v1" if minor(version) >= 21 else "policy/v1beta1"
