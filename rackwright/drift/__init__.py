"""Drift: which nodes are no longer what the cluster file says, on a schedule and for a dashboard."""
