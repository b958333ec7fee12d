"""Dashboards for the cluster's metrics as typed data, rendered by Grafana or as HTML pages."""
