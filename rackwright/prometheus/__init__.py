"""Queries the cluster's Prometheus, on the node where it runs: no password leaves that node."""
