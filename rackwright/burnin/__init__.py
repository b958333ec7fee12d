"""Burn-in: collectives between the workers, run through the workload manager and judged against a declared floor."""

from rackwright.burnin.report import BurninReport
from rackwright.burnin.run import burnin

__all__ = ["BurninReport", "burnin"]
