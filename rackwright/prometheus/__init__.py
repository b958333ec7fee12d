"""Questions to the cluster's Prometheus, asked on the node that it runs on: no password leaves that node."""
