"""burnin: collectives between the workers through the workload manager, judged against a declared floor."""

from rackwright.burnin.report import BurninReport
from rackwright.burnin.run import burnin

__all__ = ["BurninReport", "burnin"]
