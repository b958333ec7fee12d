"""What the cluster's metrics look like: dashboards as typed data, drawn by Grafana or as pages of HTML."""
