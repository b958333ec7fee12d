"""accept: from the cluster file to one verdict, with a report to hand over."""

from rackwright.accept.report import AcceptReport, Verdict
from rackwright.accept.run import accept
from rackwright.accept.stages import Stages

__all__ = ["AcceptReport", "Stages", "Verdict", "accept"]
