"""Slurm, the first implementation of the workload protocol."""
