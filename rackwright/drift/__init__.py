"""Drift: which nodes no longer match the cluster file, now, on a schedule and for a dashboard."""
