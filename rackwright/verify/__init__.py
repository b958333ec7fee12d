"""verify: ask every node whether what its roles claim is true."""

from rackwright.verify.report import VerifyReport
from rackwright.verify.runner import verify

__all__ = ["VerifyReport", "verify"]
