"""accept: from the cluster file to one verdict, with a report that can be handed over."""

from rackwright.accept.report import AcceptReport, Verdict
from rackwright.accept.run import accept
from rackwright.accept.stages import Stages

__all__ = ["AcceptReport", "Stages", "Verdict", "accept"]
