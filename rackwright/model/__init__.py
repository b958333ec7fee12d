"""The typed cluster: frozen types of the cluster, its nodes, SKUs and options."""
