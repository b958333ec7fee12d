"""verify: run the checks of every role on its nodes; the report knows five results."""

from rackwright.verify.report import VerifyReport
from rackwright.verify.runner import verify

__all__ = ["VerifyReport", "verify"]
