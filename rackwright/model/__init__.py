"""The typed cluster: frozen types for the cluster, its nodes, SKUs and options."""
