"""Slurm with its database on three nodes, whose secrets are rotated, lost and copied."""
