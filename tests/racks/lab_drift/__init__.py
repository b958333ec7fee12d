"""Drift looked for on a schedule, on a rack of two nodes."""
