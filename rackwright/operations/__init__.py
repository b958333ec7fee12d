"""Operations of ours: compare, record the difference, then act (see rackwright.plan.changes)."""
