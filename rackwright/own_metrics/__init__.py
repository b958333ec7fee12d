"""Metrics from this control node's state of a cluster: runs, burn-ins, the last verify and drift check."""
