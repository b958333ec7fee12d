"""What a workload manager must offer to the rest of rackwright."""
