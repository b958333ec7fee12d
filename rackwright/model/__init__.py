"""The typed cluster: what the cluster file and the SKU catalogue say."""
