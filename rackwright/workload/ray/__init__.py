"""Ray as a workload manager: what its head knows of nodes, and drains that the GCS keeps on record."""
