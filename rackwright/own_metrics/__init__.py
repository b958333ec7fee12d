"""What this control node knows of a cluster, as metrics for Prometheus: runs, burn-ins, the last verify and drift check."""
