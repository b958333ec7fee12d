"""rackwright's operations: compare, record the difference, then act (see rackwright.plan.changes)."""
